"""A case's own tests as a person would run them: plain uv and pytest, as an ordinary user.

Callers: the tests of the real registry. Says nothing of what the product thinks.
"""

from dataclasses import replace
from typing import Final

from support.ordinary_user import SYSTEM_PYTHON, as_ordinary_user, give_away
from support.plain import PlainProject, TestRun

_RUNS_MAX: Final = 3


def synced(project: PlainProject) -> None:
    """Install what the lock says, for the Python that an ordinary user may enter."""
    project.uv(project.path, "sync", "--frozen", "--python", SYSTEM_PYTHON, *project.sync_flags)


def judged(project: PlainProject, expected: tuple[str, ...]) -> TestRun:
    """Run the tests as an ordinary user: root may read what some tests expect nobody to.

    Some of these suites are flaky on a busy machine. As in the product, a key that passes once in
    three runs counts for nothing (upgrade-run.md §7.2), so an unexpected result is looked at thrice.
    """
    give_away(project.path.parent)
    runs = [project.test(tuple(as_ordinary_user([])))]
    while runs[-1].failing != expected and len(runs) < _RUNS_MAX:
        runs.append(project.test(tuple(as_ordinary_user([]))))
    always = set.intersection(*(set(run.failing) for run in runs))
    return replace(runs[-1], failing=tuple(sorted(always)))
