"""Properties of the fold: any prefix folds, alone or continued (reliability.md I3, Q7)."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from support.journal_story import TO_FROZEN, Story, admit, incarnation, pod
from upgraderun_operator.journal.folding import run_state
from upgraderun_operator.journal.planning import Bounds
from upgraderun_operator.journal.run import view_of
from upgraderun_protocol.fold import Fold

_ALL = (admit(), pod("a1"), pod("a1", "done"), incarnation("a1", 1), *TO_FROZEN)


@settings(max_examples=25, deadline=None)
@given(cuts=st.sets(st.integers(1, len(_ALL) - 1)), soft=st.sampled_from([2048, 4096, 12288]))
def test_writes_segments_and_caches_never_change_the_fold(cuts: set[int], soft: int) -> None:
    """However the same entries are written and compacted, the fold is the same, cached or not."""
    reference = Story()
    reference.add(*_ALL, epoch=1)
    story = Story(bounds=Bounds(soft=soft))
    known = None
    edges = [0, *sorted(cuts), len(_ALL)]
    for start, stop in pairwise(edges):
        story.add(*_ALL[start:stop], epoch=1)
        known = view_of(story.raw, story.segments, known)

    assert known is not None
    assert known.state == reference.view.state
    assert known.journal.digest == reference.view.journal.digest
    assert view_of(story.raw, story.segments).state == known.state


@settings(max_examples=25, deadline=None)
@given(length=st.integers(0, len(_ALL)))
def test_every_prefix_folds(length: int) -> None:
    """Every prefix of a valid journal can be resumed (I3)."""
    story = Story()
    story.add(*_ALL, epoch=1)
    entries = list(story.view.state.fold)[:length]
    state = run_state(Fold(entries))

    assert state.seq == length
    assert state.fold.extended(list(story.view.state.fold)[length:]).seq == len(_ALL)
