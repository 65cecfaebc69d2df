"""The corpus against the real registry, with plain uv and pytest: its answers are still right.

The same cases through the product have their own tests; a registry that moved on is found here.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.corpus import CASES, Case, build_case
from support.fixtures.launch import host_in_process
from support.gitclient import authenticated, git
from support.hosting import publish
from support.ordinary_user import as_ordinary_user, give_away
from support.plain import PlainProject, TestRun, moved
from support.scenarios.world import check_out
from support.toolchain import Uv

pytestmark = [pytest.mark.real, pytest.mark.slow]
SYSTEM_PYTHON = "/usr/bin/python3"
RUNS_MAX = 3
BASES = list({case.pin: case for case in reversed(CASES)}.values())[::-1]
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


def synced(project: PlainProject) -> None:
    project.uv(project.path, "sync", "--frozen", "--python", SYSTEM_PYTHON, *project.sync_flags)


def tested(project: PlainProject, expected: tuple[str, ...]) -> TestRun:
    """Run the tests as an ordinary user: root may read what some tests expect nobody to.

    Some of these suites are flaky on a busy machine. As in the product, a key that passes once in
    three runs counts for nothing (upgrade-run.md §7.2), so an unexpected result is looked at thrice.
    """
    give_away(project.path.parent)
    runs = [project.test(tuple(as_ordinary_user([])))]
    while runs[-1].failing != expected and len(runs) < RUNS_MAX:
        runs.append(project.test(tuple(as_ordinary_user([]))))
    always = set.intersection(*(set(run.failing) for run in runs))
    return replace(runs[-1], failing=tuple(sorted(always)))


@pytest.mark.parametrize("case", BASES, ids=[case.name for case in BASES])
def test_the_baseline_passes(case: Case, folder: Path) -> None:
    project = checked_out(case, folder)
    synced(project)

    done = tested(project, ())

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
    if case.name == "A4b":
        project.constrain("marshmallow>=3.13.0,<4", "marshmallow>=3.13.0,<5")
    held = (f"{other}=={to}" for other, (_, to) in answer.moved.items())

    done = project.upgrade(f"{name}=={after}", *held)

    if answer.outcome == "admission_refused":
        assert done.code == 1
        assert "unsatisfiable" in done.err
        return
    assert 0 == done.code, done.err
    expected = {name: (frozenset({before}), frozenset({after}))}
    for other, (was, now) in answer.moved.items():
        expected[other] = (frozenset({was} if was else ()), frozenset({now}))
    assert expected == moved(locked, project.locked())
    changed = git(project.path, "diff", "--name-only").splitlines()
    assert not answer.files or answer.files == tuple(changed)
    synced(project)
    findings = tuple(sorted(answer.findings))
    assert findings == tested(project, findings).failing


def test_a_version_that_needs_a_newer_python_is_refused_by_the_resolver(folder: Path) -> None:
    case = next(case for case in CASES if case.name == "A1x")
    project = checked_out(case, folder)

    done = project.upgrade("markupsafe==3.0.3")

    assert 1 == done.code
    assert "does not satisfy Python>=3.9" in done.err


def test_a_case_is_served_by_the_fixture_host(tmp_path: Path) -> None:
    built = build_case(next(case for case in CASES if case.name == "A4"))
    with host_in_process(tmp_path) as host:
        tokens = publish(host, "acme/environs", built.repository, built.base_commit)
        url = authenticated(host.repository_url("acme/environs"), tokens.clone)

        git(tmp_path, "clone", "-q", url, "clone")

    assert built.base_commit == git(tmp_path / "clone", "rev-parse", "HEAD")
