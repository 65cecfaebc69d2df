"""What a person meets who starts the runner by hand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.ordinary_user import RunnerEnvironment, as_ordinary_user
from upgraderun_protocol.effects import no_fault
from upgraderun_runner import main as runner_main

RUN = ["run", "--operator-url", "http://127.0.0.1:9", "--namespace", "n", "--run", "r"]
RUN += ["--run-uid", "u", "--token-file", "/none", "--workspace", "/none"]


def test_root_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Corpus A2: two tests of a real library fail for root only."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert 1 == runner_main.main(RUN)
    assert "runs as root" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["publish", "--help"]])
def test_help_explains_roles_and_exit_codes(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        runner_main.main(arguments)

    assert 0 == ended.value.code
    shown = " ".join(capsys.readouterr().out.split())
    assert "77 fenced" in shown
    assert "resum" in shown.lower() or "--token-file" in shown


def test_no_hook_without_its_distribution_or_its_variable() -> None:
    assert no_fault is runner_main.load_fault(None)
    assert no_fault is runner_main.load_fault("push.applied")


def test_checkout_with_shadowing_modules_changes_nothing(
    runner: RunnerEnvironment, folder: Path
) -> None:
    """security.md H37: `python -I` ignores what lies in the working directory."""
    for name in ("json.py", "operator.py", "sitecustomize.py"):
        (folder / name).write_text("raise SystemExit('shadowed')\n")
    argv = [str(runner.python), "-I", "-m", "upgraderun_runner", "--help"]

    done = subprocess.run(
        as_ordinary_user(argv), cwd=folder, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert sys.version_info[:2] == (3, 11)
