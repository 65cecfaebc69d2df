"""Settings and metrics: what a wrong value says, what is there from the start."""

import pytest

from upgraderun_operator.keys import Key
from upgraderun_operator.metrics import Metrics
from upgraderun_operator.settings import SettingError, read_settings

LEAST = {"UPGRADERUN_NAMESPACE": "upgraderun-system", "UPGRADERUN_IDENTITY": "pod-1"}


def test_two_variables_are_enough() -> None:
    settings = read_settings(LEAST)

    assert "https://upgraderun-operator.upgraderun-system.svc:8443" == settings.operator_url
    assert () == settings.watch_namespaces
    assert not settings.allow_inline
    assert settings.tls_renew


def test_lists_and_flags_are_read() -> None:
    settings = read_settings(
        {**LEAST, "UPGRADERUN_WATCH_NAMESPACES": "a, b,", "UPGRADERUN_ALLOW_INLINE": "True"}
    )

    assert ("a", "b") == settings.watch_namespaces
    assert settings.allow_inline


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("UPGRADERUN_NAMESPACE", " ", "UPGRADERUN_NAMESPACE is not set"),
        ("UPGRADERUN_WORKERS", "0", "from 1 to 64"),
        ("UPGRADERUN_WORKERS", "many", "whole number"),
        ("UPGRADERUN_ALLOW_INLINE", "yes", "takes true or false"),
    ],
)
def test_a_wrong_value_names_the_variable_and_what_it_takes(
    name: str, value: str, said: str
) -> None:
    with pytest.raises(SettingError, match=said) as caught:
        read_settings({**LEAST, name: value})

    assert name in str(caught.value)


def test_conflict_series_exist_before_any_conflict_and_fall_back_to_zero() -> None:
    """reliability.md §9: every kind preset, so that neither a counter born at 1 hides it."""
    metrics = Metrics()
    text = metrics.render().decode()
    assert 'upgraderun_runs_in_conflict{kind="foreign_branch"} 0.0' in text
    assert 'upgraderun_conflicts_total{kind="foreign_branch"} 0.0' in text

    metrics.show_conflicts({Key("a", "one"): "foreign_branch", Key("b", "one"): "foreign_branch"})
    assert 'kind="foreign_branch"} 2.0' in metrics.render().decode()
    metrics.show_conflicts({})
    assert 'upgraderun_runs_in_conflict{kind="foreign_branch"} 0.0' in metrics.render().decode()


def test_a_run_in_conflict_counts_once_whoever_saw_it_first() -> None:
    """A new leader lists the run, then finalizes it: the gauge must not show two."""
    metrics, run = Metrics(), Key("a", "one")
    metrics.show_conflicts({run: "head_moved"})

    metrics.ended(run, "publication_conflict", "head_moved")
    assert 'upgraderun_runs_in_conflict{kind="head_moved"} 1.0' in metrics.render().decode()
    metrics.ended(Key("a", "two"), "publication_conflict", "head_moved")

    text = metrics.render().decode()
    assert 'upgraderun_runs_in_conflict{kind="head_moved"} 2.0' in text
    assert 'upgraderun_conflicts_total{kind="head_moved"} 2.0' in text


def test_a_run_counts_where_it_stands_until_it_is_finished_or_gone() -> None:
    metrics = Metrics()
    one, two = Key("a", "one"), Key("a", "two")

    def counted() -> dict[str, float]:
        return {
            sample.labels["phase"]: sample.value
            for family in metrics.runs.collect()
            for sample in family.samples
            if sample.value
        }

    assert 'upgraderun_runs{phase="Queued"} 0.0' in metrics.render().decode()
    metrics.stands(one, "Queued")
    metrics.stands(two, "Queued")
    metrics.stands(one, "Baseline")
    assert {"Queued": 1.0, "Baseline": 1.0} == counted()
    metrics.stands(one, "Finished")
    metrics.stands(one, None)
    assert {"Queued": 1.0} == counted()
    metrics.forget_runs()
    assert {} == counted()
