"""`POST hello`: a process claims the run; fallible work first, the claim last (§1.6).

pod there? bundle there? token minted? -> Lease taken -> entry `<tag>/i<epoch>` -> answer
"""

from typing import Any, Final

from aiohttp import web

from upgraderun_operator.answers import Absent, Denied, NotFound, Ok, Stored, StoreDown, Unknown
from upgraderun_operator.api.bodies import answer, read_message
from upgraderun_operator.api.context import Call, Tools, done_or_refuse
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.run_lease import RunLeases
from upgraderun_operator.api.tokens import clone_token, frozen_policy
from upgraderun_operator.build.leases import holder_of
from upgraderun_operator.journal.guards import AttemptIs, NoVerdict
from upgraderun_operator.journal.records import PodRecord, Role
from upgraderun_operator.journal.writes import Change, EpochFell
from upgraderun_operator.resources import PODS
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, Epoch, PodUid
from upgraderun_protocol.limits import (
    HELLO_BODY_BYTES_MAX,
    PROTOCOL_VERSION,
    RUN_LEASE_SECONDS,
)
from upgraderun_protocol.messages import (
    ArtifactRef,
    ErrorCode,
    HelloRequest,
    HelloResponse,
    MintedToken,
)

NONCE_LENGTH: Final = 32
_CREDENTIAL_FLAGS: Final = frozenset({"--clone-token-file", "--push-token-file"})
_HEX: Final = frozenset("0123456789abcdef")


async def hello(tools: Tools, leases: RunLeases, call: Call, request: web.Request) -> web.Response:
    """Serve `POST hello`. The same nonce gets the same claim until the claim closes."""
    message = await read_message(HelloRequest, request, HELLO_BODY_BYTES_MAX)
    _check(message)
    record, pod_uid = _record(call)
    if _is_lost(call):
        tools.bell.ring(call.key)
        raise ApiError(
            ErrorCode.LOSS_PENDING, "this pod was seen missing; it is looked at again", 2
        )
    pod = await _pod(tools, call, record)
    bundle = await _bundle(tools, call, record)
    credential, minted = await _credential(tools, call, pod)
    epoch = await leases.take(call, holder_of(pod_uid, message.boot_nonce))
    _refuse_closed(call, epoch)
    result = await tools.writer.guarded_write(
        call.view.ref,
        (NoVerdict(), AttemptIs(record.tag, pod_uid)),
        Change((_incarnation(record, pod_uid, epoch, message),), epoch),
    )
    if isinstance(result, EpochFell):
        # The Lease is ours, but a later epoch stands in the journal: the next try goes above it.
        raise ApiError(ErrorCode.CONTENDED, "another process was faster; try again", 1)
    done_or_refuse(result)
    tools.bell.ring(call.key)
    return answer(
        HelloResponse(
            protocol=PROTOCOL_VERSION,
            writer=record.tag,
            epoch=epoch,
            lease_seconds=RUN_LEASE_SECONDS,
            bundle=bundle,
            clone_credential=credential,
            server_time=tools.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            clone_token=minted,
        )
    )


def _check(message: HelloRequest) -> None:
    if not message.protocol.min <= PROTOCOL_VERSION <= message.protocol.max:
        raise ApiError(
            ErrorCode.PROTOCOL_UNSUPPORTED,
            f"protocol {PROTOCOL_VERSION} is served, "
            f"not {message.protocol.min} to {message.protocol.max}",
        )
    nonce = message.boot_nonce
    if len(nonce) != NONCE_LENGTH or not _HEX.issuperset(nonce):
        raise ApiError(ErrorCode.INVALID_REQUEST, "bootNonce has 32 lower-case hex digits")


def _record(call: Call) -> tuple[PodRecord, PodUid]:
    record = call.view.state.last_pod
    assert record is not None, "the caller is the writer"
    assert record.pod_uid is not None, "the caller's UID was compared"
    return record, record.pod_uid


def _is_lost(call: Call) -> bool:
    facts = call.view.facts
    publishes = call.caller.role is Role.PUBLISHER
    return (facts.delivery_lost_at if publishes else facts.attempt_lost_at) is not None


async def _pod(tools: Tools, call: Call, record: PodRecord) -> dict[str, Any]:
    """Read the caller's pod: a token outlives its pod by up to a minute."""
    match await tools.cluster.get(PODS, call.view.ref.namespace, record.pod_name):
        case Ok(raw) if raw["metadata"]["uid"] == record.pod_uid:
            return dict(raw)
        case Ok() | NotFound():
            raise ApiError(ErrorCode.NOT_CURRENT_WRITER, f"pod {record.pod_name} is gone")
        case Denied(_, cause) | Unknown(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, f"pod {record.pod_name}: {cause}", 2)


async def _bundle(tools: Tools, call: Call, record: PodRecord) -> ArtifactRef:
    match await tools.store.head(call.view.uid, record.bundle):
        case Stored(_, size):
            return ArtifactRef(record.bundle, size)
        case Absent():
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, "the bundle isn't in the store", 2)
        case StoreDown(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)


def _refuse_closed(call: Call, epoch: Epoch) -> None:
    """The claim closes with the first other entry of its epoch; a replay may have minted again."""
    opened = f"{call.caller.tag}/i{epoch}"
    if any(
        entry.epoch == epoch and entry.id != opened and entry.kind != "mint"
        for entry in call.view.state.fold
    ):
        raise ApiError(ErrorCode.ALREADY_CLAIMED, f"epoch {epoch} has begun its work already")


def _incarnation(record: PodRecord, pod_uid: PodUid, epoch: Epoch, message: HelloRequest) -> Draft:
    return Draft(
        EntryId(f"{record.tag}/i{epoch}"),
        "incarnation",
        EntryState.DONE,
        {
            "podUID": pod_uid,
            "nonce": sha256_of(message.boot_nonce.encode("ascii")),
            "protocol": str(PROTOCOL_VERSION),
            "version": message.version,
        },
    )


async def _credential(
    tools: Tools, call: Call, pod: dict[str, Any]
) -> tuple[str, MintedToken | None]:
    """Say where the credential is; a runner's is minted now, a publisher asks when it needs one."""
    if _is_mounted(pod):
        return "mounted", None
    policy = await frozen_policy(tools, call)
    if policy is None or policy.spec.credentials.app is None:
        return "none", None
    if call.caller.role is Role.PUBLISHER:
        return "minted", None
    return "minted", await clone_token(tools, call, policy)


def _is_mounted(pod: dict[str, Any]) -> bool:
    """Whether the policy mounted a credential: the pod's own arguments name its file."""
    words = [
        word
        for container in pod["spec"].get("containers", ())
        for part in ("command", "args")
        for word in container.get(part) or ()
    ]
    return not _CREDENTIAL_FLAGS.isdisjoint(words)
