"""The values of `-P` for a target (uv-facts §2)."""

from support.locks import Locked, lock_text, manifest_text, pair
from upgraderun_runner.ecosystems.base import Target
from upgraderun_runner.ecosystems.python.lock import lock_model
from upgraderun_runner.ecosystems.python.resolve import pins

TARGET = Target("aa", "2.0", "2.1")
LOW, HIGH = "python_full_version < '3.10'", "python_full_version >= '3.10'"


def test_a_single_entry_gets_a_plain_pin() -> None:
    model = lock_model(pair(manifest_text("aa"), lock_text(Locked("aa", "2.0"))))

    assert ("aa==2.1",) == pins(model, TARGET, neutral=False)
    assert ("aa==2.0",) == pins(model, TARGET, neutral=True)


def test_each_fork_gets_its_own_pin_with_its_own_marker() -> None:
    lock = lock_text(Locked("aa", "1.0", markers=(LOW,)), Locked("aa", "2.0", markers=(HIGH,)))
    model = lock_model(pair(manifest_text("aa"), lock))

    assert (f"aa==1.0 ; {LOW}", f"aa==2.1 ; {HIGH}") == pins(model, TARGET, neutral=False)
    assert (f"aa==1.0 ; {LOW}", f"aa==2.0 ; {HIGH}") == pins(model, TARGET, neutral=True)


def test_several_markers_of_one_entry_are_joined() -> None:
    model = lock_model(
        pair(manifest_text("aa"), lock_text(Locked("aa", "2.0", markers=(LOW, HIGH))))
    )

    assert (f"aa==2.1 ; ({LOW}) or ({HIGH})",) == pins(model, TARGET, neutral=False)
