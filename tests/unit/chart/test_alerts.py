"""Alert rules: promtool's cases pass, and each rule has a case, a runbook entry and real series."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterlib.host import TEST_PACKAGES, ensure_packages
from upgraderun_operator.metrics import Metrics

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RULES_FILE = ROOT / "charts" / "upgraderun-operator" / "rules" / "upgraderun.rules.yaml"
CASES_FILE = HERE / "alerts.test.yaml"
RUNBOOK = ROOT / "docs" / "runbook.md"


def rules() -> list[dict[str, Any]]:
    loaded = yaml.safe_load(RULES_FILE.read_text(encoding="utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def cases() -> list[dict[str, Any]]:
    loaded = yaml.safe_load(CASES_FILE.read_text(encoding="utf-8"))
    return [case for test in loaded["tests"] for case in test["alert_rule_test"]]


ALERTS = [rule["alert"] for rule in rules()]


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    ensure_packages(TEST_PACKAGES)
    return subprocess.run(
        ["promtool", *arguments], cwd=HERE, capture_output=True, text=True, check=False
    )


def test_the_cases_of_promtool_pass() -> None:
    """reliability.md §9: each with a promtool test."""
    done = promtool("test", "rules", CASES_FILE.name)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_a_rule_that_is_weakened_fails_its_cases(tmp_path: Path) -> None:
    """Else the cases above could not fail."""
    text = RULES_FILE.read_text(encoding="utf-8")
    weak = text.replace("(upgraderun_runs_in_conflict) > 0", "(upgraderun_runs_in_conflict) > 1")
    assert weak != text
    (tmp_path / "rules.yaml").write_text(weak, encoding="utf-8")
    loaded = yaml.safe_load(CASES_FILE.read_text(encoding="utf-8"))
    loaded["rule_files"] = ["rules.yaml"]
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(loaded), encoding="utf-8")

    done = promtool("test", "rules", str(tmp_path / "cases.yaml"))

    assert 0 != done.returncode
    assert "UpgradeRunConflict" in done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_fires_in_one_case_and_is_silent_in_another(alert: str) -> None:
    fires = [bool(case["exp_alerts"]) for case in cases() if case["alertname"] == alert]

    assert {True, False} == set(fires)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alert_has_its_place_in_the_runbook(rule: dict[str, Any]) -> None:
    """reliability.md §9: a runbook entry each."""
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = [
        line.removeprefix("## ").strip().lower()
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]

    assert rule["alert"].lower() == anchor
    assert anchor in headings


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alert_rests_on_series_that_the_operator_exports(rule: dict[str, Any]) -> None:
    exported = {
        name
        for family in Metrics().registry.collect()
        for name in (family.name, *(sample.name for sample in family.samples))
    }
    words = "".join(c if c.isalnum() or c == "_" else " " for c in rule["expr"]).split()

    used = {word for word in words if word.startswith("upgraderun_")}

    assert used
    assert used <= exported
