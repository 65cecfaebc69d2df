"""Every command line and environment of the Python ecosystem (security.md H32, uv-facts §4, §8)."""

from dataclasses import replace
from pathlib import Path

import pytest

from upgraderun_runner.ecosystems.base import ProjectProfile, ToolchainImage
from upgraderun_runner.ecosystems.python.registry import Wanted, metadata_command
from upgraderun_runner.ecosystems.python.room import CheckRoom
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain, UvBinary, Workroom
from upgraderun_runner.ecosystems.python.uvcommands import UvCommands
from upgraderun_runner.sandbox.commands import Command, Profile

TOOLCHAIN = PythonToolchain(
    "/py", "/git", (UvBinary("/uv5", "0.13.9", 5), UvBinary("/uv3", "0.9.30", 3)), ca_bundle="/ca"
)
PROFILE = ProjectProfile(
    ecosystem="python",
    directory="sub",
    manifest_path="sub/pyproject.toml",
    lock_path="sub/uv.lock",
    project="demo",
    requires_toolchain=">=3.10",
    image=ToolchainImage("3.11", "img"),
    direct=(),
    checks=(),
    registries=(),
    selection=("--extra", "tests"),
    build_requires=(),
    virtual=False,
    dynamic_version=False,
    tools=("pytest-cov", "pytest-randomly", "hypothesis"),
    lock_tool_version="0.13.9",
    protected=(),
)
CACHE, ROOM = Path("/cache"), Workroom(Path("/w"))
CHECKS = CheckRoom(Path("/w"), TOOLCHAIN, PROFILE, "/uv5", 600)
UV = UvCommands(TOOLCHAIN, PROFILE, CACHE)

MUTATING = (
    UV.lock(Path("/s"), ROOM, ("aa==1",)),
    UV.lock_check(Path("/s"), ROOM),
    UV.export(Path("/s"), ROOM),
)
ACQUIRING = (
    UV.fetch(Path("/s"), ROOM),
    UV.kit_environment(Path("/s"), ROOM),
    UV.kit_install(Path("/s"), ROOM, Path("/w/kit.in")),
    UV.kit_freeze(Path("/s"), ROOM),
    metadata_command(TOOLCHAIN, ROOM, (Wanted("aa", "https://x/simple/"),)),
)
EXECUTING = (
    CHECKS.prepare(Path("/snapshot"), CACHE, "v1"),
    CHECKS.lock_check(),
    CHECKS.sync(),
    CHECKS.wheel(),
    CHECKS.build_check(),
    CHECKS.pytest(""),
    CHECKS.mypy(()),
    CHECKS.pyright(),
    CHECKS.ruff(),
    CHECKS.coverage("combine"),
)
ALL = (*MUTATING, *ACQUIRING, *EXECUTING)


def named(command: Command) -> str:
    return " ".join(command.argv[:3])


@pytest.mark.parametrize("command", ALL, ids=named)
class TestEveryCommand:
    def test_no_variable_may_point_at_an_index_or_change_a_resolution(
        self, command: Command
    ) -> None:
        """A mirror variable rewrites the lock; `exclude-newer` is written into it."""
        names = {name for name, _ in command.env}

        assert not {n for n in names if "INDEX" in n or "EXCLUDE" in n or n.startswith("PIP_")}
        assert not {
            n for n in names if n in ("UV_FROZEN", "UV_CONFIG_FILE", "PYTHONDONTWRITEBYTECODE")
        }
        assert {"PATH", "HOME", "TMPDIR", "LANG"} <= names

    def test_an_environment_is_complete_and_sorted(self, command: Command) -> None:
        assert sorted(dict(command.env).items()) == list(command.env)


def test_profiles() -> None:
    assert {Profile.MUTATE} == {command.profile for command in MUTATING}
    assert {Profile.ACQUIRE} == {command.profile for command in ACQUIRING}
    assert {Profile.EXECUTE} == {command.profile for command in EXECUTING}


def test_execute_gets_no_trust_bundle_and_the_others_do() -> None:
    assert not [c for c in EXECUTING if "SSL_CERT_FILE" in dict(c.env)]
    assert ["/ca"] * len((*MUTATING, *ACQUIRING)) == [
        dict(c.env)["SSL_CERT_FILE"] for c in (*MUTATING, *ACQUIRING)
    ]


def test_whatever_resolves_or_installs_builds_nothing() -> None:
    """security.md H32; `export` and `freeze` resolve nothing, the wheel is the project's own."""
    free = ("export", "venv", "build")
    uv = [c for c in ALL if c.argv[0] == "/uv5" and c.argv[1] not in free]
    resolving = [c for c in uv if c.argv[:3] != ("/uv5", "pip", "freeze")]

    offline_check = CHECKS.lock_check()
    assert [] == [c.argv for c in resolving if "--no-build" not in c.argv and c != offline_check]


def test_execute_is_offline() -> None:
    uv = [command for command in EXECUTING if command.argv[0] == "/uv5"]

    assert 3 == len(uv)
    assert all("--offline" in command.argv for command in uv)


def test_the_lock_line() -> None:
    expected = ("/uv5", "lock", "--no-build", "--upgrade-package", "aa==1")

    assert expected == MUTATING[0].argv
    assert 300 == MUTATING[0].timeout_seconds


def test_the_uv_that_writes_the_locks_revision_is_taken() -> None:
    assert (
        "/uv3"
        == UvCommands(TOOLCHAIN, replace(PROFILE, lock_tool_version="0.9.30"), CACHE)
        .lock(Path("/s"), ROOM)
        .argv[0]
    )
    assert ("/uv3", "/uv5") == (TOOLCHAIN.uv_for(3).path, TOOLCHAIN.uv_for(4).path)


def test_pytest_neutralises_what_hides_ids_and_fixes_seeds() -> None:
    argv = CHECKS.pytest("").argv

    expected = (
        "/w/env/bin/python",
        "-m",
        "pytest",
        "-p",
        "ur_report",
        "--continue-on-collection-errors",
        "--maxfail=0",
        "-o",
        "cache_dir=/w/pytest-cache",
        "--junitxml=/w/junit.xml",
        "--no-cov",
        "--randomly-seed=1",
        "--hypothesis-seed=1",
    )
    assert expected == argv
    assert "0" != dict(CHECKS.pytest("").env)["PYTHONHASHSEED"]


def test_options_of_plugins_that_are_switched_off_are_left_out() -> None:
    text = "addopts = -p no:cacheprovider -p no:junitxml -p no:randomly -p no:cov"

    argv = CHECKS.pytest(text).argv

    assert ("--continue-on-collection-errors", "--maxfail=0", "--hypothesis-seed=1") == argv[5:]


def test_tests_see_nothing_of_uv_and_their_own_environment_first() -> None:
    variables = dict(CHECKS.pytest("").env)

    assert not [name for name in variables if name.startswith("UV_")]
    assert variables["PATH"].startswith("/w/env/bin:")
    assert "NO_COLOR" not in variables


def test_only_a_repetition_selects() -> None:
    assert "UR_ONLY" not in dict(CHECKS.pytest("").env)
    assert "/w/only.json" == dict(CHECKS.pytest("", only=True).env)["UR_ONLY"]


def test_a_room_is_never_used_twice(tmp_path: Path) -> None:
    room = replace(CHECKS, root=tmp_path / "run-1")

    room.create()

    with pytest.raises(FileExistsError):
        room.create()
