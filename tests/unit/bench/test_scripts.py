"""The parts of the benchmarks that decide what is compared: records read, scripts written and run.

A script that left out a command, or went on after a wrong status, would make every ratio look fine.
"""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from benchlib.figures import run_within
from benchlib.recorded import RunRecords
from benchlib.replaying import Replay, Tools
from benchlib.script import Script
from support.kubeapi import Json
from support.platform import remove, world_folder
from upgraderun_protocol.canonical import sha256_of


class Store:
    """Artifacts in a folder, as the operator keeps them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sha256").mkdir(parents=True)

    def put(self, value: object) -> str:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        digest = str(sha256_of(content))
        (self.folder / "sha256" / digest).write_bytes(content)
        return digest


def row(argv: list[str], **more: object) -> Json:
    return {"argv": argv, "profile": "mutate", "workdir": "/old/ws-1/staging/s0/upgrade", **more}


def entry(name: str, state: str, **more: object) -> Json:
    return {"id": name, "kind": "commands", "state": state, **more}


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    """A step whose plan and executed commands differ, and one that has a plan only."""
    store = Store(tmp_path / "store")
    planned = store.put({"commands": [row(["uv", "lock"])]})
    ran = [
        row(["uv", "lock"], commandId="s0.1", exitCode=0, durationMs=5),
        row(["uv", "lock", "-P", "a<2"], commandId="s0.2", exitCode=1, durationMs=7),
    ]
    evidence = {
        "commands": ran[::-1],
        "plan": {
            "manifestPath": "pyproject.toml",
            "lockPath": "uv.lock",
            "after": {"manifest": store.put(b"manifest"), "lock": store.put(b"lock")},
        },
    }
    only = store.put({"commands": [row(["uv", "export"])]})
    return RunRecords(
        [
            entry("s0", "intent", data={"tool": "apply_upgrade"}),
            entry("sb/s0", "intent", data={"step": "s0"}, artifacts={"commands": planned}),
            entry("s0/promotion", "intent", artifacts={"plan": store.put(evidence)})
            | {"kind": "promotion", "data": {"name": "a", "to": "1.9"}},
            entry("sb/s1", "intent", data={"step": "s1"}, artifacts={"commands": only}),
        ],
        store.folder,
    )


def test_what_ran_stands_for_the_plan_in_its_order(records: RunRecords) -> None:
    found = [(c.step, c.argv, c.exit_code) for c in records.commands()]

    assert [
        ("s0", ("uv", "lock"), 0),
        ("s0", ("uv", "lock", "-P", "a<2"), 1),
        ("s1", ("uv", "export"), 0),
    ] == found
    assert ("a", "1.9") == records.target()
    assert b"lock" == records.promoted().lock
    assert ["apply_upgrade", "s1"] == [records.tool(step) for step in ("s0", "s1")]


def test_a_replay_has_every_command_below_its_own_root(tmp_path: Path, records: RunRecords) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    package = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "upgraderun_runner"
    package.mkdir(parents=True)
    tools = Tools(python, Path("uv"), "python3", "/usr/bin", tmp_path / "ca", "https://x/a.git")
    root = tmp_path / "again"

    script = Replay(tools, root, records.promoted(), "0" * 40).write(records.commands())

    assert "/old/" not in script.text
    for words in ("uv lock >", "uv lock -P 'a<2' >", "uv export >"):
        assert words in script.text
    assert f"cd {root}/ws-1/staging/s0/upgrade" in script.text
    assert "[ $code -eq 1 ]" in script.text


async def test_a_script_tells_its_parts_and_stops_at_a_wrong_status() -> None:
    folder = world_folder()
    try:
        good = Script(folder / "good")
        good.command(("true",), {}, folder)
        good.part("one")
        good.command(("false",), {}, folder, exit_code=1)
        good.part("two")
        assert ["one", "two"] == [part.name for part in await good.run()]

        bad = Script(folder / "bad")
        bad.command(("false",), {}, folder)
        bad.line("touch", folder / "bad" / "went-on")
        with pytest.raises(AssertionError, match="command 1 ended with 1, not 0"):
            await bad.run()
        assert not (folder / "bad" / "went-on").exists()
    finally:
        remove(folder)


def test_a_benchmark_that_hangs_is_ended(capsys: pytest.CaptureFixture[str]) -> None:
    async def hang() -> int:
        await asyncio.Event().wait()
        return 0

    assert 1 == run_within(0.01, hang())
    assert "no end within" in capsys.readouterr().out


def test_sigterm_ends_what_a_benchmark_started() -> None:
    ended: list[str] = []

    async def started() -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            ended.append("servers")
        return 0

    assert 128 + signal.SIGTERM == run_within(60, started())
    assert ["servers"] == ended
