"""The Inline driver runs real processes: bounds, time limits, kills and the network namespace."""

import os
import select
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile
from upgraderun_runner.sandbox.driver import Isolation
from upgraderun_runner.sandbox.inline import InlineSandbox

SECONDS = 30


ENDED_SECONDS = 5.0
"""A signalled process ends in milliseconds; one that was never signalled sleeps for minutes."""

NETWORK = os.readlink("/proc/self/ns/net")  # noqa: PTH115 - the link's text, not a path


def python(
    code: str,
    workdir: Path,
    profile: Profile = Profile.TOOL,
    timeout_seconds: int = SECONDS,
    stdout_limit: int = 1 << 20,
) -> Command:
    return Command(
        argv=(sys.executable, "-I", "-c", code),
        profile=profile,
        workdir=str(workdir),
        env=(("PATH", "/usr/bin:/bin"), ("ONLY", "this")),
        timeout_seconds=timeout_seconds,
        stdout_limit=stdout_limit,
    )


async def run(command: Command) -> CommandResult:
    sandbox = await InlineSandbox.start(time.monotonic)
    return await sandbox.run("step.1", command)


async def test_streams_and_exit_status_come_back(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    result = await run(python(code, tmp_path))

    assert (3, b"out\n", b"err\n") == (result.exit_code, result.stdout, result.stderr)
    assert result.whole


async def test_environment_is_built_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_CANARY", "leaks")

    result = await run(python("import os; print(sorted(os.environ))", tmp_path))

    names = set(eval(result.stdout))  # noqa: S307 - our own print
    assert names <= {"LC_CTYPE", "ONLY", "PATH"}


async def test_output_beyond_the_bound_is_dropped_and_said(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 300000)"

    result = await run(python(code, tmp_path, stdout_limit=1000))

    assert (1000, True, False) == (
        len(result.stdout),
        result.stdout_truncated,
        result.stderr_truncated,
    )
    assert not result.whole


@pytest.mark.parametrize("profile", [Profile.TOOL, Profile.EXECUTE])
async def test_a_time_limit_ends_the_command_and_its_children(
    tmp_path: Path, profile: Profile
) -> None:
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(600)\n"
    )

    result = await run(python(code, tmp_path, profile, timeout_seconds=2))

    assert (True, False) == (result.timed_out, result.killed)
    assert gone(int(result.stdout))


async def test_execute_ends_a_daemon_that_left_its_session(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(p.pid, flush=True)\n"
    )

    result = await run(python(code, tmp_path, Profile.EXECUTE))

    assert 0 == result.exit_code
    assert gone(int(result.stdout))


@pytest.mark.parametrize("profile", [Profile.TOOL, Profile.EXECUTE])
async def test_a_kill_from_outside_is_no_verdict(tmp_path: Path, profile: Profile) -> None:
    result = await run(
        python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path, profile)
    )

    assert (137, True, False) == (result.exit_code, result.killed, result.timed_out)
    assert not result.whole


@pytest.mark.parametrize("profile", [Profile.TOOL, Profile.EXECUTE])
async def test_a_segmentation_fault_is_139(tmp_path: Path, profile: Profile) -> None:
    result = await run(
        python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", tmp_path, profile)
    )

    assert (139, False) == (result.exit_code, result.killed)


@pytest.mark.parametrize("profile", [Profile.TOOL, Profile.EXECUTE])
async def test_a_missing_program_is_127(tmp_path: Path, profile: Profile) -> None:
    command = replace(python("", tmp_path, profile), argv=("/no/such/program",))

    result = await run(command)

    assert 127 == result.exit_code
    assert b"/no/such/program" in result.stderr


class TestExecuteHasNoNetwork:
    """security.md §3: `execute` has no network at all, but tests may use loopback."""

    CODE = """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print(os.getuid(), os.getgid(), sorted(name for _, name in socket.if_nameindex()))
"""

    async def test_only_loopback_is_there_and_the_uid_is_kept(self, tmp_path: Path) -> None:
        sandbox = await InlineSandbox.start(time.monotonic)
        if sandbox.isolation is Isolation.NONE:
            pytest.skip("this kernel refuses user namespaces")

        result = await sandbox.run("s.1", python(self.CODE, tmp_path, Profile.EXECUTE))

        assert b"" == result.stderr
        assert f"{os.getuid()} {os.getgid()} ['lo']\n" == result.stdout.decode()

    async def test_other_profiles_keep_the_network(self, tmp_path: Path) -> None:
        result = await run(python("import os; print(os.readlink('/proc/self/ns/net'))", tmp_path))

        assert f"{NETWORK}\n" == result.stdout.decode()

    async def test_a_kernel_that_refuses_is_told_and_nothing_else_changes(
        self, tmp_path: Path
    ) -> None:
        sandbox = InlineSandbox(Isolation.NONE, time.monotonic)

        result = await sandbox.run(
            "s.1",
            python("import os; print(os.readlink('/proc/self/ns/net'))", tmp_path, Profile.EXECUTE),
        )

        assert f"{NETWORK}\n" == result.stdout.decode()


def gone(pid: int) -> bool:
    """Whether a process has ended; one that was killed dies a moment later, so its end is awaited."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ended, _, _ = select.select([handle], [], [], ENDED_SECONDS)
    finally:
        os.close(handle)
    return bool(ended)
