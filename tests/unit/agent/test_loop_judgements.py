"""Ends, limits, policy and the decision list: pure judgements of the loop (§2, §4, §9.3, §9.5)."""

from dataclasses import replace

import pytest

from support.runviews import LIMITS, SCOPE, Story
from upgraderun_protocol.questions import QuestionKind
from upgraderun_runner.agent import scripted
from upgraderun_runner.agent.calls import Call, read_call, tool_name
from upgraderun_runner.agent.ending import End, as_explained, end_of
from upgraderun_runner.agent.limits import limit_reached
from upgraderun_runner.agent.policy import (
    Abort,
    Allow,
    Ask,
    Deny,
    Facts,
    Ruling,
    Unexercised,
    Write,
    rule_on,
)
from upgraderun_runner.agent.view import Phase

BLOCKED = {"reason": "no way", "code": "regressed"}


def _outcome(story: Story) -> str | None:
    end = end_of(story.view)
    return None if end is None else end.outcome


class TestEnds:
    """§4: the same end is read from the journal by every incarnation."""

    def test_nothing_ends_a_run_that_goes_on(self) -> None:
        assert _outcome(Story()) is None
        assert _outcome(Story().applied().normalised().validated("1:a")) is None

    def test_frozen_proposal_ends_it_also_when_recovery_froze_it(self) -> None:
        """Case 5 of §13.6: the step may be interrupted, the proposal stands."""
        assert "proposal_prepared" == _outcome(Story().applied().validated().frozen())

    @pytest.mark.parametrize(
        "reason", ["acquisition_failed", "scope_exceeded", "repair_budget_exhausted"]
    )
    def test_these_failures_end_the_run_in_every_mode(self, reason: str) -> None:
        assert reason == _outcome(Story().applied().failed("run_validation", reason))

    def test_other_failures_are_observations(self) -> None:
        assert _outcome(Story().failed("read_file", "not_found")) is None

    def test_code_counts_only_if_the_journal_bears_it_out(self) -> None:
        regressed = Story().applied().normalised().validated("1:a")
        clean = Story().applied().normalised().validated()
        assert "regressed" == _outcome(regressed.did("report_blocked", BOX, BLOCKED))
        assert "blocked" == _outcome(clean.did("report_blocked", BOX, BLOCKED))

    @pytest.mark.parametrize(
        ("story", "code"),
        [
            (Story().failed("apply_upgrade", "admission_refused"), "admission_refused"),
            (
                Story().failed("apply_upgrade", "requires_newer_toolchain"),
                "requires_newer_toolchain",
            ),
            (
                Story().applied().failed("normalize_manifests", "normalization_refused"),
                "normalization_refused",
            ),
            (Story().applied().validated(conclusive=False), "validation_inconclusive"),
            (Story().applied().validated().failed("prepare_proposal", "not_ready"), "not_ready"),
        ],
    )
    def test_each_code_with_its_evidence(self, story: Story, code: str) -> None:
        arguments = {"reason": "r", "code": code}
        assert code == _outcome(story.did("report_blocked", BOX, arguments))
        assert "blocked" == _outcome(Story().did("report_blocked", BOX, arguments))

    def test_regression_of_another_tree_bears_nothing_out(self) -> None:
        story = Story().applied().validated("1:a").edited().did("report_blocked", BOX, BLOCKED)
        assert "blocked" == _outcome(story)

    def test_block_after_an_unexercised_repair_names_the_repair(self) -> None:
        story = Story().applied().validated()
        story = story.failed("prepare_proposal", "repair_not_exercised", "app.py:3-4")
        end = end_of(story.did("report_blocked", BOX, {"reason": "r"}).view)
        assert end is not None
        assert ("repair_not_exercised", True) == (end.outcome, "app.py:3-4" in end.message)

    def test_an_edit_since_makes_it_an_ordinary_block(self) -> None:
        story = Story().applied().validated().failed("prepare_proposal", "repair_not_exercised")
        story = story.edited().did("report_blocked", BOX, {"reason": "r"})
        assert "blocked" == _outcome(story)

    def test_regression_is_never_renamed(self) -> None:
        story = Story().applied().validated().failed("prepare_proposal", "repair_not_exercised")
        end = End("regressed", "x")
        assert end == as_explained(end, story.view)


BOX = {"tool": "report_blocked"}


class TestLimits:
    """§9.5: tested before each step."""

    def test_nothing_is_spent_at_first(self) -> None:
        assert limit_reached(Story().applied().view, LIMITS) is None

    def test_steps_count_interrupted_ones(self) -> None:
        story = Story().interrupted("git_diff").interrupted("git_diff")
        end = limit_reached(story.view, replace(LIMITS, steps=2))
        assert end is not None
        assert "limit_exhausted" == end.outcome

    def test_third_failure_in_a_row_ends_it(self) -> None:
        story = Story().failed("read_file", "a", arguments={"path": "1"})
        story.failed("read_file", "a", arguments={"path": "2"})
        assert limit_reached(story.view, LIMITS) is None
        story.interrupted("git_diff").undecodable()
        end = limit_reached(story.view, LIMITS)
        assert end is not None
        assert "limit_exhausted" == end.outcome

    def test_success_between_resets_the_row(self) -> None:
        story = Story().failed("read_file", "a", arguments={"path": "1"})
        story.failed("read_file", "a", arguments={"path": "2"}).did(
            "git_diff", {"tool": "git_diff"}
        )
        story.failed("read_file", "a", arguments={"path": "3"})
        assert limit_reached(story.view, LIMITS) is None

    def test_same_call_with_the_same_observation_three_times_is_a_loop(self) -> None:
        story = Story()
        for _ in range(3):
            story.did("git_diff", {"tool": "git_diff"})
        end = limit_reached(story.view, LIMITS)
        assert end is not None
        assert "loop_detected" == end.outcome

    def test_three_validations_with_one_introduced_set_spend_the_repair(self) -> None:
        story = Story().applied().validated("1:a")
        for tree in ("c" * 40, "d" * 40):
            story.edited(tree, tree=tree).validated("1:a", tree=tree)
        end = limit_reached(story.view, replace(LIMITS, repeated_calls=99))
        assert end is not None
        assert "repair_budget_exhausted" == end.outcome

    @pytest.mark.parametrize("sets", [("0", "0", "0"), ("1:a", "1:b", "1:a")])
    def test_empty_or_changing_sets_do_not(self, sets: tuple[str, ...]) -> None:
        story = Story().applied()
        for number, found in enumerate(sets):
            tree = f"{number}" * 40
            story.edited(tree, tree=tree).validated(found, tree=tree)
        assert limit_reached(story.view, replace(LIMITS, repeated_calls=99)) is None


FACTS = Facts(
    phase=Phase.REPAIR,
    phases=frozenset({Phase.REPAIR}),
    eligible=frozenset({("tinylib", "1.1.0")}),
    validation_cycles=0,
    limits=LIMITS,
    scope=SCOPE,
)


UNEXERCISED = Unexercised("e" * 40, ("src/a.py:1-2: not run",))


class TestPolicy:
    """§9.3, first match."""

    @pytest.mark.parametrize(
        ("tool", "facts", "ruling"),
        [
            ("run_validation", FACTS, Allow),
            ("run_validation", replace(FACTS, phase=Phase.SELECT), Deny),
            ("run_validation", replace(FACTS, validation_cycles=8), Abort),
            ("push", replace(FACTS, phases=frozenset()), Deny),
            ("write_file", replace(FACTS, write=Write(None, 10, 200)), Allow),
            ("write_file", replace(FACTS, write=Write("protected", 1, 1)), Deny),
            ("write_file", replace(FACTS, write=Write("protected", 99, 1)), Deny),
            ("write_file", replace(FACTS, write=Write(None, 11, 1)), Ask),
            ("write_file", replace(FACTS, write=Write(None, 1, 201)), Ask),
            ("write_file", replace(FACTS, write=Write(None, 11, 1), expanded=True), Allow),
            ("write_file", replace(FACTS, write=Write(None, 21, 1), expanded=True), Abort),
            ("write_file", replace(FACTS, write=Write("protected", 11, 1), expanded=True), Deny),
            ("prepare_proposal", FACTS, Allow),
            ("prepare_proposal", replace(FACTS, unexercised=UNEXERCISED), Ask),
            (
                "prepare_proposal",
                replace(FACTS, unexercised=UNEXERCISED, granted=frozenset({UNEXERCISED.subject})),
                Allow,
            ),
            ("write_file", replace(FACTS, write=Write(None, 21, 1)), Abort),
            ("write_file", replace(FACTS, write=Write(None, 1, 401)), Abort),
        ],
    )
    def test_table(self, tool: str, facts: Facts, ruling: type[Ruling]) -> None:
        assert isinstance(rule_on(Call(tool, {}), facts), ruling)

    @pytest.mark.parametrize(("version", "ruling"), [("1.1.0", Allow), ("1.1.1", Deny), ("", Deny)])
    def test_only_eligible_pairs_are_applied(self, version: str, ruling: type[Ruling]) -> None:
        call = Call("apply_upgrade", {"dependency": "tinylib", "version": version})
        assert isinstance(rule_on(call, FACTS), ruling)

    def test_only_the_granted_call_passes_the_soft_scope(self) -> None:
        asked, other = Call("write_file", {"path": "a"}), Call("write_file", {"path": "b"})
        facts = replace(FACTS, write=Write(None, 11, 1), granted=frozenset({asked.digest}))
        assert isinstance(rule_on(asked, facts), Allow)
        ruling = rule_on(other, facts)
        assert isinstance(ruling, Ask)
        assert (QuestionKind.SCOPE_EXPANSION, other.digest) == (ruling.kind, ruling.subject)

    def test_other_ranges_or_another_tree_are_asked_anew(self) -> None:
        facts = replace(FACTS, granted=frozenset({UNEXERCISED.subject}))
        for changed in (
            replace(UNEXERCISED, tree="f" * 40),
            replace(UNEXERCISED, ranges=("src/a.py:1-2: not run", "src/a.py:9-9: not run")),
        ):
            ruling = rule_on(Call("prepare_proposal", {}), replace(facts, unexercised=changed))
            assert isinstance(ruling, Ask)
            assert "src/a.py:1-2" in ruling.message

    def test_abort_over_scope_ends_the_run_with_its_outcome(self) -> None:
        ruling = rule_on(Call("write_file", {}), replace(FACTS, write=Write(None, 21, 1)))
        assert isinstance(ruling, Abort)
        assert "scope_exceeded" == ruling.outcome
        assert "21 files" in ruling.message


class TestDecisions:
    """§9.1: stored verbatim before anything looks into it; invalid ones are observations."""

    @pytest.mark.parametrize(
        "value",
        ["text", None, [], {}, {"tool": "x"}, {"tool": 1, "arguments": {}},
         {"tool": "x", "arguments": []}, {"tool": "x", "arguments": {}, "more": 1}],
    )  # fmt: skip
    def test_other_shapes_are_invalid(self, value: object) -> None:
        assert read_call(value) is None

    @pytest.mark.parametrize(
        ("value", "name"),
        [({"tool": "git_diff"}, "git_diff"), ({"tool": "x" * 99}, "x" * 64), ("a", "invalid"),
         ({"tool": "späh"}, "invalid"), ({"tool": "a\nb"}, "invalid"), ({"tool": ""}, "invalid")],
    )  # fmt: skip
    def test_journal_gets_a_plain_name(self, value: object, name: str) -> None:
        assert name == tool_name(value)


def _line(tool: str) -> dict[str, object]:
    return {"tool": tool, "arguments": {}}


class TestScripted:
    """§2: decision k, where interrupted steps don't count."""

    LINES = b'{"tool":"a","arguments":{}}\n\n{"tool":"b","arguments":{}}\nno json\n'

    def test_interrupted_step_is_decided_again_with_the_same_line(self) -> None:
        decisions = scripted.read_decisions(self.LINES)
        story = Story()
        assert _line("a") == scripted.decide(decisions, story.view)
        story.interrupted("a")
        assert _line("a") == scripted.decide(decisions, story.view)
        story.failed("a", "policy_denied")
        assert _line("b") == scripted.decide(decisions, story.view)
        story.did("git_diff", {"tool": "git_diff"})
        assert "no json" == scripted.decide(decisions, story.view)
        story.undecodable()
        assert scripted.decide(decisions, story.view) is None

    def test_bytes_that_are_no_text_and_too_many_lines_are_refused(self) -> None:
        for content in (b"\xff", b"1\n" * 201):
            with pytest.raises(scripted.DecisionListError):
                scripted.read_decisions(content)
