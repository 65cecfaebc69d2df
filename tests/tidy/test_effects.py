"""A new effect without fault points, a point without a test, a second way to an effect: each fails.

Shown by scratch copies of all packages to which one thing was added (reliability.md §5).
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.effectchecks import problems

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol/src", "operator/src", "runner-image/src")


@dataclass(frozen=True, slots=True)
class Addition:
    """What is put into which module before which line (the end, if none), and what is said then."""

    name: str
    module: str
    text: str
    said: str
    before: str = ""


ADDITIONS = (
    Addition(
        "an effect of the operator without fault points",
        "upgraderun_operator/decide/effects.py",
        "@dataclass(frozen=True, slots=True)\nclass Invented:\n    '''New.'''\n\n\n"
        "Effect = Effect | Invented\n",
        "operator: Invented stands in the union or in the table, not in both",
    ),
    Addition(
        "an effect of the pods without fault points",
        "upgraderun_runner/forge/push.py",
        'INVENTED = AsyncEffect("dreamt", read_porcelain)\n',
        "pods: dreamt of push.py is in no binding",
    ),
    Addition(
        "points that no test strikes at",
        "upgraderun_protocol/effects.py",
        '    EffectRow("invented", _PUBLISHER, "push", "", False, look="x", applied="x", '
        'not_applied="x"),\n',
        "publisher: no test strikes at invented.before",
        before=")  # fmt: skip\n\nEFFECTS",
    ),
    Addition(
        "an effect that nobody performs",
        "upgraderun_protocol/effects.py",
        '    EffectRow("imagined", _OPERATOR, "", "", True, look="x", applied="x", '
        'not_applied="x"),\n',
        "operator: imagined has a row or a binding, not both",
        before=")  # fmt: skip\n\nEFFECTS",
    ),
    Addition(
        "a second way to an effect",
        "upgraderun_runner/forge/push.py",
        "async def again(git: Git, url: str, branch: str, commit: CommitId) -> PushResult:\n"
        "    return await _push_branch(git, url, branch, commit, None)\n",
        "pods: _push_branch of push.py is reached beside its fault points",
    ),
    Addition(
        "a point passed by hand",
        "upgraderun_runner/forge/push.py",
        'def by_hand(fault):\n    fault("push", "before")\n',
        "passes a fault point by hand",
    ),
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all packages in one folder."""
    folder = tmp_path_factory.mktemp("pristine")
    for source in PACKAGES:
        shutil.copytree(
            ROOT / source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


def judge(folder: Path) -> subprocess.CompletedProcess[str]:
    """Judge the copy, not the installed packages."""
    paths = (folder, ROOT / "tests", ROOT / "hack" / "lib")
    return subprocess.run(
        [sys.executable, "-m", "support.effectchecks"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_effect_has_its_points_and_every_point_its_test() -> None:
    assert [] == problems()


def test_the_copy_itself_has_no_problem(pristine: Path) -> None:
    """Else a failure below would prove nothing."""
    done = judge(pristine)

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def judged(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy with all additions; each has words of its own."""
    scratch = tmp_path_factory.mktemp("additions") / "scratch"
    shutil.copytree(pristine, scratch)
    for addition in ADDITIONS:
        add(addition, scratch / addition.module)
    done = judge(scratch)
    assert 1 == done.returncode, done.stdout + done.stderr
    return done.stdout


def add(addition: Addition, module: Path) -> None:
    """Change one module of the copy."""
    text = module.read_text(encoding="utf-8")
    assert addition.before in text
    changed = (
        text.replace(addition.before, addition.text + addition.before)
        if addition.before
        else f"{text}\n\n{addition.text}"
    )
    module.write_text(changed, encoding="utf-8")


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.name)
def test_an_addition_is_found(addition: Addition, judged: str) -> None:
    assert addition.said in judged, judged
