"""Manifests of docs/samples: complete ones are taken, invalid ones refused with the words they say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kinds import ALICE, BOB, Kinds
from support.kube import Kube
from upgraderun_operator.model.objects import MODELS, strict

SAMPLES = Path(__file__).resolve().parents[3] / "docs" / "samples"
INVALID = sorted((SAMPLES / "invalid").glob("*.yaml"))
VALID = ("policy.yaml", "policy-app.yaml", "run.yaml", "run-dry.yaml", "approval.yaml")
USERS = {"UpgradePolicy": "admin@example.com", "UpgradeRun": ALICE, "UpgradeApproval": BOB}


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def user(kinds: Kinds, kind: str) -> Kube:
    """Who creates such an object, with every right, so that only the kinds' rules speak."""
    return kinds.admin.as_user(USERS[kind], ("system:masters",))


def creator_of_invalid(kinds: Kinds) -> Kube:
    return kinds.admin.as_user(ALICE, ("system:masters",))


def only_known(stored: Any, given: Any) -> Any:
    """What was stored, without the defaults that the server filled in."""
    if not isinstance(given, dict):
        return stored
    return {key: only_known(stored[key], given[key]) for key in given}


@pytest.fixture(scope="module")
def upgrades(kinds: Kinds) -> str:
    namespace = load(SAMPLES / "namespace.yaml")
    kinds.admin.apply(namespace)
    return str(namespace["metadata"]["name"])


@pytest.mark.parametrize("name", VALID)
def test_complete_sample_is_accepted_as_written(kinds: Kinds, upgrades: str, name: str) -> None:
    """Issue slice 2: complete sample manifests that a test applies."""
    sample = load(SAMPLES / name)

    answer = user(kinds, sample["kind"]).create(sample)

    assert answer.ok, answer.message
    assert sample["spec"] == only_known(answer.body["spec"], sample["spec"])


@pytest.mark.parametrize("name", VALID)
def test_complete_sample_is_read_without_an_unknown_field(name: str) -> None:
    sample = load(SAMPLES / name)

    assert isinstance(strict(sample), MODELS[sample["kind"]])


def test_complete_policy_and_run_name_every_field() -> None:
    """A sample that lags behind the kind would teach less than there is."""
    for name in ("policy.yaml", "run.yaml"):
        sample = load(SAMPLES / name)
        known = set(MODELS[sample["kind"]].model_fields["spec"].annotation.model_fields)  # type: ignore[union-attr]  # both kinds have a spec
        assert len(known) == len(sample["spec"])


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_sample_is_refused_with_a_message_that_helps(
    kinds: Kinds, upgrades: str, path: Path
) -> None:
    """Issue slice 2: invalid ones are refused with a message that helps."""
    first, *_ = path.read_text(encoding="utf-8").splitlines()
    expected = first.removeprefix("# expect: ")

    answer = creator_of_invalid(kinds).create(load(path))

    assert not answer.ok
    assert expected in answer.message
