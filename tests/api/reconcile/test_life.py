"""A whole run through the real loop: what is written, in which order, and what is left."""

import pytest

from support.desk import OPERATOR_NAMESPACE, Make, Play
from upgraderun_operator.answers import Ok
from upgraderun_operator.resources import LEASES, PODS, UPGRADE_REPORTS, UPGRADE_RUNS
from upgraderun_protocol.approvals import presentation_digest
from upgraderun_protocol.urls import normalise

pytestmark = pytest.mark.api

ORDER = [
    "admit done",
    "a1 intent",
    "a1 done",
    "a1/i1 done",
    "base done",
    "proposal/s3 intent",
    "proposal/s3 done",
    "a1/end done",
    "req/1 intent",
    "req/1 done",
    "push/1 intent",
    "d1 intent",
    "d1 done",
    "d1/i2 done",
    "push/1 done",
    "pr/1 intent",
    "pr/1 done",
    "d1/end done",
    "outcome done",
    "finalized done",
]
WRITES_OF_THE_OPERATOR = 27
"""Of at most 40 of a whole run (issue, Speed): pods and API add theirs to these."""


async def live(play: Play) -> None:
    """From the first look to the last, with everybody doing their part."""
    await play.go()
    await play.runs("a1")
    await play.go()
    await play.freeze()
    await play.go()
    await play.approve()
    await play.go()
    await play.runs("d1")
    await play.go()
    await play.publish()
    await play.go()


async def repository_lease(play: Play) -> dict[str, object]:
    name = f"repo-{normalise(play.host.repository_url(play.repository)).lease_hash}"
    answer = await play.desk.client.get(LEASES, OPERATOR_NAMESPACE, name)
    assert isinstance(answer, Ok)
    return dict(answer.value["spec"])


async def test_a_run_is_published_and_leaves_its_report(make: Make) -> None:
    play = await make()
    await live(play)
    assert ORDER == await play.entries()
    status = await play.status()
    assert (status["phase"], status["outcome"], status["finished"]) == (
        "Finished",
        "Published",
        True,
    )
    assert [f"UpgradeReport {play.name}"] == await play.left()
    assert (await repository_lease(play))["holderIdentity"] == ""
    assert "finalizers" not in (await play.get(UPGRADE_RUNS, play.name))["metadata"]
    assert [("proposal_published", None)] == play.desk.ended
    assert {"Queued", "AwaitingApproval", "Publishing", "Finalizing"} <= set(play.desk.phases)
    assert [None, "Finished"] == list(dict.fromkeys(reversed(play.desk.phases)))[:2]


async def test_each_transition_is_told_once(make: Make) -> None:
    play = await make()
    await live(play)
    expected = ["ApprovalRequested", "Approved", "Published", "RunnerStarted"]
    assert expected == sorted(await play.reasons())


async def test_the_operator_stays_within_its_part_of_the_writes(make: Make) -> None:
    play = await make()
    await live(play)
    told = dict(play.desk.writes)
    played = {"put upgraderuns/status": play.said, "put pods/status": 4}
    own = {kind: count - played.get(kind, 0) for kind, count in told.items()}
    own.pop("create upgradeapprovals")
    own.pop("create serviceaccounts")
    assert sum(own.values()) <= WRITES_OF_THE_OPERATOR, own
    assert own["put upgraderuns/status"] <= 6, own


async def test_a_pass_with_nothing_to_do_writes_nothing(make: Make) -> None:
    play = await make()
    await play.go()
    await play.runs("a1")
    for act in (play.go, play.freeze, play.go):
        await act()
    play.desk.writes.clear()
    await play.go()
    wake = await play.go()
    assert not play.desk.writes
    assert wake.after_seconds is not None
    assert 0 < wake.after_seconds <= 168 * 3600


async def test_a_finished_run_is_never_touched_again(make: Make) -> None:
    play = await make()
    await live(play)
    play.desk.writes.clear()
    assert (await play.go()).gone
    assert not play.desk.writes


async def test_while_people_think_nothing_is_held(make: Make) -> None:
    play = await make()
    await play.go()
    await play.runs("a1")
    await play.freeze()
    await play.go()
    assert [] == await play.listed(PODS)
    assert [] == await play.listed(LEASES)
    lease = await repository_lease(play)
    assert lease["holderIdentity"] == ""
    status = await play.status()
    assert (status["phase"], status["exitCode"]) == ("AwaitingApproval", 5)


async def test_what_people_read_is_what_the_digest_binds(make: Make) -> None:
    play = await make()
    await play.go()
    await play.runs("a1")
    await play.freeze()
    await play.go()
    report = await play.get(UPGRADE_REPORTS, play.name)
    pending = (await play.status())["pendingApproval"]
    assert presentation_digest(report) == pending["presentationSha256"]
    assert report["presentationSha256"] == pending["presentationSha256"]
    assert report["capability"]["commit"] == play.commit
    assert report["patch"].startswith("--- a/uv.lock")


async def test_a_run_without_publication_ends_with_its_proposal(make: Make) -> None:
    play = await make(publication={"enabled": False}, policy={"credentials": {}})
    await play.go()
    await play.runs("a1")
    await play.freeze()
    await play.go()
    assert (await play.status())["outcome"] == "ProposalPrepared"
    assert [f"UpgradeReport {play.name}"] == await play.left()


async def test_the_pod_is_the_policys_and_the_runs(make: Make) -> None:
    play = await make()
    await play.go()
    pod = await play.pod_of("a1")
    state = (await play.view()).state
    assert state.attempt is not None
    assert pod["metadata"]["uid"] == state.attempt.pod_uid
    assert pod["metadata"]["ownerReferences"][0]["uid"] == play.uid
    assert pod["spec"]["automountServiceAccountToken"] is False
