"""The built-in agent, rule by rule (upgrade-run.md §2)."""

import re2

from support.runviews import CODEMOD, EDITED, OTHER, TARGET, Story
from upgraderun_protocol.bundle import Codemod
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.agent.rules import Situation, decide, pattern_of


def _decided(story: Story, *codemods: Codemod) -> Call:
    return decide(
        Situation(story.view, (TARGET, OTHER), codemods, lambda path: path.endswith(".py"))
    )


class TestOrder:
    """Rules are tried from first to last; the first that fits decides."""

    def test_first_ranked_pair_is_applied_where_nothing_was_tried(self) -> None:
        expected = Call("apply_upgrade", {"dependency": "tinylib", "version": "1.1.0"})
        assert expected == _decided(Story())

    def test_interrupted_apply_is_tried_again(self) -> None:
        assert "apply_upgrade" == _decided(Story().promotion_interrupted()).tool

    def test_pair_is_normalised_after_it_was_promoted(self) -> None:
        assert "normalize_manifests" == _decided(Story().applied()).tool

    def test_interrupted_normalisation_is_repeated(self) -> None:
        story = Story().applied().interrupted("normalize_manifests")
        assert "normalize_manifests" == _decided(story).tool

    def test_normalised_tree_is_validated(self) -> None:
        assert "run_validation" == _decided(Story().applied().normalised()).tool

    def test_clean_validation_leads_to_a_proposal(self) -> None:
        call = _decided(Story().applied().normalised().validated())
        assert "prepare_proposal" == call.tool
        assert "Upgrade tinylib from 1.0.0 to 1.1.0" == call.arguments["title"]

    def test_validation_of_an_earlier_tree_does_not_count(self) -> None:
        story = Story().applied().normalised().validated().edited()
        assert "run_validation" == _decided(story).tool


class TestBlocked:
    """Rule 6: a code that Baseline and Rules share."""

    def test_refused_upgrade_is_reported_with_the_gates_code(self) -> None:
        call = _decided(Story().failed("apply_upgrade", "admission_refused", "source_changed"))
        assert ("report_blocked", "admission_refused") == (call.tool, call.arguments["code"])
        assert "source_changed" == call.arguments["reason"]

    def test_refused_normalisation(self) -> None:
        story = Story().applied().failed("normalize_manifests", "normalization_refused")
        assert "normalization_refused" == _decided(story).arguments["code"]

    def test_regression_without_codemod(self) -> None:
        story = Story().applied().normalised().validated("2:abc")
        assert "regressed" == _decided(story).arguments["code"]

    def test_inconclusive_validation_is_not_called_a_regression(self) -> None:
        story = Story().applied().normalised().validated(conclusive=False)
        assert "validation_inconclusive" == _decided(story, CODEMOD).arguments["code"]

    def test_refused_proposal(self) -> None:
        story = Story().applied().normalised().validated().failed("prepare_proposal", "not_ready")
        assert "not_ready" == _decided(story).arguments["code"]

    def test_unexercised_repair_is_reported_as_not_ready(self) -> None:
        story = Story().applied().normalised().validated()
        story = story.failed("prepare_proposal", "repair_not_exercised")
        assert "not_ready" == _decided(story).arguments["code"]


class TestCodemods:
    """Rule 5: one import path is renamed, exact match, where dependency and range fit."""

    REGRESSED = staticmethod(lambda: Story().applied().normalised().validated("1:abc"))

    def test_search_comes_first(self) -> None:
        expected = Call("search_files", {"pattern": pattern_of(CODEMOD)})
        assert expected == _decided(self.REGRESSED(), CODEMOD)

    def test_each_hit_is_one_edit_before_the_tree_is_judged_again(self) -> None:
        story = self.REGRESSED().searched(
            pattern_of(CODEMOD),
            ("a.py", "from tinylib.prices import total"),
            ("README.md", "`import tinylib.prices`"),
            ("b.py", "import tinylib.prices as p"),
        )
        first = _decided(story, CODEMOD)
        assert "from tinylib.cents import total" == first.arguments["new_text"]
        story.did("edit_file", {"tool": "edit_file", "tree": EDITED}, first.arguments)
        second = _decided(story, CODEMOD)
        assert ("b.py", "import tinylib.cents as p") == (
            second.arguments["path"],
            second.arguments["new_text"],
        )
        story.did("edit_file", {"tool": "edit_file", "tree": "e" * 40}, second.arguments)
        assert "run_validation" == _decided(story, CODEMOD).tool

    def test_codemod_without_hits_is_tried_and_over(self) -> None:
        story = self.REGRESSED().searched(pattern_of(CODEMOD))
        assert "regressed" == _decided(story, CODEMOD).arguments["code"]

    def test_other_dependency_or_range_never_fits(self) -> None:
        others = (
            Codemod("zlib-ng", ">=1", "a.b", "a.c"),
            Codemod("tinylib", ">=2", "a.b", "a.c"),
            Codemod("tinylib", "not a range", "a.b", "a.c"),
        )
        assert "regressed" == _decided(self.REGRESSED(), *others).arguments["code"]

    def test_pattern_meets_the_path_as_a_whole_only(self) -> None:
        pattern = re2.compile(pattern_of(CODEMOD))
        found = ["from tinylib.prices import x", "tinylib.prices", "(tinylib.prices.total)"]
        missed = ["from tinylib.prices2 import x", "mytinylib.prices", "x.tinylib.prices"]
        assert [True] * 3 == [bool(pattern.search(line)) for line in found]
        assert [False] * 3 == [bool(pattern.search(line)) for line in missed]

    def test_failed_edit_ends_the_repair(self) -> None:
        story = self.REGRESSED().searched(pattern_of(CODEMOD), ("a.py", "import tinylib.prices"))
        edit = _decided(story, CODEMOD)
        story.failed("edit_file", "no_unique_match", arguments=edit.arguments)
        assert "regressed" == _decided(story, CODEMOD).arguments["code"]
