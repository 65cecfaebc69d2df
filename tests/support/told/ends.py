"""Ends that the operator decides: refusals, people's answers, losses, publication."""

from collections.abc import Iterator
from dataclasses import replace

from support.scenes import (
    COMMIT,
    FINE,
    FROZEN_COMMIT,
    OURS,
    Scene,
    a_pod,
    a_policy,
    an_approval,
    at,
    ended,
)
from support.told.telling import Told, end_of_the_operator
from upgraderun_operator.decide.readings import ABSENT
from upgraderun_operator.decide.views import DestinationView, RemoteView

REPOSITORY = "https://git.example/team/lib"
BRANCH = "upgraderun/lib-1.1-3f1c9a2b"


def told() -> Iterator[Told]:
    """Every end of the operator, in the order in which a run could meet them."""
    yield from _refused()
    yield from _stopped()
    yield from _answered()
    yield from _published()


def _refused() -> Iterator[Told]:
    missing = Scene(policyRef={"name": "strict"})
    yield end_of_the_operator(missing, "UpgradePolicy strict", policy=ABSENT)
    stranger = Scene()
    stranger.policy = a_policy(repositories=["https://git.example/others/*"])
    yield end_of_the_operator(stranger, f"repository {REPOSITORY}")
    gone = DestinationView(exists=False)
    yield end_of_the_operator(Scene(), REPOSITORY, repository=OURS, destination=gone)
    powerless = replace(FINE, may_push=False)
    yield end_of_the_operator(Scene(), REPOSITORY, repository=OURS, destination=powerless)
    ruled = replace(FINE, creation_forbidden="ruleset 'only people' forbids the creation")
    yield end_of_the_operator(Scene(), REPOSITORY, repository=OURS, destination=ruled)


def _stopped() -> Iterator[Told]:
    slow = Scene(activeDeadlineSeconds=500).working().base()
    yield end_of_the_operator(slow, "base done")
    out_of_memory = Scene(limits={"consecutiveLostAttempts": 2}).working()
    out_of_memory.end(cause="out_of_memory").working("a2")
    out_of_memory.facts = replace(out_of_memory.facts, attempt_lost_at=at(-90))
    pod = a_pod("a2", **ended(137, "OOMKilled"))
    yield end_of_the_operator(out_of_memory, "pod run-3f1c9a2b-a2", pod=pod)
    dry = Scene(mode="Baseline").working().end(cause="gave_up", message="no way to the operator")
    yield end_of_the_operator(dry, "pod run-3f1c9a2b-a1")
    yield end_of_the_operator(Scene(cancel=True).working(), "nothing was pushed")
    pushed = Scene(cancel=True).publishing().end("d1", "stopped")
    found = RemoteView(FROZEN_COMMIT, ())
    yield end_of_the_operator(pushed, f"branch {BRANCH} stays at", remote=found)


def _answered() -> Iterator[Told]:
    unpublished = Scene(publication={"enabled": False}).frozen()
    yield end_of_the_operator(unpublished, "proposal dddddddddddd")
    late = Scene().frozen().asked(expires=-1)
    yield end_of_the_operator(late, at(-1))
    no = an_approval(approves=False, comment="not before the release of next week")
    rejected = Scene().frozen().asked()
    yield end_of_the_operator(rejected, "anna", approvals=(no,))
    yield end_of_the_operator(Scene().frozen(), "its report")
    moved = Scene().frozen().asked()
    moved.metadata["finalizers"] = ["upgraderun.dev/world"]
    lost_base = replace(FINE, commit_on_branch=False)
    parts = {"approvals": (an_approval(),), "repository": OURS, "destination": lost_base}
    yield end_of_the_operator(moved, f"base commit {COMMIT}", **parts)


def _published() -> Iterator[Told]:
    scene = Scene().publishing().entry("push/1", "push", data={"commit": FROZEN_COMMIT})
    url = f"{REPOSITORY}/pull/12"
    pull = {"number": "12", "state": "open", "commit": FROZEN_COMMIT, "url": url}
    scene.entry("pr/1", "pullRequest", data=pull).end("d1", "crashed")
    yield end_of_the_operator(scene, url)
