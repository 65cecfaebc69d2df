"""The runner's transport against servers that misbehave on real sockets (runner-protocol.md §10)."""

import asyncio
import json
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from clusterlib.certificates import ensure_authority, ensure_certificate
from support import wire
from support.seams import VirtualTime, seams
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.endpoints import CONSERVATIVE, ENDPOINTS
from upgraderun_protocol.redact import Redactor
from upgraderun_runner import limits
from upgraderun_runner.client.transport import Seams, Target, Transport, classify
from upgraderun_runner.errors import LossClass, TransportError

Make = Callable[..., Transport]
PATHS = [(method, segment) for method, segment in ENDPOINTS if method != "HEAD"]
UNKNOWN = ("POST", "unheard-of")
TOKEN = "token-of-the-first-hour"


@pytest.fixture
def clock() -> VirtualTime:
    return VirtualTime()


@pytest.fixture
async def make(tmp_path: Path, clock: VirtualTime) -> AsyncIterator[Make]:
    """Transports to a port, closed at the end."""
    (tmp_path / "token").write_text(TOKEN)
    made: list[Transport] = []

    def build(
        url: str, *, jitter: float = 0.0, ca: Path | None = None, real: bool = False
    ) -> Transport:
        target = Target(f"{url}/runner/ns/run/uid", tmp_path / "token", ca)
        chosen = _real_seams() if real else seams(clock, jitter)
        transport = Transport(target, chosen, Redactor())
        made.append(transport)
        return transport

    yield build
    for transport in made:
        await transport.aclose()


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[wire.WireServer]]]:
    """Start servers that end with the test."""
    started: list[wire.WireServer] = []

    async def start(*script: wire.Act, tls: ssl.SSLContext | None = None) -> wire.WireServer:
        server = await wire.WireServer(list(script), tls=tls).start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()


def _real_seams() -> Seams:
    return Seams(
        monotonic=time.monotonic,
        now=lambda: datetime.now(UTC),
        sleep=asyncio.sleep,
        jitter=random.random,
        new_id=lambda: "0" * 32,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _fails(call: Awaitable[object]) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await call
    return caught.value


Serve = Callable[..., Awaitable[wire.WireServer]]


class TestOneCallOutlivesARestart:
    """RP1: one result however the server fared meanwhile."""

    async def test_server_that_listens_again_on_its_port_answers_the_same_call(
        self, make: Make, serve: Serve
    ) -> None:
        server = await serve(wire.answer(200, b'{"ok":true}'))
        await server.stop()
        call = asyncio.ensure_future(make(server.url, real=True).call("GET", "journal"))
        for _ in range(3):
            await asyncio.sleep(0)

        await server.start()

        assert await call == {"ok": True}
        assert len(server.seen) == 1

    async def test_two_503_then_200_are_three_attempts_of_one_request(
        self, make: Make, serve: Serve, clock: VirtualTime
    ) -> None:
        server = await serve(
            wire.error(503, "contended"), wire.error(503, "contended"), wire.answer(200)
        )

        assert await make(server.url).call("POST", "journal", lambda: b"{}") == {}

        assert ["0", "1", "2"] == [seen.headers["upgraderun-try"] for seen in server.seen]
        assert 1 == len({seen.headers["upgraderun-request"] for seen in server.seen})
        assert [0.25, 0.5] == clock.slept

    async def test_nine_429_are_raised_and_eight_are_survived(
        self, make: Make, serve: Serve
    ) -> None:
        limited = wire.error(429, "rate_limited", {"Retry-After": "1"})
        refused = await serve(limited)
        survived = await serve(*[limited] * 8, wire.answer(200))

        error = await _fails(make(refused.url).call("GET", "journal"))

        assert (LossClass.LIMITED, 9, 429) == (error.loss, error.attempts, error.status)
        assert await make(survived.url).call("GET", "journal") == {}

    async def test_429_is_exempt_from_the_budget(
        self, make: Make, serve: Serve, clock: VirtualTime
    ) -> None:
        """Four waits of 60 s outlast a budget of 180 s."""
        limited = wire.error(429, "rate_limited", {"Retry-After": "60"})
        server = await serve(*[limited] * 4, wire.answer(200))

        assert await make(server.url).call("GET", "journal") == {}
        assert 240 == clock.elapsed

    async def test_429_without_retry_after_waits_one_second(
        self, make: Make, serve: Serve, clock: VirtualTime
    ) -> None:
        server = await serve(wire.error(429, "rate_limited"), wire.answer(200))

        await make(server.url).call("GET", "journal")

        assert [1.0] == clock.slept


class TestClasses:
    """RP2: the class of every failure decides whether a call may go out again (§2.1)."""

    AMBIGUOUS = (
        pytest.param(wire.reset, id="reset"),
        pytest.param(wire.raw(b""), id="closed without answer"),
        pytest.param(wire.raw(b"HTTP/1.1 2xx nonsense\r\n\r\n"), id="bad status line"),
        pytest.param(
            wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), id="cut by length"
        ),
        pytest.param(
            wire.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}"),
            id="cut chunk",
        ),
        pytest.param(wire.answer(200, length=False), id="close-delimited"),
        pytest.param(wire.stall, id="stall"),
        pytest.param(wire.error(500, "x"), id="500"),
        pytest.param(wire.error(502, "x"), id="502"),
        pytest.param(wire.error(503, "x"), id="503"),
        pytest.param(wire.error(504, "x"), id="504"),
    )

    @pytest.fixture(autouse=True)
    def _short_reads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "READ_SECONDS", 0.2)
        monkeypatch.setattr(limits, "RESULT_READ_SECONDS", 0.2)

    @pytest.mark.parametrize(("method", "path"), [*PATHS, UNKNOWN])
    async def test_refused_connection_is_retried_under_every_policy(
        self, make: Make, serve: Serve, clock: VirtualTime, method: str, path: str
    ) -> None:
        server = await serve(wire.answer(200))
        await server.stop()
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[wire.WireServer]] = []
        clock.on_sleep = lambda: tasks.append(loop.create_task(server.start()))

        transport = make(server.url)
        original = clock.sleep

        async def sleep_and_start(seconds: float) -> None:
            await original(seconds)
            await tasks[-1]
            clock.on_sleep = None

        transport = Transport(
            transport._target,
            Seams(clock.monotonic, clock.now, sleep_and_start, lambda: 0.0, lambda: "0" * 32),
            Redactor(),
        )
        try:
            assert await transport.call(method, path) == {}
        finally:
            await transport.aclose()

    @pytest.mark.parametrize("act", AMBIGUOUS)
    async def test_ambiguous_loss_is_one_attempt_where_nothing_says_that_replay_is_safe(
        self, make: Make, serve: Serve, act: wire.Act
    ) -> None:
        server = await serve(act, wire.answer(200))

        error = await _fails(make(server.url).call(*UNKNOWN))

        assert (LossClass.AMBIGUOUS, 1) == (error.loss, error.attempts)

    @pytest.mark.parametrize("act", AMBIGUOUS)
    async def test_ambiguous_loss_is_two_attempts_where_replay_is_safe(
        self, make: Make, serve: Serve, act: wire.Act
    ) -> None:
        server = await serve(act, wire.answer(200))

        assert await make(server.url).call("POST", "journal", lambda: b"{}") == {}
        assert 2 == server.connections

    @pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 426, 301, 201, 505])
    async def test_every_other_status_is_fatal_at_once(
        self, make: Make, serve: Serve, status: int
    ) -> None:
        server = await serve(wire.error(status, "invalid_request"), wire.answer(200))

        error = await _fails(make(server.url).call("GET", "journal"))

        assert (LossClass.FATAL, 1, status) == (error.loss, error.attempts, error.status)
        assert "invalid_request" == error.code

    async def test_complete_200_that_is_no_json_is_fatal(self, make: Make, serve: Serve) -> None:
        server = await serve(wire.answer(200, b"<html>"), wire.answer(200))

        error = await _fails(make(server.url).call("GET", "journal"))

        assert LossClass.FATAL == error.loss
        assert 1 == server.connections

    async def test_bytes_with_another_digest_are_ambiguous_and_read_again(
        self, make: Make, serve: Serve
    ) -> None:
        good = wire.answer(200, b"bytes", {"UpgradeRun-SHA256": sha256_of(b"bytes")})
        bad = wire.answer(200, b"bytez", {"UpgradeRun-SHA256": sha256_of(b"bytes")})
        server = await serve(bad, good)

        assert b"bytes" == await make(server.url).fetch_bytes("GET", "bundle")
        assert 2 == server.connections

    async def test_bytes_without_a_digest_are_not_believed(self, make: Make, serve: Serve) -> None:
        server = await serve(wire.answer(200, b"bytes"))

        error = await _fails(make(server.url).fetch_bytes("GET", "bundle"))

        assert LossClass.AMBIGUOUS == error.loss

    async def test_name_that_does_not_resolve_is_undelivered(self, make: Make) -> None:
        error = await _fails(make("http://nowhere.invalid:1").call(*UNKNOWN))

        assert LossClass.UNDELIVERED == error.loss
        assert error.attempts > 2

    async def test_cut_handshake_is_undelivered(self, make: Make, serve: Serve) -> None:
        server = await serve(wire.close_unread)

        error = await _fails(make(server.url.replace("http:", "https:")).call(*UNKNOWN))

        assert LossClass.UNDELIVERED == error.loss

    async def test_callers_cancellation_passes_untouched_and_is_never_retried(
        self, make: Make, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "READ_SECONDS", 30)
        server = await serve(wire.stall)
        call = asyncio.ensure_future(make(server.url).call("GET", "journal"))
        await server.connected.wait()

        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call
        assert 1 == server.connections

    async def test_outer_timeout_passes_untouched(
        self, make: Make, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "READ_SECONDS", 30)
        server = await serve(wire.stall)
        outer = asyncio.timeout(None)

        async def calls() -> None:
            async with outer:
                await make(server.url).call("GET", "journal")

        call = asyncio.ensure_future(calls())
        await server.connected.wait()

        outer.reschedule(0.0)

        with pytest.raises(TimeoutError):
            await call
        assert outer.expired()
        assert 1 == server.connections

    def test_outermost_type_decides_though_a_cancellation_is_among_the_causes(self) -> None:
        timeout = httpx.ReadTimeout("slow")
        timeout.__cause__ = asyncio.CancelledError()
        assert LossClass.AMBIGUOUS == classify(timeout)

    @pytest.mark.parametrize(
        ("error", "loss"),
        [
            (httpx.PoolTimeout("x"), LossClass.UNDELIVERED),
            (httpx.ConnectTimeout("x"), LossClass.UNDELIVERED),
            (httpx.WriteError("x"), LossClass.AMBIGUOUS),
            (httpx.WriteTimeout("x"), LossClass.AMBIGUOUS),
            (httpx.CloseError("x"), LossClass.AMBIGUOUS),
            (httpx.DecodingError("x"), LossClass.AMBIGUOUS),
            (httpx.ProxyError("x"), LossClass.FATAL),
            (httpx.UnsupportedProtocol("x"), LossClass.FATAL),
            (httpx.LocalProtocolError("x"), LossClass.FATAL),
            (httpx.TooManyRedirects("x"), LossClass.FATAL),
            (httpx.InvalidURL("x"), LossClass.FATAL),
            (httpx.StreamConsumed(), LossClass.FATAL),
            (ExceptionGroup("all addresses", [httpx.ConnectError("x")]), LossClass.FATAL),
            (ValueError("unknown"), LossClass.FATAL),
        ],
    )
    def test_table_of_types(self, error: BaseException, loss: LossClass) -> None:
        assert loss == classify(error)


class TestTrust:
    """§2: only the mounted CA; after a refused certificate the file is read again."""

    async def test_renewed_ca_file_is_read_by_the_next_attempt(
        self, make: Make, serve: Serve, clock: VirtualTime, tmp_path: Path
    ) -> None:
        authority = ensure_authority(tmp_path / "ours")
        leaf = ensure_certificate(tmp_path / "ours", "server", "server", hosts=["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf.crt, leaf.key)
        server = await serve(wire.answer(200), tls=context)
        ca_file = tmp_path / "trusted.pem"
        ca_file.write_bytes(ensure_authority(tmp_path / "other").crt.read_bytes())

        def renew() -> None:
            ca_file.write_bytes(authority.crt.read_bytes())

        clock.on_sleep = renew

        assert await make(server.url, ca=ca_file).call(*UNKNOWN) == {}
        assert 1 == len(clock.slept)


class TestGuaranteedRetry:
    """RP3: one retry even if the first attempt outlasted the budget."""

    @pytest.fixture(autouse=True)
    def _no_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        monkeypatch.setattr(
            "upgraderun_runner.client.transport.policy_for",
            lambda method, path: replace(
                ENDPOINTS.get((method, path), CONSERVATIVE), budget_seconds=0
            ),
        )

    async def test_refused_port_gets_one_retry(self, make: Make) -> None:
        error = await _fails(make(f"http://127.0.0.1:{_free_port()}").call(*UNKNOWN))

        assert (LossClass.UNDELIVERED, 2) == (error.loss, error.attempts)

    async def test_503_gets_one_retry(self, make: Make, serve: Serve) -> None:
        server = await serve(wire.error(503, "contended"))

        error = await _fails(make(server.url).call("GET", "journal"))

        assert (503, 2) == (error.status, error.attempts)

    async def test_400_gets_none(self, make: Make, serve: Serve) -> None:
        server = await serve(wire.error(400, "invalid_request"))

        assert 1 == (await _fails(make(server.url).call("GET", "journal"))).attempts


class TestBudget:
    """RP3: tries are bounded by the endpoint's budget, and the last comes as it ends."""

    async def test_spent_budget_bounds_the_tries(
        self, make: Make, serve: Serve, clock: VirtualTime
    ) -> None:
        server = await serve(wire.error(503, "contended"))

        error = await _fails(make(server.url, jitter=0.5).call("GET", "journal"))

        assert 180 == clock.elapsed
        assert server.connections == error.attempts
        assert 20 < error.attempts < 40

    async def test_generator_body_arrives_whole_on_every_attempt(
        self, make: Make, serve: Serve
    ) -> None:
        server = await serve(wire.error(503, "contended"), wire.answer(200))

        async def body() -> AsyncIterator[bytes]:
            yield b"first "
            yield b"second"

        await make(server.url).call("PUT", "artifacts/x", body)

        assert [b"first second", b"first second"] == [seen.body for seen in server.seen]


class TestToken:
    """§1.4, §2.1: the token file is read for every attempt; a renewed one is tried at once."""

    async def test_401_with_a_renewed_file_is_tried_at_once(
        self, make: Make, serve: Serve, clock: VirtualTime, tmp_path: Path
    ) -> None:
        async def renew(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> wire.Seen:
            (tmp_path / "token").write_text("token-of-the-second-hour")
            seen = await wire.error(401, "unauthenticated")(reader, writer)
            assert seen is not None
            return seen

        server = await serve(renew, wire.answer(200))

        assert await make(server.url).call(*UNKNOWN) == {}

        assert ["Bearer token-of-the-first-hour", "Bearer token-of-the-second-hour"] == [
            seen.headers["authorization"] for seen in server.seen
        ]
        assert [] == clock.slept

    async def test_401_with_the_same_token_is_fatal(self, make: Make, serve: Serve) -> None:
        server = await serve(wire.error(401, "unauthenticated"))

        error = await _fails(make(server.url).call("GET", "journal"))

        assert (LossClass.FATAL, 1) == (error.loss, error.attempts)

    async def test_error_text_never_shows_the_token(self, make: Make, serve: Serve) -> None:
        body = json.dumps({"error": {"code": "x", "message": f"bad {TOKEN}"}}).encode()
        server = await serve(wire.answer(400, body))

        error = await _fails(make(server.url).call("GET", "journal"))

        assert TOKEN not in str(error)


class TestPacing:
    """RP4: the formula of §2.2 on the wire."""

    @pytest.mark.parametrize(
        ("jitter", "waits"),
        [
            (0.0, [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 5.0]),
            (1 - 2**-53, [0.499, 0.999, 1.999, 3.999, 7.999, 9.999, 9.999, 9.999, 9.999]),
        ],
    )
    async def test_waits_double_up_to_ten_seconds(
        self,
        make: Make,
        serve: Serve,
        clock: VirtualTime,
        jitter: float,
        waits: list[float],
    ) -> None:
        server = await serve(*[wire.error(503, "contended")] * 9, wire.answer(200))

        await make(server.url, jitter=jitter).call("GET", "journal")

        assert waits == pytest.approx(clock.slept, abs=0.0011)

    @pytest.mark.parametrize(("after", "wait"), [("0", 0.25), ("1", 1.0), ("600", 60.0)])
    async def test_retry_after_lengthens_a_503_and_never_shortens_it(
        self, make: Make, serve: Serve, clock: VirtualTime, after: str, wait: float
    ) -> None:
        server = await serve(
            wire.error(503, "run_leased", {"Retry-After": after}), wire.answer(200)
        )

        await make(server.url).call("GET", "journal")

        assert [wait] == clock.slept


class TestRecogniser:
    """RP4, §2.2: only 409 with code `run_terminal` means that the run has ended."""

    @pytest.mark.parametrize(
        ("act", "recorded"),
        [
            (wire.error(409, "run_terminal"), True),
            (wire.error(409, "verdict_conflict"), False),
            (wire.error(410, "run_terminal"), False),
            (wire.answer(409, b"run_terminal"), False),
            (wire.answer(409, b'{"error":{"code":7,"message":"run_terminal"}}'), False),
        ],
    )
    async def test_status_and_code_together(
        self, make: Make, serve: Serve, act: wire.Act, recorded: bool
    ) -> None:
        server = await serve(act)

        assert recorded == (await _fails(make(server.url).call("POST", "result"))).is_recorded

    @pytest.mark.parametrize(
        ("status", "code", "fenced"),
        [
            (403, "not_current_writer", True),
            (409, "epoch_stale", True),
            (409, "lease_lost", True),
            (403, "role_forbidden", False),
            (409, "not_current_writer", False),
        ],
    )
    async def test_fenced(
        self, make: Make, serve: Serve, status: int, code: str, fenced: bool
    ) -> None:
        server = await serve(wire.error(status, code))

        assert fenced == (await _fails(make(server.url).call("PUT", "lease"))).is_fenced
