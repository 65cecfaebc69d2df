"""Waits and stalls: why nothing moves, and what a person can do meanwhile."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from support.scenes import (
    COMMIT,
    FINE,
    OURS,
    Scene,
    a_pod,
    an_approval,
    at,
    pending,
)
from support.told.conflicts import journal_too_new
from support.told.telling import Told, waiting
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.views import ChildView, Holder, RepositoryLeaseView
from upgraderun_operator.model.conditions import STALLS, WAITS, StalledReason, WaitReason
from upgraderun_protocol.entries import EntryState

REPOSITORY = "https://git.example/team/lib"
NOTHING = "nothing to do"


def told() -> Iterator[Told]:
    """Every wait that passes by itself, then every stall."""
    yield from _waits()
    yield from _stalls()


def _waits() -> Iterator[Told]:
    busy = RepositoryLeaseView("repo-1", Holder.OTHER, "web/weekly")
    yield waiting(_seen(Scene(), repository=busy), "run web/weekly", NOTHING)
    next_one = Scene().working().end(cause="crashed").planned("a2").recorded("a2")
    pod = a_pod("a2", created_at=at(-25))
    yield waiting(_seen(next_one, pod=pod), pod.name, NOTHING)
    silent = Unreadable("forge", "GET /repos/team/lib: timed out")
    seen = _seen(Scene(), repository=OURS, destination=silent, unanswered=2)
    yield waiting(seen, "the forge", WAITS[WaitReason.REMOTE_UNREACHABLE].next_step)
    limited = Unreadable("forge", "GET /repos/team/lib: 403", 600.0, limited=True)
    limit = WAITS[WaitReason.FORGE_LIMITED].next_step
    seen = _seen(Scene(), repository=OURS, destination=limited)
    yield waiting(seen, at(600), limit)
    parked = Scene().publishing()
    words = {"reason": "forge_limited", "message": "the forge limits: POST /pulls: 403"}
    parked.end("d1", "yield", **words, until=at(600))
    yield waiting(_seen(parked), at(600), limit)
    lost = Unreadable("store", "disk quota exceeded")
    seen = _seen(Scene().frozen(), record=lost, unanswered=2)
    yield waiting(
        seen, "the artifact store", WAITS[WaitReason.ARTIFACT_STORE_UNREACHABLE].next_step
    )
    starting = a_pod("a1", created_at=at(-60), **pending())
    step = WAITS[WaitReason.POD_PENDING].next_step
    yield waiting(_seen(Scene().working(), pod=starting), starting.name, step)


def _stalls() -> Iterator[Told]:
    yield from _of_pods()
    yield from _of_the_forge()
    yield _stalled(StalledReason.REQUESTER_UNKNOWN, _anonymous(), "the run")
    full = Scene().working().end(cause="yield", reason="journal_full")
    yield _stalled(StalledReason.JOURNAL_FULL, _seen(full), "the status")
    yield journal_too_new(STALLS[StalledReason.JOURNAL_TOO_NEW].next_step)
    unheard = Scene().working()
    for number in range(1, 11):
        if number > 1:
            unheard.planned(f"a{number}").recorded(f"a{number}")
        unheard.end(f"a{number}", "gave_up")
    yield _stalled(StalledReason.RUNNER_API_UNREACHABLE, _seen(unheard), "10 runner pods")


def _of_pods() -> Iterator[Told]:
    silent = a_pod("a1", silent_at=at(-400))
    gone = StalledReason.PREVIOUS_ATTEMPT_NOT_GONE
    yield _stalled(gone, _seen(Scene().working(), pod=silent), silent.name)
    hanging = a_pod("a1", deleted_at=at(-400))
    over = Scene().working().end(cause="crashed")
    yield _stalled(gone, _seen(over, old_pods=(hanging,)), hanging.name)
    old: dict[str, Any] = {"created_at": at(-400)}
    full = a_pod("a1", **old, phase="Pending", container=None, unschedulable="0/3 nodes: cpu")
    yield _stalled(StalledReason.POD_UNSCHEDULABLE, _of(full), full.name)
    back_off = pending("ImagePullBackOff", "registry.example/runner: not found")
    unpulled = a_pod("a1", **old, **back_off)
    yield _stalled(StalledReason.IMAGE_UNAVAILABLE, _of(unpulled), "registry.example/runner")
    unmounted = a_pod("a1", **old, **pending())
    yield _stalled(StalledReason.STORAGE_UNAVAILABLE, _of(unmounted), unmounted.name)
    going = ChildView("run-3f1c9a2b", "claim-1", Scene().view.uid, deleted_at=at(-60))
    planned = Scene().admitted().planned()
    seen = _seen(planned, pod=ABSENT, claim=going, lease=ABSENT)
    yield waiting(seen, going.name, "delete the pods that still mount it")


def _of_the_forge() -> Iterator[Told]:
    denied = StalledReason.FORGE_DENIED
    asked = Scene().frozen().asked()
    asked.metadata["finalizers"] = ["upgraderun.dev/world"]
    powerless = replace(FINE, head=COMMIT, may_push=False)
    parts = {"approvals": (an_approval(),), "repository": OURS, "destination": powerless}
    yield _stalled(denied, _seen(asked, **parts), REPOSITORY)
    yield _stalled(denied, _seen(_refused(-20)), "ruleset 'only people'")
    step = "approve the same digest again, or cancel the run"
    yield waiting(_seen(_refused(-400), approvals=()), "digest dddddddddddd", step)


def _refused(seconds: float) -> Scene:
    scene = Scene().publishing()
    scene.clock = seconds - 10
    words = {"reason": "forge_denied", "message": "403: ruleset 'only people' forbids the creation"}
    scene.entry("push/1", "push", EntryState.FAILED, words)
    return scene.end("d1", "yield", reason="not_resumable")


def _anonymous() -> Any:
    scene = Scene().frozen().asked()
    scene.metadata["annotations"] = {}
    free = RepositoryLeaseView("repo-1", Holder.FREE)
    return _seen(scene, approvals=(), lease=ABSENT, repository=free)


def _of(pod: Any) -> Any:
    return _seen(Scene().working(), pod=pod)


def _stalled(reason: StalledReason, seen: Any, where: str) -> Told:
    found = waiting(seen, where, STALLS[reason].next_step)
    assert found.reason == reason, found
    return found


def _seen(scene: Scene, **parts: Any) -> Any:
    return scene.seen(**{"policy": scene.policy, "old_pods": (), **parts})
