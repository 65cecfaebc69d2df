"""The report record: redacted, bounded, telling (DESIGN §3, security.md §5)."""

from dataclasses import replace

from support.records import VALIDATION, check
from support.runviews import TARGET
from upgraderun_protocol import limits
from upgraderun_protocol.records import from_bytes, to_bytes
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportRecord
from upgraderun_runner.agent.report import (
    ReportFacts,
    build_report,
    candidate_notes,
    closure_notes,
    counted_reasons,
    held_notes,
    untried_notes,
    validation_notes,
    why_nothing,
)
from upgraderun_runner.ecosystems.base import (
    Candidate,
    CandidateList,
    ChangeClass,
    Finding,
    Ineligibility,
    LockChange,
    LostTest,
    Target,
)

SECRET = "ghp_0123456789abcdefghij"


def _built(**changes: object) -> ReportRecord:
    facts = replace(ReportFacts("regressed", "after the upgrade 1 finding is new"), **changes)  # type: ignore[arg-type]  # names of fields
    return build_report(facts, Redactor())


def test_record_survives_its_own_bounds() -> None:
    noisy = tuple(f"note {number} {'x' * 900}" for number in range(200))
    checks = tuple(
        check(f"c{n}", True, *(f"k{k}" for k in range(80)), tail="y" * 9000) for n in range(30)
    )

    record = _built(
        message="m" * 5000,
        patch="+" + "z" * 400_000,
        patch_is_cut=True,
        notes=noisy,
        baseline=replace(VALIDATION, checks=checks),
    )

    assert record == from_bytes(ReportRecord, to_bytes(record))
    assert len(record.patch.encode()) <= limits.REPORT_PATCH_BYTES_MAX
    assert limits.REPORT_CHECKS_MAX == len(record.checks)
    assert "and 137 more" == record.notes[-1]


def test_secrets_are_gone_from_every_text() -> None:
    record = _built(
        message=f"m {SECRET}",
        patch=f"+{SECRET}\n",
        notes=(f"n {SECRET}",),
        after=replace(VALIDATION, checks=(check("test", True, f"k {SECRET}", tail=SECRET),)),
    )

    assert SECRET not in to_bytes(record).decode()


def test_new_findings_come_first() -> None:
    after = replace(
        VALIDATION,
        checks=(check("test", True, "test:a:old", "test:a:new"),),
        introduced=(Finding("test:a:new", 1, ""),),
    )

    record = _built(baseline=VALIDATION, after=after)

    assert ["baseline/build", "baseline/test", "after/test"] == [c.name for c in record.checks]
    assert ("test:a:new", "test:a:old") == record.checks[-1].findings


def test_cut_patch_ends_at_a_line_with_a_mark() -> None:
    record = _built(patch="+one\n+two\n+thr", patch_is_cut=True)
    assert record.patch.startswith("+one\n+two\n\n[cut here")


def test_target_is_told() -> None:
    target = _built(target=TARGET).target
    assert target is not None
    assert ("tinylib", "1.0.0", "1.1.0") == (target.name, target.from_version, target.to_version)


def test_notes_say_what_a_reader_must_know_about_tests() -> None:
    """§7.2: no tests, flaky ones, and tests that passed before and are gone."""
    none = replace(VALIDATION, tests_exist=False)
    after = replace(VALIDATION, flaky=("test:a:f",), lost_tests=(LostTest("a::b", "skipped"),))
    assert "no tests" in validation_notes(none, none)[0]
    notes = validation_notes(VALIDATION, after)
    assert ("flaky, counts for nothing: test:a:f", "passed before, skipped now: a::b") == notes
    regressed = replace(VALIDATION, introduced=(Finding("test:a:n", 1, ""),))
    assert ("new after the upgrade: test:a:n",) == validation_notes(VALIDATION, regressed)


def test_a_target_that_no_check_installs_is_told() -> None:
    (note,) = untried_notes(("wide",), Target("wide", "1.0", "1.1"))

    assert "wide is in no group or extra that the checks install" in note
    assert () == untried_notes(("wide",), Target("aa", "1.0", "1.1"))


def test_candidates_are_listed_with_all_reasons_eligible_first() -> None:
    young = Candidate(
        "a",
        "1",
        "2",
        ChangeClass.MAJOR,
        "t",
        (Ineligibility("too_young", "1 h"), Ineligibility("denied", "x")),
    )
    fine = Candidate("b", "1.0", "1.1", ChangeClass.MINOR, "t", ())
    notes = candidate_notes(CandidateList("t", (young, fine), (fine.target,)))
    assert (
        "b 1.0 -> 1.1 (minor): eligible",
        "a 1 -> 2 (major): too_young: 1 h; denied: x",
    ) == notes


def test_an_end_without_candidate_says_why_the_asked_version_is_out() -> None:
    other = Candidate(
        "a", "1", "2", ChangeClass.MAJOR, "t", (Ineligibility("not_named", "the run names b"),)
    )
    asked = Candidate(
        "b", "1", "3", ChangeClass.MAJOR, "t", (Ineligibility("toolchain", "it needs Python 3.10"),)
    )

    message = why_nothing(CandidateList("t", (other, asked), ()))

    assert "b 3 isn't eligible: toolchain: it needs Python 3.10" == message


def test_an_end_without_candidate_counts_what_keeps_several_out() -> None:
    young = Ineligibility("too_young", "1 h")
    rows = (
        Candidate("a", "1", "2", ChangeClass.MAJOR, "t", (young, Ineligibility("denied", "x"))),
        Candidate("a", "1", "3", ChangeClass.MAJOR, "t", (young,)),
    )

    assert "none of 2 newer versions is eligible: denied 1, too_young 2" == why_nothing(
        CandidateList("t", rows, ())
    )
    assert {"denied": 1, "too_young": 2} == counted_reasons(rows)
    assert "no direct dependency has a newer version" == why_nothing(CandidateList("t", (), ()))


def test_closure_and_what_was_held_are_told() -> None:
    changes = (
        LockChange("tinylib", "target", ("1.0.0",), ("1.1.0",)),
        LockChange("dep", "raised", ("1",), ("2",), held_from="3"),
        LockChange("new", "entered", (), ("1",)),
    )
    assert ("dep: 1 -> 2 (raised)", "new: absent -> 1 (entered)") == closure_notes(
        changes, "tinylib"
    )
    assert ("dep is held at 2; the resolver would have taken 3",) == held_notes(changes)
