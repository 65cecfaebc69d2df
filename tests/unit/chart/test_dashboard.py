"""The dashboard: every query is PromQL over series and labels that the operator exports."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from clusterlib.host import TEST_PACKAGES, ensure_packages
from support.chart import CHART, render
from upgraderun_operator.metrics import Metrics

DASHBOARD: dict[str, Any] = json.loads(
    (CHART / "files" / "dashboard.json").read_text(encoding="utf-8")
)
SCRAPED = {"pod", "instance", "le"}
"""Labels that Prometheus adds, and the one of every histogram."""


def targets() -> Iterator[tuple[str, dict[str, str]]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target


def series() -> dict[str, set[str]]:
    """Labels of every exported series, by its name."""
    found: dict[str, set[str]] = {}
    for metric in vars(Metrics()).values():
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
            for ending in endings.get(family.type, ("",)):
                found[family.name + ending] = set(metric._labelnames)
    return found


@pytest.mark.parametrize(("title", "target"), list(targets()), ids=lambda value: str(value)[:24])
def test_a_query_names_series_and_labels_that_are_exported(
    title: str, target: dict[str, str]
) -> None:
    query, legend, exported = target["expr"], target["legendFormat"], series()
    names = set(re.findall(r"upgraderun_\w+", query))
    labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", query))
    labels |= {word for part in re.findall(r"by \(([^)]*)\)", query) for word in part.split(", ")}
    labels |= set(re.findall(r"{{(\w+)}}", legend))

    assert names, title
    assert names <= set(exported)
    assert labels <= SCRAPED | set().union(*(exported[name] for name in names))


def test_every_query_is_promql(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": target["expr"].replace("$__rate_interval", "5m")}
        for number, (_, target) in enumerate(targets())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    ensure_packages(TEST_PACKAGES)

    done = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


@pytest.mark.parametrize(
    "word",
    ["phase", "outcome", "Conflict", "Queue", "Latency", "Lease", "API", "Leader", "Artifact"],
)
def test_what_operators_look_for_has_a_panel(word: str) -> None:
    assert [panel for panel in DASHBOARD["panels"] if word in panel["title"]]


def test_panels_say_what_they_show_and_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert panel["description"].endswith(".")
        assert place["x"] + place["w"] <= 24
        assert not cells & mine
        cells |= mine


def test_the_config_map_is_what_a_sidecar_looks_for() -> None:
    objects = render({"monitoring": {"dashboard": {"enabled": True, "annotations": {"f": "x"}}}})
    (found,) = [obj for obj in objects if obj["kind"] == "ConfigMap"]

    assert "1" == found["metadata"]["labels"]["grafana_dashboard"]
    assert {"f": "x"} == found["metadata"]["annotations"]
    assert json.loads(found["data"]["upgraderun-operator.json"]) == DASHBOARD
    assert not [obj for obj in render() if obj["kind"] == "ConfigMap"]
