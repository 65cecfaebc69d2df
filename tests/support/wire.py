"""A server that misbehaves on the wire exactly as told: for tests of transports.

Each connection takes the next act of the script; the last one is repeated. A request is read whole
before an act answers, so that what the client sent can be asserted.
"""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Seen | None]]


async def read_request(reader: asyncio.StreamReader) -> Seen:
    """Read one request with a length or chunks."""
    head = await reader.readuntil(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (item.partition(":") for item in rest if item)
    }
    if "chunked" in headers.get("transfer-encoding", ""):
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, target, headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body


def answer(
    status: int,
    body: bytes = b"{}",
    headers: dict[str, str] | None = None,
    *,
    length: bool = True,
) -> Act:
    """Answer a whole request; without `length` the end of the connection ends the body."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Seen:
        seen = await read_request(reader)
        announced = {"Content-Length": str(len(body))} if length else {}
        lines = [f"HTTP/1.1 {status} Said", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in (announced | (headers or {})).items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return seen

    return act


def error(status: int, code: str, headers: dict[str, str] | None = None) -> Act:
    """Answer with the API's error body."""
    body = json.dumps({"error": {"code": code, "message": f"no: {code}", "details": {}}}).encode()
    return answer(status, body, headers)


def raw(content: bytes) -> Act:
    """Read a request, write these bytes, close."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Seen:
        seen = await read_request(reader)
        writer.write(content)
        await writer.drain()
        return seen

    return act


async def close_unread(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Close before anything was read."""


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Seen:
    """Read a request, then reset the connection."""
    seen = await read_request(reader)
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return seen


async def stall(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> Seen:
    """Read a request and never answer; ends when the client goes away."""
    seen = await read_request(reader)
    await reader.read()
    return seen


@dataclass
class WireServer:
    """Listens on a free port of 127.0.0.1 and plays a script of acts."""

    script: list[Act]
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> "WireServer":
        """Listen; after `stop` on the same port again."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self.tls, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Stop listening: further connections are refused."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        act = self.script[min(self.connections, len(self.script) - 1)]
        self.connections += 1
        self.connected.set()
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            seen = await act(reader, writer)
            if seen is not None:
                self.seen.append(seen)
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()
