"""The corpus through the whole product, in processes, against the real registry (Rules).

Each case is answered whole: outcome, target, lock, files, findings, reasons. What is published is
cloned and judged once more by plain uv and pytest: a proposal that fails there is a false success.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest

from support.corpus import CASES, Case
from support.corpus.declared import Tag
from support.corpus.verdict import judged, synced
from support.corpusruns import CaseRun, open_case
from support.ends import check_delivered, check_untouched
from support.gitclient import git, git_input
from support.journals import Story, read_story
from support.plain import PlainProject, moved
from support.platform import Platform
from support.toolchain import Uv
from support.worlds import Outside
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.outcomes import OUTCOMES

RUN_SECONDS = 1500
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(2 * RUN_SECONDS),
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_the_run_gives_the_right_answer(
    case: Case, platform: Platform, outside: Outside, folder: Path
) -> None:
    run = await open_case(case, outside, platform)
    await platform.create_run(run.name, run.spec)

    if run.publishes:
        await platform.asked(run.name, seconds=RUN_SECONDS)
        await platform.answer(run.name)
    status = await platform.finished(run.name, RUN_SECONDS)

    assert OUTCOMES[run.outcome].reason == status["outcome"], platform.story(status)
    story = await read_story(platform, run.name)
    check_evidence(case, story)
    project = PlainProject(folder / "clones" / run.name / "tree", Uv(folder / "uv"), case.sync)
    check_patch(run, story, project)
    check_host(run, story)
    if run.publishes:
        await asyncio.to_thread(check_suite, case, project)


def check_baseline(case: Case, story: Story) -> None:
    """Every test of the base ran; a module that skips itself has no id and isn't counted."""
    record = story.of(story.fold.last("baseline", EntryState.DONE), "record")["record"]
    counts = Counter(test["outcome"] for check in record["checks"] for test in check["tests"])
    assert case.baseline["passed"] == counts["passed"] + len(record["flaky"])
    assert case.baseline.get("xfailed", 0) == counts["xfailed"]


def check_tag(case: Case, story: Story) -> None:
    """Where the version comes from git, the sandbox's copy had the tag of the release."""
    context = story.of(story.fold.last("profile", EntryState.DONE), "context")
    tags = [step.name for step in case.pin if isinstance(step, Tag)]
    assert "".join(tags) == context["baseTag"]


def check_evidence(case: Case, story: Story) -> None:
    """Baseline, selection and findings are the case's."""
    if case.answer.outcome != "unsupported":
        check_baseline(case, story)
        check_tag(case, story)
    assert case.answer.target == story.selected
    assert sorted(case.answer.findings) == sorted(story.introduced)
    for name, versions in case.answer.reasons.items():
        for version, reasons in versions.items():
            assert set(reasons) == story.reasons_of(name, version)
    for pattern in case.answer.says:
        assert re.search(pattern, story.report_text), story.report_text


def check_patch(run: CaseRun, story: Story, project: PlainProject) -> None:
    """The report's patch, on the base, changes the files and moves the packages of the answer.

    What was published is exactly that: the approver saw all of it.
    """
    answer = run.case.answer
    run.clone(project.path)
    locked = project.locked()
    if story.report["patch"]:
        git_input(project.path, story.report["patch"].encode(), "apply", "--index", "-")
    assert answer.moves == moved(locked, project.locked())
    changed = git(project.path, "diff", "--cached", "--name-only").splitlines()
    assert sorted(answer.files) == sorted(changed)
    if run.publishes:
        published = git(project.path, "rev-parse", f"{story.commit}^{{tree}}")
        assert published == git(project.path, "write-tree")


def check_host(run: CaseRun, story: Story) -> None:
    """A proposal is one branch and one pull request that tells what moves; else nothing is."""
    host, base = run.outside.servers.host, run.built.base_commit
    if not run.publishes:
        check_untouched(host, run.repository, base)
        return
    body = check_delivered(host, run.repository, base, story.commit)
    for name, (_, after) in run.case.answer.moves.items():
        assert name in body
        assert all(version in body for version in after)
    for pattern in run.case.answer.says:
        assert re.search(pattern, body), body


def check_suite(case: Case, project: PlainProject) -> None:
    """The published tree passes the case's own tests, as many as the base has."""
    synced(project)
    done = judged(project, ())
    assert () == done.failing, f"false success:\n{done.output}"
    counted = sum(done.counts.get(what, 0) for what in (*case.baseline, "failed"))
    assert sum(case.baseline.values()) == counted
