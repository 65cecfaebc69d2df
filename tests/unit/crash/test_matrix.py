"""The printed matrix: one line per fault point, and a failure for each that no test reached."""

import json
from pathlib import Path

import pytest

from crashmatrix import main
from crashmatrix import test_of as named_test
from support.crash import KILLS, declared_retries
from upgraderun_protocol.effects import Program, points_of
from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.ids import EntryId, Epoch, WriterTag

PUBLISHER = Program.PUBLISHER
ONLY = ("--only", str(PUBLISHER), "--results")


def results(folder: Path, *, without: str = "") -> str:
    """What a run of the publisher's tests keeps."""
    lines = [
        json.dumps(
            {
                "program": PUBLISHER,
                "point": KILLS[PUBLISHER][point].spelt(point),
                "scenario": "s",
                "found": "f",
                "ended": "e",
                "retries": {"end done": 1},
            }
        )
        for point in points_of(PUBLISHER)
        if point != without
    ]
    file = folder / "results.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_every_point_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main([*ONLY, results(tmp_path)])

    said = capsys.readouterr().out
    count = len(points_of(PUBLISHER))
    assert "| publisher | `push.applied@1` | s | f | e | end done 1 |" in said
    assert f"{count} of {count} points were reached" in said


def test_a_point_that_no_test_reached_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main([*ONLY, results(tmp_path, without="push.applied")])

    assert "| publisher | `push.applied@1` | - | NOT REACHED | - | - |" in capsys.readouterr().out


def test_the_list_names_a_test_for_each_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--list"])

    lines = capsys.readouterr().out.splitlines()
    assert sum(len(points_of(program)) for program in Program) == len(lines)
    assert (
        "tests/api/runner_api/test_tokens.py::TestCrash::"
        "test_the_next_call_mints_under_the_next_count[push-applied]"
    ) == named_test(Program.OPERATOR, "push_token.applied")


def entry(seq: int, name: str, kind: str, state: EntryState) -> Entry:
    return Entry(
        seq=seq,
        id=EntryId(name),
        kind=kind,
        state=state,
        at="2026-11-30T12:00:00Z",
        attempt=WriterTag("a1"),
        epoch=Epoch(1),
        data={},
        artifacts={},
    )


DONE = entry(1, "s0", "step", EntryState.DONE)
CUT = entry(1, "s0", "step", EntryState.INTERRUPTED)
AGAIN = entry(2, "s1", "step", EntryState.DONE)
BASELINE = entry(3, "baseline/2", "baseline", EntryState.DONE)


def test_what_was_cut_short_may_be_done_once_more() -> None:
    assert {"step interrupted": 1} == declared_retries("promotion_first", (CUT, AGAIN), (DONE,))


def test_what_stands_though_it_was_cut_short_needs_no_repetition() -> None:
    assert {"step interrupted": 1} == declared_retries("file_write", (CUT,), (DONE,))


@pytest.mark.parametrize(
    ("disturbed", "said"), [((), "missing"), ((DONE, BASELINE), "repeated without a declaration")]
)
def test_anything_else_is_told(disturbed: tuple[Entry, ...], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        declared_retries("promotion_first", disturbed, (DONE,))
