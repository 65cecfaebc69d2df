"""Tokens of the forge for pods: `POST push-token`, and the clone token of `hello` (§1.6).

Each mint is counted by an entry `<tag>/mint/<k>` before it happens, at most five per pod; nothing of
a token is stored or logged here. Static tokens are mounted and never pass through.
"""

import math
from typing import Final

from aiohttp import web

from upgraderun_operator.answers import Absent, StoreDown
from upgraderun_operator.api.bodies import answer, read_message
from upgraderun_operator.api.context import Call, Tools, done_or_refuse
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.build.frozen import read_frozen
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused
from upgraderun_operator.journal.guards import EntryAbsent, EpochIs, Guard, NoVerdict, WriterIs
from upgraderun_operator.journal.records import Role
from upgraderun_operator.journal.writes import Change, GuardFailed
from upgraderun_operator.model.objects import parse_run
from upgraderun_operator.model.policy import ResolvedPolicy
from upgraderun_operator.observe.access import mint
from upgraderun_operator.observe.ports import Minted, Purpose
from upgraderun_protocol.effects import Position
from upgraderun_protocol.ends import MintPurpose
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId
from upgraderun_protocol.limits import MINTS_PER_POD_MAX, PUSH_TOKEN_BODY_BYTES_MAX
from upgraderun_protocol.messages import ErrorCode, MintedToken, PushTokenRequest

RETRY_SECONDS: Final = 5
_SETTLED: Final = frozenset({EntryState.FAILED, EntryState.CONFLICT})


async def push_token(tools: Tools, call: Call, request: web.Request) -> web.Response:
    """Mint a push token for the delivery that asks, while its grant and its intent stand."""
    message = await read_message(PushTokenRequest, request, PUSH_TOKEN_BODY_BYTES_MAX)
    if message.delivery_attempt != call.caller.number:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{call.caller.tag} asks for delivery of its own number"
        )
    _refuse_held(call, message.proposal_digest)
    policy = await frozen_policy(tools, call)
    if policy is None or policy.spec.credentials.app is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the policy has no App: its token is mounted")
    return answer(await _minted(tools, call, policy, Purpose.PUSH))


async def clone_token(tools: Tools, call: Call, policy: ResolvedPolicy) -> MintedToken:
    """Mint the token that a runner clones with."""
    return await _minted(tools, call, policy, Purpose.CLONE)


async def frozen_policy(tools: Tools, call: Call) -> ResolvedPolicy | None:
    """Read the policy that admission froze; None before it. A lagging store is asked again."""
    admission = call.view.state.admission
    if admission is None:
        return None
    match await tools.store.get(call.view.uid, admission.policy):
        case bytes() as data:
            return read_frozen(data, parse_run(call.view.raw).spec).policy
        case Absent():
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, "the policy isn't in the store", 2)
        case StoreDown(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)


def _refuse_held(call: Call, digest: str) -> None:
    """A token is given for the granted proposal only, between its push intent and its end."""
    state = call.view.state
    held = call.view.held_publication
    if held is not None:
        raise ApiError(ErrorCode.PUBLICATION_HELD, held)
    if state.proposal is None or state.proposal.digest != digest:
        raise ApiError(ErrorCode.PUBLICATION_HELD, "no grant stands for this proposal")
    push, pull = state.push, state.pull_request
    if push is None or push.state in _SETTLED or (pull is not None and pull.state in _SETTLED):
        raise ApiError(ErrorCode.PUBLICATION_HELD, "no push of this proposal is open")
    if state.opened is not None:
        raise ApiError(ErrorCode.PUBLICATION_HELD, "the pull request is there already")


async def _minted(
    tools: Tools, call: Call, policy: ResolvedPolicy, purpose: Purpose
) -> MintedToken:
    effect = f"{purpose.value}_token"

    async def count() -> None:
        await _count(tools, call, MintPurpose(purpose.value))
        tools.fault(effect, Position.BEFORE)

    namespace = call.view.ref.namespace
    found = await mint(tools.cluster, tools.tokens, namespace, policy, purpose, count)
    if isinstance(found, Minted) and tools.fault(effect, Position.REPLY_LOST):
        found = Unreadable("forge", "the reply was lost")
    match found:
        case Minted(token, expires_at, repository):
            tools.fault(effect, Position.APPLIED)
            tools.counters.minted(purpose.value)
            ends = expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")
            return MintedToken(token.reveal(), ends, repository, policy.spec.forge.api_url)
        case DestinationRefused(message):
            raise ApiError(ErrorCode.FORGE_DENIED, message)
        case Unreadable(_, cause, after):
            seconds = RETRY_SECONDS if after is None else math.ceil(after)
            raise ApiError(ErrorCode.FORGE_UNAVAILABLE, f"no token now: {cause}", seconds)


async def _count(tools: Tools, call: Call, purpose: MintPurpose) -> None:
    """Write down that one more token is about to exist; two calls at once never share a number."""
    tag, pod_uid = call.caller.tag, call.caller.pod_uid
    assert pod_uid is not None, "the caller's UID was compared"
    number = 1 + sum(entry.id.startswith(f"{tag}/mint/") for entry in call.view.state.fold)
    if number > MINTS_PER_POD_MAX:
        raise ApiError(
            ErrorCode.TOKENS_SPENT, f"{tag} got {MINTS_PER_POD_MAX} tokens; the next pod goes on"
        )
    entry = EntryId(f"{tag}/mint/{number}")
    draft = Draft(entry, "mint", EntryState.DONE, {"purpose": purpose.value})
    guards: tuple[Guard, ...] = (NoVerdict(), WriterIs(pod_uid))
    if call.caller.role is Role.PUBLISHER:
        guards = (*guards, EpochIs(call.epoch))
    result = await tools.writer.guarded_write(
        call.view.ref, (*guards, EntryAbsent(entry, EntryState.DONE)), Change((draft,))
    )
    if isinstance(result, GuardFailed) and isinstance(result.failure.guard, EntryAbsent):
        raise ApiError(ErrorCode.CONTENDED, "another call of this pod was faster; try again", 1)
    done_or_refuse(result)
