"""`ensure_pull_request`: one pull request of ours (upgrade-run.md §12, §13.5).

Caller: `forge.publication`. The answer of a create is judged by the same table as a list. Labels and
reviewers come before the record: whoever dies before them leaves `pr` open, and the next publisher
finds the pull request, adds what is missing and records it.
"""

from typing import Final

from upgraderun_protocol.canonical import canonical_json
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.branch import ensure_branch, see_branch
from upgraderun_runner.forge.delivery import (
    BranchEnsured,
    Delivery,
    NotPublished,
    PublicationUnknown,
    PullRequestEnsured,
)
from upgraderun_runner.forge.github import (
    Created,
    Denied,
    GitHub,
    NewPullRequest,
    Rejected,
    SeenPullRequest,
    Unknown,
)
from upgraderun_runner.forge.tables import (
    BranchAbsent,
    BranchSeen,
    Create,
    EffectJournal,
    LookAtBranch,
    PullRequestDecision,
    PullRequestsSeen,
    PullRequestStands,
    RecordPullRequest,
    decide_pull_request,
)
from upgraderun_runner.performing import AsyncEffect


async def ensure_pull_request(delivery: Delivery) -> PullRequestEnsured | NotPublished:
    """One pull request of ours, its labels and reviewers, then the record of it all."""
    created = False
    pulls = await _see(delivery)
    for _ in range(limits.STEPS_MAX):
        decision = await _decide(delivery, pulls)
        if isinstance(decision, PullRequestStands):
            return await _stands(delivery)
        if isinstance(decision, RecordPullRequest):
            return await _finish(delivery, decision.pull_request, found=not created)
        if isinstance(decision, LookAtBranch):
            branch = await ensure_branch(delivery)
            if not isinstance(branch, BranchEnsured):
                return branch
            pulls = await _see(delivery)
        elif isinstance(decision, Create):
            made = await _create(delivery, needs_intent=decision.needs_intent)
            if isinstance(made, NotPublished):
                return made
            created, pulls = made
        else:
            ended = await delivery.ended("pr", decision)
            assert ended is not None, f"{decision} neither goes on nor ends"
            return ended
    return PublicationUnknown("the pull requests of our branch don't hold still")


async def _see(delivery: Delivery) -> PullRequestsSeen:
    return await delivery.remote.forge.pull_requests_from(delivery.to.branch)


async def _decide(delivery: Delivery, pulls: PullRequestsSeen) -> PullRequestDecision:
    journal = delivery.journal.state("pr")
    branch: BranchSeen = BranchAbsent()
    if pulls == () and journal is not EffectJournal.DONE:
        branch = await see_branch(delivery)
    return decide_pull_request(journal, pulls, branch, delivery.ours)


async def _create(
    delivery: Delivery, *, needs_intent: bool
) -> tuple[bool, PullRequestsSeen] | NotPublished:
    """Create, and what is seen then: the answer itself, or a look with patience."""
    to, subject = delivery.to, delivery.subject
    if needs_intent:
        await delivery.journal.intent("pr", {"branch": to.branch, "commit": subject.commit})
    wish = NewPullRequest(subject.title, subject.body, to.branch, to.base_branch, to.draft)
    answer = await PULL_REQUEST(delivery.fault, delivery.remote.forge, wish)
    if isinstance(answer, Created):
        return True, (answer.pull_request,)
    if isinstance(answer, Denied):
        return await delivery.denied("pr", answer)
    if isinstance(answer, Unknown) and answer.retry_after_seconds is not None:
        return PublicationUnknown(answer.reason, answer.retry_after_seconds)
    pulls = await _look(delivery)
    if pulls == ():
        said = answer.reason if isinstance(answer, Unknown) else answer.text
        return PublicationUnknown(f"no pull request after the create: {said}")
    return False, pulls


async def _create_pull_request(
    forge: GitHub, wish: NewPullRequest
) -> Created | Rejected | Unknown | Denied:
    return await forge.create_pull_request(wish)


PULL_REQUEST: Final = AsyncEffect(
    "pull_request", _create_pull_request, lambda: Unknown("the answer was lost")
)


async def _look(delivery: Delivery) -> PullRequestsSeen:
    """Lists lag: look again and again before calling it nothing."""
    pulls: PullRequestsSeen = ()
    for delay in limits.LOOK_DELAYS_SECONDS:
        await delivery.pause(delay)
        pulls = await _see(delivery)
        if pulls != ():
            break
    return pulls


async def _finish(delivery: Delivery, pull: SeenPullRequest, *, found: bool) -> PullRequestEnsured:
    """Add labels and reviewers, then record the pull request with what couldn't be set."""
    # What is known of the branch must not die in a long wait for the forge: who reads "not pushed"
    # pushes again what somebody removed.
    await delivery.journal.flush()
    warnings = await _decorate(delivery, pull.number)
    url = _link(delivery, pull.number)
    data = {
        "number": str(pull.number),
        "state": pull.state,
        "commit": pull.head_commit,
        "url": url,
        **({"found": "true"} if found else {}),
        **_kept(warnings, limits.PULL_REQUEST_TEXT_BYTES - len(url.encode())),
    }
    await delivery.journal.outcome("pr", "done", data)
    PULL_REQUEST.recorded(delivery.fault)
    return PullRequestEnsured(pull.number, url, found, warnings)


async def _stands(delivery: Delivery) -> PullRequestEnsured:
    """It is recorded already: labels or reviewers that are missing are added once more (§13.2)."""
    number = delivery.journal.pull_request_number()
    assert number is not None, "a done `pr` entry names its number"
    warnings = await _decorate(delivery, number)
    return PullRequestEnsured(number, _link(delivery, number), True, warnings)


def _kept(warnings: tuple[str, ...], room: int) -> dict[str, str]:
    """The warnings as far as an entry has room for them: a publisher may die before its verdict."""
    text = " ".join("; ".join(warnings).split())[: limits.ENTRY_TEXT_MAX]
    while text and len(canonical_json(text)) > room:
        text = text[:-1]
    return {"warnings": text} if text else {}


async def _decorate(delivery: Delivery, number: int) -> tuple[str, ...]:
    to = delivery.to
    warnings = await DECORATION(
        delivery.fault, delivery.remote.forge, number, to.labels, to.reviewers
    )
    return warnings[: limits.WARNINGS_MAX]


async def _add_labels_and_reviewers(
    forge: GitHub, number: int, labels: tuple[str, ...], reviewers: tuple[str, ...]
) -> tuple[str, ...]:
    return await forge.decorate(number, labels, reviewers)


DECORATION: Final = AsyncEffect(
    "decoration", _add_labels_and_reviewers, lambda: ("labels, reviewers: the answer was lost",)
)


def _link(delivery: Delivery, number: int) -> str:
    """Built from the policy's host and a number, never copied from a reply (H22)."""
    return f"{delivery.to.web_url}/pull/{number}"
