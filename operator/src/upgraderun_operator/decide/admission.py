"""Phase 0: policy, repository Lease, destination; then `admit` and the first attempt's intent.

Rules that refuse come before the first outward call (security.md H21). Callers: `decide.run`.
"""

from typing import Final

from upgraderun_operator import limits
from upgraderun_operator.build.frozen import FrozenAdmission, frozen_bytes
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Append, TakeRepositoryLease
from upgraderun_operator.decide.make import DONE, End, append, draft, end_run, pause, quiet, unread
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import plan_attempt
from upgraderun_operator.decide.readings import ABSENT, known
from upgraderun_operator.decide.views import (
    DestinationRefused,
    DestinationView,
    Holder,
    RepositoryLeaseView,
)
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import LiveReason, WaitReason
from upgraderun_operator.model.objects import UpgradePolicy
from upgraderun_operator.model.policy import PolicyRefusal, ResolvedPolicy, resolve
from upgraderun_protocol.bundle import EarlierProposals
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId

_BYPASS: Final = "exempt that prefix, or let the account of the push token bypass the ruleset"


def not_admitted(seen: Observation) -> bool:
    """Asked while no `admit` entry stands."""
    return seen.state.admission is None


def suspended_before_the_start(seen: Observation) -> Decision | None:
    """A run that is created suspended starts nothing and holds nothing."""
    if not seen.view.wants_suspend:
        return None
    return pause(LiveReason.SUSPENDED, "set spec.suspend to false to start the run")


def policy_is_missing(seen: Observation) -> Decision | None:
    """Without its UpgradePolicy in the same namespace a run is refused."""
    waiting = unread(seen, Need.POLICY)
    if waiting is not None or seen.policy is not ABSENT:
        return waiting
    name, namespace = seen.run.spec.policy_name, seen.view.ref.namespace
    message = (
        f"UpgradePolicy {name} isn't there in namespace {namespace}; "
        "create it or name another in spec.policyRef"
    )
    return end_run(seen, End("policy_refused", message))


def policy_refuses(seen: Observation) -> Decision | None:
    """A run that its policy doesn't allow is refused, naming rule and policy; nothing is asked."""
    verdict = live_verdict(seen)
    if isinstance(verdict, ResolvedPolicy):
        return None
    return end_run(seen, End("policy_refused", verdict.message))


def decision_list_is_wrong(seen: Observation) -> Decision | None:
    """Mode Scripted needs exactly the decision list whose digest the policy names."""
    if live_policy(seen).spec.scripted is None or seen.run.spec.mode.value != "Scripted":
        return None
    waiting = unread(seen, Need.DECISIONS)
    if waiting is not None:
        return waiting
    found = known(seen.decisions)
    if not isinstance(found, str):
        return None
    return end_run(seen, End("policy_refused", found))


def repository_is_busy(seen: Observation) -> Decision | None:
    """One active run per repository in the whole cluster: the next one waits, naming the first."""
    waiting = unread(seen, Need.REPOSITORY)
    return waiting if waiting is not None else busy(seen)


def repository_is_free(seen: Observation) -> Decision | None:
    """The repository Lease is taken before the forge is asked, so that its answers stay true."""
    return take(seen, live_resolved(seen))


def destination_refuses(seen: Observation) -> Decision | None:
    """Where the run shall publish, the destination is checked before any child object exists.

    A dry run of an App is refused here too if no token could be minted for its clone.
    """
    policy = live_resolved(seen)
    if not policy.publishes and policy.spec.credentials.app is None:
        return None
    waiting = unread(seen, Need.DESTINATION)
    if waiting is not None:
        return waiting
    problem = destination_problem(seen) if policy.publishes else _clone_problem(seen)
    if problem is None:
        return None
    return end_run(seen, End("destination_refused", f"{policy.repository}: {problem}"))


def admit(seen: Observation) -> Decision:
    """The policy is frozen and the first attempt's intent stands in the same write."""
    frozen, commit = _fixed(seen, live_resolved(seen))
    policy = frozen.policy
    decisions = known(seen.decisions)
    planned = plan_attempt(seen, 1, frozen, commit)
    blob = frozen_bytes(frozen)
    extra = (decisions,) if isinstance(decisions, bytes) else ()
    entry = draft(
        "admit",
        "admit",
        DONE,
        {
            "policy": policy.name[:63],
            "generation": str(policy.generation),
            "configHash": planned.config_hash,
            "repository": str(policy.repository),
            "branch": frozen.branch or None,
            "baseCommit": commit,
        },
        {"policy": sha256_of(blob)},
    )
    message = f"admitted under policy {policy.name}; the first runner pod comes next"
    effect = Append(
        Change(drafts=(entry, planned.intent)),
        quiet(seen),
        blobs=(blob, planned.bundle, *extra),
        same_wish=True,
    )
    return append(seen, "Admitted", message, effect)


ADMISSION = Chain(
    "admission",
    "May this run start?",
    not_admitted,
    (
        suspended_before_the_start,
        policy_is_missing,
        policy_refuses,
        decision_list_is_wrong,
        repository_is_busy,
        repository_is_free,
        destination_refuses,
        admit,
    ),
)


def live_policy(seen: Observation) -> UpgradePolicy:
    """The policy as it stands now; only after a rule made sure that it was read."""
    policy = known(seen.policy)
    assert policy is not None
    return policy


def live_verdict(seen: Observation) -> ResolvedPolicy | PolicyRefusal:
    """What the policy says now."""
    return resolve(seen.run.spec, live_policy(seen), allow_inline=seen.options.allow_inline)


def live_resolved(seen: Observation) -> ResolvedPolicy:
    """The policy as it holds for this run; only after `policy_refuses`."""
    verdict = live_verdict(seen)
    assert isinstance(verdict, ResolvedPolicy)
    return verdict


def busy(seen: Observation) -> Decision | None:
    """Wait for another run of this repository."""
    lease = known(seen.repository)
    if lease is None or lease.holder is not Holder.OTHER:
        return None
    message = (
        f"run {lease.holder_name} works on the same repository; nothing to do: this one goes on "
        "when that ends or waits for people"
    )
    after = limits.REPOSITORY_POLL_SECONDS
    return pause(WaitReason.REPOSITORY_BUSY.value, message, after, shown=True)


def take(seen: Observation, policy: ResolvedPolicy) -> Decision | None:
    """Take the repository unless it is ours."""
    lease = known(seen.repository)
    assert isinstance(lease, RepositoryLeaseView)
    if lease.holder is Holder.OURS:
        return None
    effect = TakeRepositoryLease(str(policy.repository), seen.holder, lease)
    return Decision("RepositoryTaken", f"{policy.repository} is this run's now", effect)


def _clone_problem(seen: Observation) -> str | None:
    """Say why nothing can be cloned; an archived repository can."""
    found = known(seen.destination)
    if isinstance(found, DestinationRefused):
        return found.message
    assert isinstance(found, DestinationView)
    return None if found.exists else "the repository doesn't exist, or the App may not see it"


def destination_problem(seen: Observation) -> str | None:
    """Say which destination check fails, or None (upgrade-run.md §12)."""
    found = known(seen.destination)
    if isinstance(found, DestinationRefused):
        return found.message
    assert isinstance(found, DestinationView)
    wished = seen.run.spec.repository
    checks = (
        (not found.exists, "the repository doesn't exist, or the push token may not see it"),
        (found.archived, "the repository is archived; nothing can be pushed to it"),
        (found.disabled, "the forge has disabled the repository; its owner must ask the forge why"),
        (
            found.head is None,
            f"branch {found.branch or wished.branch!r} doesn't exist; mend spec.repository.branch",
        ),
        (
            found.commit_on_branch is False,
            f"commit {wished.commit} isn't reachable from branch {found.branch}",
        ),
        (found.may_push is False, "the push token has no write access to the repository"),
        (
            found.creation_forbidden is not None,
            f"no branch can be made below upgraderun/: {found.creation_forbidden}; {_BYPASS}",
        ),
    )
    return next((message for failed, message in checks if failed), None)


def _fixed(seen: Observation, policy: ResolvedPolicy) -> tuple[FrozenAdmission, CommitId | None]:
    """Fix base branch, base commit and the proposals that need no second one."""
    wished = seen.run.spec.repository
    found = known(seen.destination)
    commit = CommitId(wished.commit) if wished.commit is not None else None
    if not policy.publishes or not isinstance(found, DestinationView):
        nothing = EarlierProposals((), ())
        return FrozenAdmission(policy, wished.branch or "", nothing), commit
    lease = known(seen.repository)
    frozen = lease.frozen if lease is not None and lease.frozen is not None else {}
    others = {target for run, target in frozen.items() if run != seen.holder}
    earlier = found.earlier or EarlierProposals((), ())
    merged = EarlierProposals(tuple(sorted({*earlier.proposed, *others})), earlier.declined)
    return FrozenAdmission(policy, found.branch, merged), commit or found.head
