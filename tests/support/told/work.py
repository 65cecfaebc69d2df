"""Ends that a runner or publisher finds: the repository, the registry, the checks, the agent."""

from collections.abc import Iterator
from dataclasses import replace

from support.records import COVERAGE, READY, VALIDATION, check
from support.runviews import BASE, LIMITS, OTHER, SCOPE, TARGET, TREE, Story
from support.told.telling import Told, end_of_a_verdict, end_of_the_runner
from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_protocol.slugs import marker
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.agent.ending import End, end_of, exhausted
from upgraderun_runner.agent.limits import limit_reached
from upgraderun_runner.agent.policy import Abort, Facts, Write, rule_on
from upgraderun_runner.agent.readiness import failures_of
from upgraderun_runner.agent.report import ReportFacts
from upgraderun_runner.agent.rules import Situation, decide
from upgraderun_runner.agent.telling import in_whole_words
from upgraderun_runner.agent.view import Phase
from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    Candidate,
    CandidateList,
    ChangeClass,
    Finding,
    GateViolation,
    Ineligibility,
    LineJudgement,
    Pair,
    RegistryUnreachable,
    StagedPair,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python.manifest import parse_manifest
from upgraderun_runner.ecosystems.python.refusals import manifest_refusals
from upgraderun_runner.forge.github import SeenPullRequest
from upgraderun_runner.forge.tables import (
    BranchAt,
    Declined,
    EffectJournal,
    Ours,
    decide_pull_request,
)
from upgraderun_runner.phases import ends
from upgraderun_runner.process import Conclusion, failed
from upgraderun_runner.tools.manifests import refusal_of
from upgraderun_runner.tools.proposing import not_ready
from upgraderun_runner.workspace.clone import Base

MAIN = Base(CommitId(BASE), TreeId(TREE), "main")
BOX = {"tool": "report_blocked"}
UPGRADE = f"{TARGET.name} {TARGET.from_version} -> {TARGET.to_version}"
BROKEN = replace(
    VALIDATION,
    clean=False,
    checks=(check("build"), check("test", True, "test:tests/test_prices.py:test_total")),
)
OURS = Ours(
    "upgraderun/lib-1.1-3f1c9a2b",
    "main",
    CommitId("1" * 40),
    RunUid("3f1c9a2b-0000-4000-8000-000000000001"),
    "d" * 64,
)


def told() -> Iterator[Told]:
    """Every end of a pod, in the order of the phases."""
    yield from _before_the_loop()
    yield from _of_the_loop()
    yield from _of_the_limits()
    yield from _of_proposals()
    yield _of_the_publisher()
    error = ValueError("a release without a version")
    yield end_of_a_verdict(failed("a1", "4f1c9a2b77aa", error), "error 4f1c9a2b77aa in a1")


def _before_the_loop() -> Iterator[Told]:
    manifest = parse_manifest(b'[project]\nname = "app"\ndynamic = ["dependencies"]\n')
    yield end_of_the_runner(ends.unsupported(manifest_refusals(manifest)), "pyproject.toml")
    silent = RegistryUnreachable("index.example", "timeout", "error: operation timed out")
    yield end_of_the_runner(ends.not_acquired(silent, ()), "index.example")
    full = AcquisitionFailed("toolchain_failed", "", "Resolved 3\nerror: No space left on device")
    yield end_of_the_runner(ends.not_acquired(full, ("https://index.example/simple",)), "index")
    yield _baseline(BROKEN, "main at aaaaaaaaaaaa")
    slow = replace(VALIDATION, conclusive=False, checks=(check("build"), check("test", False)))
    yield _baseline(slow, "test: took too long")
    yield _baseline(replace(VALIDATION, tests_exist=False), "validation.requireTests")
    young = Ineligibility("too_young", "published 3 h ago, at least 72 h are asked for")
    yield _nothing(_version("2.0.0", Ineligibility("class_not_allowed", "major")), "tinylib 2.0.0")
    several = _version("2.0.0", young), _version("2.1.0", young)
    yield end_of_the_runner(
        ends.nothing_eligible(CandidateList("t", several, ())), "none of 2 newer versions"
    )
    newer = Ineligibility("toolchain", "it needs Python >=3.13, the image has 3.11.7")
    yield _nothing(_version("1.1.0", newer), "tinylib 1.1.0")


def _baseline(record: ValidationRecord, where: str) -> Told:
    facts = ends.baseline_problem(MAIN, record, require_tests=True)
    assert facts is not None
    return end_of_the_runner(facts, where)


def _version(version: str, *reasons: Ineligibility) -> Candidate:
    return Candidate("tinylib", "1.0.0", version, ChangeClass.MAJOR, "t", reasons)


def _nothing(candidate: Candidate, where: str) -> Told:
    return end_of_the_runner(ends.nothing_eligible(CandidateList("t", (candidate,), ())), where)


def _of_the_loop() -> Iterator[Told]:
    young = GateViolation("closure_too_young", "idna", "published 72 h ago", "published 3 h ago")
    refused = Story().failed("apply_upgrade", "admission_refused", _refusal(young), _ASKED)
    yield _ruled(refused, "tinylib 1.1.0: closure_too_young idna")
    unwanted = GateViolation("unrelated_change", "six", "1.16.0", "1.17.0")
    not_normal = (
        Story().applied().failed("normalize_manifests", "normalization_refused", _refusal(unwanted))
    )
    yield _ruled(not_normal, f"{UPGRADE}: unrelated_change six")
    slow = replace(VALIDATION, conclusive=False, checks=(check("test", False),))
    story = Story().applied().normalised().validated(conclusive=False)
    yield _ruled(story, "test: took too long", slow)
    keys = tuple(Finding(f"test:tests/test_prices.py:test_{n}", 1, "") for n in range(5))
    regressed = replace(BROKEN, introduced=keys)
    yield _ruled(Story().applied().normalised().validated("5:abc"), UPGRADE, regressed)
    stuck = Story().applied().did("report_blocked", BOX, {"reason": "the changelog names no way"})
    yield _ended(end_of(stuck.view), stuck, UPGRADE)
    story = Story().did("list_candidates", {"tool": "list_candidates"})
    yield _ended(exhausted(story.view), story, "after 1 decision")


_ASKED = {"dependency": "tinylib", "version": "1.1.0"}


def _refusal(*violations: GateViolation) -> str:
    nothing = Pair(b"", b"")
    return refusal_of(StagedPair(nothing, nothing, False, "", violations, (), (), ()))


def _ruled(story: Story, where: str, after: ValidationRecord | None = None) -> Told:
    """Let the built-in agent explain this history."""
    call = decide(Situation(story.view, (TARGET, OTHER), (), lambda _path: True))
    assert call.tool == "report_blocked"
    story.did("report_blocked", BOX, call.arguments)
    return _ended(end_of(story.view), story, where, after)


def _ended(
    end: End | None, story: Story, where: str, after: ValidationRecord | None = None
) -> Told:
    assert end is not None
    whole = in_whole_words(end, story.view, after)
    return end_of_the_runner(ReportFacts(whole.outcome, whole.message), where)


def _of_the_limits() -> Iterator[Told]:
    stepped = Story().applied()
    for _ in range(2):
        stepped.interrupted("git_diff")
    end = limit_reached(stepped.view, replace(LIMITS, steps=3))
    yield _ended(end, stepped, "steps: 3 of 3")
    looped = Story().applied()
    for _ in range(3):
        looped.did("git_diff", {"tool": "git_diff"})
    yield _ended(limit_reached(looped.view, LIMITS), looped, "git_diff")
    tried = Story().applied().validated("1:a")
    for tree in ("c" * 40, "d" * 40):
        tried.edited(tree, tree=tree).validated("1:a", tree=tree)
    spent = limit_reached(tried.view, replace(LIMITS, repeated_calls=99))
    left = replace(BROKEN, introduced=(Finding("test:tests/test_prices.py:test_total", 1, ""),))
    yield _ended(spent, tried, "test_total", left)
    wide = Facts(
        phase=Phase.REPAIR,
        phases=frozenset({Phase.REPAIR}),
        eligible=frozenset(),
        validation_cycles=0,
        limits=LIMITS,
        scope=SCOPE,
        write=Write(None, 22, 61),
    )
    ruling = rule_on(Call("write_file", {}), wide)
    assert isinstance(ruling, Abort)
    story = Story().applied().failed("write_file", ruling.outcome, ruling.message)
    yield _ended(end_of(story.view), story, "22 files and 61 lines")


def _of_proposals() -> Iterator[Told]:
    changed = replace(READY, protected=(".github/workflows/test.yml",))
    refusal = not_ready(failures_of(changed))
    story = Story().applied().normalised().validated()
    story.failed("prepare_proposal", refusal.reason, refusal.message)
    yield _ruled(story, ".github/workflows/test.yml")
    dark = LineJudgement("app/prices.py", 3, 4, False, "no test ran these lines")
    repaired = replace(
        READY, sources=("app/prices.py",), lines=2, coverage=replace(COVERAGE, judgements=(dark,))
    )
    refusal = not_ready(failures_of(repaired))
    story = Story().applied().normalised().validated()
    story.failed("prepare_proposal", refusal.reason, refusal.message)
    yield _ruled(story, "app/prices.py:3-4")


def _of_the_publisher() -> Told:
    body = marker(RunUid(OURS.run_uid), OURS.proposal_digest, "python", "lib", "1.1")
    closed = SeenPullRequest(7, "closed", OURS.commit, "main", body, "upgraderun")
    found = decide_pull_request(EffectJournal.OPEN, (closed,), BranchAt(OURS.commit), OURS)
    assert isinstance(found, Declined)
    return end_of_a_verdict(Conclusion("publication_declined", found.reason), "#7")
