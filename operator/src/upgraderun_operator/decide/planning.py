"""Plans of the next pod: its bundle, its intent, its manifest.

Callers: admission, attempts, granting. Everything comes from journal, frozen policy and spec.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upgraderun_operator.build.bundles import Subject, publisher_bundle, runner_bundle
from upgraderun_operator.build.frozen import FrozenAdmission
from upgraderun_operator.build.pods import (
    PodPlan,
    attempt_seconds,
    delivery_seconds,
    publisher_pod,
    runner_pod,
)
from upgraderun_operator.decide.make import INTENT, draft
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import known
from upgraderun_operator.journal.records import PodRecord, Role
from upgraderun_operator.model.policy import ResolvedPolicy
from upgraderun_protocol.bundle import Bundle, Delivery
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import CommitId, Sha256
from upgraderun_protocol.records import to_bytes
from upgraderun_protocol.slugs import branch_name, child_name

_IMAGE_WORDS_MAX = 150


@dataclass(frozen=True, slots=True)
class Planned:
    """An intent and the bundle that must be stored before it, with what evidence is bound to."""

    intent: Draft
    bundle: bytes
    config_hash: Sha256


def plan_attempt(
    seen: Observation, number: int, frozen: FrozenAdmission, commit: CommitId | None
) -> Planned:
    """Plan `a<number>` on this base; the journaled base wins over the wished commit."""
    base = seen.state.base.commit if seen.state.base is not None else commit
    subject = Subject(seen.view.ref, seen.run.spec, frozen.policy, frozen.branch, base)
    python = seen.state.python or ""
    bundle = runner_bundle(subject, f"a{number}", frozen.earlier, python)
    image = runner_image(frozen.policy, python)
    return _planned(seen, "attempt", f"a{number}", image, bundle)


def next_attempt(seen: Observation) -> Planned:
    """Plan the attempt after the last one: same base, same earlier proposals."""
    admission, frozen = seen.state.admission, known(seen.frozen)
    assert admission is not None
    assert frozen is not None
    return plan_attempt(seen, len(seen.state.attempts) + 1, frozen, admission.base_commit)


def next_delivery(seen: Observation, approvers: tuple[str, ...]) -> Planned:
    """Plan the next publisher: exactly the frozen proposal, exactly our branch."""
    proposal = seen.state.proposal
    assert proposal is not None
    tag = f"d{len(seen.state.deliveries) + 1}"
    delivery = Delivery(
        proposal_digest=Sha256(proposal.digest),
        record=proposal.record,
        commit=proposal.commit,
        tree=proposal.tree,
        base_commit=base_commit(seen),
        branch=our_branch(seen),
        approvers=approvers,
    )
    commit = base_commit(seen)
    subject = Subject(seen.view.ref, seen.run.spec, seen.resolved, base_branch(seen), commit)
    bundle = publisher_bundle(subject, tag, delivery)
    return _planned(seen, "delivery", tag, seen.resolved.spec.images.runner, bundle)


def runner_image(policy: ResolvedPolicy, python: str) -> str:
    """Image of a runner pod: the policy's for this Python, else its runner image.

    With sandbox Inline the project's Python is the one beside the runner, so each image of
    `images.python` is a build of the runner image on that Python.
    """
    offered = {image.version: image.image for image in policy.spec.images.python}
    return offered.get(python, policy.spec.images.runner)


def our_branch(seen: Observation) -> str:
    """Branch of this run's proposal (upgrade-run.md §12)."""
    proposal = seen.state.proposal
    assert proposal is not None
    return branch_name(seen.view.uid, proposal.target.name, proposal.target.to_version)


def base_branch(seen: Observation) -> str:
    """Branch that the run starts from, as admission fixed it; empty for the remote's HEAD."""
    frozen = known(seen.frozen)
    assert frozen is not None
    return frozen.branch


def base_commit(seen: Observation) -> CommitId:
    """Commit that the proposal stands on: a frozen proposal has a journaled base."""
    assert seen.state.base is not None
    return seen.state.base.commit


def pod_manifest(seen: Observation, pod: PodRecord) -> Mapping[str, Any]:
    """Manifest of a planned pod."""
    ref, policy, options = seen.view.ref, seen.resolved.spec, seen.options
    if pod.role is Role.PUBLISHER:
        plan = PodPlan(pod.pod_name, pod.tag, policy.images.runner, delivery_seconds(), None)
        return publisher_pod(ref, plan, policy, options)
    seconds = attempt_seconds(seen.run.spec.active_deadline_seconds)
    image = runner_image(seen.resolved, seen.state.python or "")
    plan = PodPlan(pod.pod_name, pod.tag, image, seconds, child_name(ref.name, ref.uid))
    return runner_pod(ref, plan, policy, options)


def _planned(seen: Observation, kind: str, tag: str, image: str, bundle: Bundle) -> Planned:
    ref, stored = seen.view.ref, to_bytes(bundle)
    data: dict[str, str | None] = {
        "pod": child_name(ref.name, ref.uid, tag),
        "image": image[-_IMAGE_WORDS_MAX:],
    }
    intent = draft(tag, kind, INTENT, data, {"bundle": sha256_of(stored)})
    return Planned(intent, stored, bundle.config_hash)
