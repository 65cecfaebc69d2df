"""`PUT`, `GET`, `HEAD artifacts/<sha256>` and `GET bundle`: bytes by their digest (§1.5)."""

from typing import assert_never

from aiohttp import web

from upgraderun_operator.answers import Absent, Mismatch, Stored, StoreDown, TooLarge
from upgraderun_operator.api.bodies import answer, bytes_answer, chunks_of, refuse_long
from upgraderun_operator.api.context import Call, Tools
from upgraderun_operator.api.errors import ApiError
from upgraderun_protocol.canonical import is_sha256
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.limits import ARTIFACT_BYTES_MAX
from upgraderun_protocol.messages import HEADER_SHA256, ArtifactRef, ErrorCode


async def put(tools: Tools, call: Call, request: web.Request) -> web.Response:
    """Store an upload under its digest; it gets its name only if it hashes to it."""
    digest = _digest(request)
    refuse_long(request, ARTIFACT_BYTES_MAX)
    match await tools.store.put_if_absent(call.view.uid, digest, chunks_of(request)):
        case Stored(_, size):
            return answer(ArtifactRef(digest, size))
        case Mismatch(found):
            raise ApiError(ErrorCode.DIGEST_MISMATCH, f"the received bytes have digest {found}")
        case TooLarge(limit):
            raise ApiError(ErrorCode.TOO_LARGE, f"{limit} bytes are left for this artifact")
        case StoreDown(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)
        case never:
            assert_never(never)


async def get(tools: Tools, call: Call, request: web.Request) -> web.Response:
    """Bytes of an artifact of this run."""
    return await _bytes(tools, call, _digest(request))


async def head(tools: Tools, call: Call, request: web.Request) -> web.Response:
    """Whether an artifact of this run is stored, and how long it is."""
    digest = _digest(request)
    match await tools.store.head(call.view.uid, digest):
        case Stored(_, size):
            return web.Response(headers={"Content-Length": str(size), HEADER_SHA256: digest})
        case Absent():
            raise ApiError(ErrorCode.ARTIFACT_UNKNOWN, f"no artifact {digest}")
        case StoreDown(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)
        case never:
            assert_never(never)


async def bundle(tools: Tools, call: Call) -> web.Response:
    """What the caller's pod is told; stored before the pod was created."""
    record = call.view.state.last_pod
    assert record is not None, "the caller is the writer"
    return await _bytes(tools, call, record.bundle)


async def _bytes(tools: Tools, call: Call, digest: Sha256) -> web.Response:
    match await tools.store.get(call.view.uid, digest):
        case bytes() as data:
            return bytes_answer(data)
        case Absent():
            raise ApiError(ErrorCode.ARTIFACT_UNKNOWN, f"no artifact {digest}")
        case StoreDown(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)
        case never:
            assert_never(never)


def _digest(request: web.Request) -> Sha256:
    text = request.match_info["sha256"]
    if not is_sha256(text):
        raise ApiError(ErrorCode.INVALID_REQUEST, "an artifact is named by 64 hex digits")
    return Sha256(text)
