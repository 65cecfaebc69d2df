"""Bodies of requests and answers: bounded before they are parsed, strict when they are (H14)."""

from collections.abc import AsyncIterator
from typing import Any, Final, TypeVar

from aiohttp import web

from upgraderun_operator.api.errors import ApiError
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.limits import MIB
from upgraderun_protocol.messages import HEADER_SHA256, ErrorCode
from upgraderun_protocol.records import RecordError, from_bytes, to_json

T = TypeVar("T")
CHUNK_BYTES: Final = MIB


async def read_body(request: web.Request, limit: int) -> bytes:
    """Read a body of at most `limit` bytes. Raises ApiError `too_large`."""
    refuse_long(request, limit)
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > limit:
            raise ApiError(ErrorCode.TOO_LARGE, f"the body is longer than {limit} bytes")
    return bytes(data)


def refuse_long(request: web.Request, limit: int) -> None:
    """Refuse a body whose announced length is over the limit, before its first byte."""
    if request.content_length is not None and request.content_length > limit:
        raise ApiError(ErrorCode.TOO_LARGE, f"the body is longer than {limit} bytes")


async def read_message(kind: type[T], request: web.Request, limit: int) -> T:
    """Read a message of a kind. Raises ApiError `too_large` or `invalid_request`."""
    return parse_message(kind, await read_body(request, limit))


def parse_message(kind: type[T], data: bytes) -> T:
    """Read a message from bytes. Raises ApiError `invalid_request`, which says where."""
    try:
        return from_bytes(kind, data)
    except RecordError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error


async def chunks_of(request: web.Request) -> AsyncIterator[bytes]:
    """Bytes of an upload as they come, in pieces worth a write."""
    async for chunk in request.content.iter_chunked(CHUNK_BYTES):
        yield chunk


def answer(message: Any) -> web.Response:
    """Answer with a message as JSON."""
    return web.json_response(to_json(message))


def bytes_answer(data: bytes) -> web.Response:
    """Answer with bytes and their digest."""
    return web.Response(
        body=data,
        content_type="application/octet-stream",
        headers={HEADER_SHA256: sha256_of(data)},
    )
