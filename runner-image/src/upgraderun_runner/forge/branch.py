"""`ensure_branch`: our branch at our commit, created only (upgrade-run.md §12, §13.5).

Caller: `forge.publication`. Observes by asking the git host itself, which shows a push at once.
"""

from upgraderun_runner.forge import limits
from upgraderun_runner.forge.delivery import (
    BranchEnsured,
    Delivery,
    NotPublished,
    PublicationUnknown,
)
from upgraderun_runner.forge.github import Denied, Unknown
from upgraderun_runner.forge.push import PUSH_BRANCH, PushApplied, PushRefused, PushResult
from upgraderun_runner.forge.tables import (
    BranchAbsent,
    BranchAt,
    BranchDecision,
    BranchSeen,
    BranchStands,
    ConfirmAbsence,
    EffectJournal,
    PublicationConflict,
    PullRequestsSeen,
    Push,
    RecordBranch,
    decide_branch,
)
from upgraderun_runner.workspace.clone import remote_refs
from upgraderun_runner.workspace.errors import RemoteFailed


async def ensure_branch(delivery: Delivery) -> BranchEnsured | NotPublished:
    """Our branch at our commit, created only. Conflicts are journaled before they return."""
    pushed = False
    seen = await see_branch(delivery)
    for _ in range(limits.STEPS_MAX):
        decision = await _decide(delivery, seen)
        if isinstance(decision, BranchStands):
            return BranchEnsured(found=not pushed)
        if isinstance(decision, RecordBranch):
            _record(delivery, found=not pushed)
        elif isinstance(decision, ConfirmAbsence):
            seen = await _see_again(delivery)
        elif isinstance(decision, Push):
            if pushed:
                break
            result = await _push(delivery, needs_intent=decision.needs_intent)
            pushed = isinstance(result, PushApplied)
            seen = await _see_after(delivery, result)
            refused = await _judge_refusal(delivery, result, seen)
            if refused is not None:
                return refused
        else:
            ended = await delivery.ended("push", await _with_author(delivery, decision, seen))
            assert ended is not None, f"{decision} neither goes on nor ends"
            return ended
    return PublicationUnknown(f"branch {delivery.to.branch} isn't visible or doesn't hold still")


async def see_branch(delivery: Delivery) -> BranchSeen:
    """What the git host says of our branch."""
    ref = f"refs/heads/{delivery.to.branch}"
    remote = delivery.remote
    try:
        found = await remote_refs(remote.git, delivery.to.url, (ref,), remote.credential)
    except RemoteFailed as error:
        return Unknown(str(error))
    return BranchAt(found[ref]) if ref in found else BranchAbsent()


async def _decide(delivery: Delivery, seen: BranchSeen) -> BranchDecision:
    journal = delivery.journal.state("push")
    pulls: PullRequestsSeen = ()
    if journal is EffectJournal.DONE and isinstance(seen, BranchAbsent):
        pulls = await delivery.remote.forge.pull_requests_from(delivery.to.branch)
    return decide_branch(journal, seen, pulls, delivery.ours)


async def _see_again(delivery: Delivery) -> BranchSeen:
    """The second of two observations, far enough apart that lag can't explain both."""
    # A publisher that dies in this wait must leave "pushed": who reads "not yet" pushes again what
    # somebody removed.
    await delivery.journal.flush()
    await delivery.pause(limits.ABSENCE_SECONDS)
    seen = await see_branch(delivery)
    return BranchAbsent(confirmed=True) if isinstance(seen, BranchAbsent) else seen


async def _push(delivery: Delivery, *, needs_intent: bool) -> PushResult:
    to, remote, commit = delivery.to, delivery.remote, delivery.subject.commit
    if needs_intent:
        proposal = delivery.subject.proposal_digest
        data = {"branch": to.branch, "commit": commit, "proposal": proposal}
        await delivery.journal.intent("push", data)
    await remote.pacer.wait()
    result = await PUSH_BRANCH(
        delivery.fault, remote.git, to.url, to.branch, commit, remote.credential
    )
    remote.pacer.finished()
    return result


async def _see_after(delivery: Delivery, result: PushResult) -> BranchSeen:
    """Read back. What was created may lag; after a lost answer it may still arrive."""
    if isinstance(result, PushRefused):
        return await see_branch(delivery)
    seen: BranchSeen = BranchAbsent()
    for delay in limits.LOOK_DELAYS_SECONDS:
        await delivery.pause(delay)
        seen = await see_branch(delivery)
        if not isinstance(seen, BranchAbsent):
            break
    return seen


async def _judge_refusal(
    delivery: Delivery, result: PushResult, seen: BranchSeen
) -> NotPublished | None:
    """A push without effect: a definite no, or unknown. Never decided by the words of git."""
    if isinstance(result, PushApplied) or not isinstance(seen, BranchAbsent):
        return None
    if isinstance(result, PushRefused):
        return await delivery.denied("push", Denied(result.text))
    allowed = await delivery.remote.forge.may_push()
    if isinstance(allowed, Denied):
        return await delivery.denied("push", allowed)
    if allowed is False:
        return await delivery.denied("push", Denied(result.text))
    after = allowed.retry_after_seconds if isinstance(allowed, Unknown) else None
    return PublicationUnknown(f"push without answer: {result.text}", after)


def _record(delivery: Delivery, *, found: bool) -> None:
    """Let the outcome travel with the intent of the pull request, which follows at once.

    A publisher that dies before that finds the branch by looking, as after a push without answer.
    """
    data = {"commit": delivery.subject.commit}
    delivery.journal.defer_done(
        "push",
        {**data, "found": "true"} if found else data,
        lambda: PUSH_BRANCH.recorded(delivery.fault),
    )


async def _with_author(
    delivery: Delivery, decision: BranchDecision, seen: BranchSeen
) -> BranchDecision:
    """Add who made the foreign commit to a conflict's evidence, if the forge says."""
    if not isinstance(decision, PublicationConflict) or not isinstance(seen, BranchAt):
        return decision
    author = await delivery.remote.forge.commit_author(seen.commit)
    line = f"commit {seen.commit} by {author}"[: limits.EVIDENCE_CHARACTERS_MAX]
    return PublicationConflict(
        decision.kind, decision.expected, decision.observed, (*decision.evidence, line)
    )
