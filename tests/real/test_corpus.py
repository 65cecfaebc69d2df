"""The corpus against the real registry, with plain uv and pytest: its answers are still right.

The same cases through the product have their own tests; a registry that moved on is found here.
"""

import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.corpus import CASES, Case, build_case
from support.corpus.declared import Trait
from support.corpus.verdict import judged, synced
from support.fixtures.launch import host_in_process
from support.gitclient import authenticated, git
from support.hosting import publish
from support.plain import PlainProject, moved
from support.scenarios.world import check_out
from support.toolchain import Uv

pytestmark = [pytest.mark.real, pytest.mark.slow]
BASES = list({case.pin: case for case in reversed(CASES)}.values())[::-1]
TOO_NEW = [case for case in CASES if case.answer.outcome == "requires_newer_toolchain"]
UPGRADING = [case for case in CASES if case.answer.target is not None]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user may enter, which pytest's own isn't."""
    path = Path(tempfile.mkdtemp(prefix="corpus-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def checked_out(case: Case, folder: Path) -> PlainProject:
    built = build_case(case)
    project = PlainProject(folder / "checkout", Uv(folder / "uv"), case.sync)
    check_out(built.repository, built.base_commit, project.path)
    return project


def traits_of(case: Case, project: PlainProject) -> set[Trait]:
    """What the case's base has, seen from outside."""
    manifest = tomllib.loads((project.path / "pyproject.toml").read_text())
    seen = {
        Trait.FORKED: any(len(versions) > 1 for versions in project.locked().values()),
        Trait.GIT_VERSION: bool(git(project.path, "tag", "--merged", "HEAD"))
        and "version" in manifest["project"]["dynamic"],
        Trait.OTHER_GROUP: bool(case.sync),
    }
    return {trait for trait, there in seen.items() if there}


@pytest.mark.parametrize("case", BASES, ids=[case.name for case in BASES])
def test_the_baseline_passes(case: Case, folder: Path) -> None:
    project = checked_out(case, folder)
    assert set(case.traits) <= traits_of(case, project)
    synced(project)

    done = judged(project, ())

    assert () == done.failing, done.output
    total = sum(case.baseline.values())
    assert total == sum(done.counts.get(what, 0) for what in (*case.baseline, "failed"))


@pytest.mark.parametrize("case", UPGRADING, ids=[case.name for case in UPGRADING])
def test_the_upgrade_gives_the_answer(case: Case, folder: Path) -> None:
    answer = case.answer
    assert answer.target is not None
    name, before, after = answer.target
    project = checked_out(case, folder)
    locked = project.locked()
    assert {before} == locked[name]
    if f'"{name}=={before}"' in (project.path / "pyproject.toml").read_text():
        project.constrain(f'"{name}=={before}"', f'"{name}=={after}"')
    for edit in case.edits:
        project.constrain(edit.old, edit.new)
    held = (f"{other}=={to}" for other, (_, to) in answer.moved.items())

    done = project.upgrade(f"{name}=={after}", *held)

    if answer.outcome == "admission_refused":
        assert done.code == 1
        assert "unsatisfiable" in done.err
        return
    assert 0 == done.code, done.err
    assert answer.moves == moved(locked, project.locked())
    # For a version from git uv runs the build back end, which may write files of its own.
    changed = git(
        project.path, "diff", "--name-only", "--", "pyproject.toml", "uv.lock"
    ).splitlines()
    assert answer.files == tuple(changed)
    synced(project)
    findings = tuple(sorted(answer.findings))
    assert findings == judged(project, findings).failing


@pytest.mark.parametrize("case", TOO_NEW, ids=[case.name for case in TOO_NEW])
def test_a_version_that_needs_a_newer_python_is_refused_by_the_resolver(
    case: Case, folder: Path
) -> None:
    project = checked_out(case, folder)

    done = project.upgrade(f"{case.upgrade['dependency']}=={case.upgrade['version']}")

    assert 1 == done.code
    assert "does not satisfy Python>=" in done.err


def test_a_case_is_served_by_the_fixture_host(tmp_path: Path) -> None:
    built = build_case(next(case for case in CASES if case.name == "A4"))
    with host_in_process(tmp_path) as host:
        tokens = publish(host, "acme/environs", built.repository, built.base_commit)
        url = authenticated(host.repository_url("acme/environs"), tokens.clone)

        git(tmp_path, "clone", "-q", url, "clone")

    assert built.base_commit == git(tmp_path / "clone", "rev-parse", "HEAD")
