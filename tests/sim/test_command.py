"""`hack/crash-pairs` tells what was played, and fails for a history that did otherwise."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from crashpairs import Row, main, read_strike
from support.sim.strikes import Strike
from upgraderun_protocol.effects import Program

PVC = Strike(Program.OPERATOR, "pvc.before")


def test_a_strike_is_spelt_and_read_alike() -> None:
    third = Strike(Program.RUNNER, "artifact.applied", 3)

    assert (PVC, third) == (read_strike(str(PVC)), read_strike(str(third)))
    assert PVC == read_strike("operator:pvc.before")


def test_two_strikes_are_told_with_their_journal(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--play", "operator:pvc.before", "publisher:push.applied"])

    said = capsys.readouterr().out
    assert "d1/end done" in said
    assert "finalized done" in said
    assert "Published after" in said


@pytest.mark.parametrize(("failures", "code"), [([], 0), ([f"{PVC}: tree: a instead of b"], 1)])
def test_rows_of_an_earlier_call_are_summed_up(
    failures: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["--list"])
    firsts = capsys.readouterr().out.splitlines()
    kept = tmp_path / "rows.jsonl"
    rows = [Row(first, pairs=7, played=8, without=3) for first in firsts]
    rows[0].failures = failures
    kept.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))

    assert code == main(["--results", str(kept)])

    said = capsys.readouterr().out
    runners = sum(first.startswith("runner:") for first in firsts)
    assert f"| runner | {runners} of {runners} | {7 * runners} | {8 * runners} |" in said
    assert "not passed: runner:file_write.before: `patch-safe` repairs nothing" in said
    assert (f"again: hack/crash-pairs --play {PVC}" in said) is bool(failures)
    assert f"{8 * len(firsts)} histories" in said
