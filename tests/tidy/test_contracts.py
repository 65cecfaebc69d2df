"""Mutation of the import contracts: a forbidden import in a scratch copy makes its contract fail.

House style §9.7. `make lint` checks the tree itself.
"""

import configparser
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol/src", "operator/src", "runner-image/src")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One forbidden import: which contract must fail when which module gets it."""

    contract: str
    module: str
    statement: str


OPERATOR = "upgraderun_operator"
RUNNER = "upgraderun_runner"
MUTATIONS = (
    Mutation("layers", f"{OPERATOR}/model/names.py", f"import {OPERATOR}.decide"),
    Mutation("layers", f"{OPERATOR}/decide/__init__.py", f"import {OPERATOR}.perform"),
    Mutation("layers", f"{OPERATOR}/perform/__init__.py", f"import {OPERATOR}.handlers"),
    Mutation("layers", "upgraderun_protocol/ids.py", f"import {OPERATOR}.model"),
    Mutation("strangers", f"{OPERATOR}/model/names.py", f"import {RUNNER}"),
    Mutation("strangers", f"{RUNNER}/agent/__init__.py", f"import {OPERATOR}"),
    Mutation("protocol-is-pure", "upgraderun_protocol/ids.py", "import os"),
    Mutation("protocol-is-pure", "upgraderun_protocol/fold.py", "import time"),
    Mutation("kopf", f"{OPERATOR}/engine/__init__.py", "import kopf"),
    Mutation("kopf", f"{OPERATOR}/adapters/__init__.py", "import kopf"),
    Mutation("clients", f"{OPERATOR}/decide/__init__.py", "import aiohttp"),
    Mutation("clients", f"{OPERATOR}/build/__init__.py", "import subprocess"),
    Mutation("api-server-only", f"{OPERATOR}/api/__init__.py", "import kubernetes"),
    Mutation("adapters", f"{OPERATOR}/observe/__init__.py", f"import {OPERATOR}.adapters"),
    Mutation("agent", f"{RUNNER}/agent/__init__.py", f"import {RUNNER}.forge"),
    Mutation("agent", f"{RUNNER}/agent/__init__.py", f"import {RUNNER}.workspace"),
    Mutation("forge", f"{RUNNER}/forge/__init__.py", f"import {RUNNER}.ecosystems"),
    Mutation("publisher", f"{RUNNER}/remote.py", f"import {RUNNER}.tools"),
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


def contracts() -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    prefix = "importlinter:contract:"
    return [name.removeprefix(prefix) for name in parser.sections() if name.startswith(prefix)]


def judge(folder: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Let import-linter judge the copy, not the installed packages, by these contracts."""
    return subprocess.run(
        [
            *(str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"),
            *(argument for name in contracts for argument in ("--contract", name)),
            str(ROOT / ".importlinter"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "mutation", MUTATIONS, ids=lambda m: f"{m.contract}: {m.statement} in {m.module}"
)
def test_a_forbidden_import_fails_its_contract(
    mutation: Mutation, pristine: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    shutil.copytree(pristine, scratch)
    module = scratch / mutation.module
    module.write_text(
        f"{module.read_text(encoding='utf-8')}\n{mutation.statement}\n", encoding="utf-8"
    )

    done = judge(scratch, mutation.contract)

    assert 1 == done.returncode, done.stdout + done.stderr
    assert "BROKEN" in done.stdout


def test_the_copy_itself_keeps_every_contract(pristine: Path) -> None:
    """Else a failure above would prove nothing."""
    done = judge(pristine, *contracts())

    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"{len(contracts())} kept, 0 broken" in done.stdout


def test_every_contract_has_a_mutation() -> None:
    assert set(contracts()) == {mutation.contract for mutation in MUTATIONS}
