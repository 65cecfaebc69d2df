"""`docs/real-cases.md`: every case of a real library and its right answer, from the declarations.

Callers: `hack/generate.py`. Text comes from `tests/support/corpus`; change that.
"""

from typing import Final

from support.corpus.cases import CASES
from support.corpus.declared import Answer, Case, Trait

_HEAD: Final = """\
# Real cases

Released libraries, upgraded by the whole product against the package registry. Generated from `tests/support/corpus` by
`make generate`. A case is a source distribution by its hash and a few commands; no third-party code is committed.

**How each answer was worked out**: by hand first, with plain uv and pytest and nothing of ours. Unpack the release, commit it,
pin the versions of before, commit that as the base; install from the lock and run the tests, as an ordinary user and without
network; then `uv lock --upgrade-package <name>==<version>` (with the edit of the manifest that it needs), install and test
again. What passed, failed and moved was written down as the case's answer; only then did the product run. Where a release froze
what its repository leaves to the build (the version), the case takes that back and tags the commit.
`tests/real/test_corpus.py` repeats the work by hand, so that a registry which moved on is told from a product that is wrong.

**What is compared**: outcome and target, every package that moves in the lock with its versions, the changed files, the
introduced findings one by one, the reasons why other versions are refused, how many tests pass on the base. A run that proposes is
approved and published; what is published is cloned and tested once more by plain uv and pytest. A proposal that fails there is
a false success; there is none.

Packages that a case doesn't name float with the day on which its base is made; no answer speaks of them.
"""

_LAST_RUN: Final = """\
`make test-real` runs all of it; it needs the package registry and takes more than an hour on two cores. The cases ran through
the product one at a time on 30 November 2026. A whole run in one go isn't recorded yet.
"""


def real_cases_page() -> str:
    """Text of the page."""
    rows = "".join(_row(case) for case in CASES)
    return (
        f"{_HEAD}\n{_counted()}\n\n"
        "| case | library | built by | asked | before and after | outcome | what it shows | besides |\n"
        f"|---|---|---|---|---|---|---|---|\n{rows}"
        f"\n{_LAST_RUN}"
    )


def _counted() -> str:
    broken = sum(case.answer.outcome != "proposal_prepared" for case in CASES)
    traits = ", ".join(
        f"{sum(trait in case.traits for case in CASES)} with {trait.value}" for trait in Trait
    )
    return f"{len(CASES)} cases, {broken} of which don't end in a proposal; {traits}."


def _row(case: Case) -> str:
    library = f"{case.sdist.name} {case.sdist.version}"
    outcome = case.answer.outcome.replace("proposal_prepared", "proposal_published")
    traits = ", ".join(trait.value for trait in case.traits) or "-"
    cells = (case.name, library, case.backend, _asked(case), _moves(case.answer))
    return f"| {' | '.join(cells)} | `{outcome}` | {case.shows} | {traits} |\n"


def _asked(case: Case) -> str:
    asked = case.upgrade
    parts = [f"{asked.get('dependency', 'anything')} {asked.get('version', '')}".strip()]
    if asked.get("select") == "Latest":
        parts.append("the latest")
    if asked.get("allowMajor"):
        parts.append("majors too")
    return ", ".join(parts)


def _moves(answer: Answer) -> str:
    if answer.target is None:
        return "-"
    name, before, after = answer.target
    steps = {name: (before, after), **answer.moved}
    return "; ".join(
        f"{package} {was} → {now}" if was else f"{package} {now} enters"
        for package, (was, now) in steps.items()
    )
