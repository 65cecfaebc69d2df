"""The Kubernetes client: typed answers over aiohttp, explicit timeouts, no retries of its own.

Only `main` makes one. Reads are quorum reads (no resourceVersion named); whoever may use an older
view has the watch. A PUT always names resourceVersion and UID, which makes a second sending by the
HTTP library harmless (DESIGN §6a). Nothing here is ever a patch.
"""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode

import aiohttp

from upgraderun_operator.adapters.kubeconfig import ClusterConfig
from upgraderun_operator.adapters.limiter import RateLimiter
from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.answers import (
    AlreadyExists,
    Conflict,
    CreateAnswer,
    DeleteAnswer,
    Denied,
    GetAnswer,
    KubeObject,
    ListAnswer,
    Listing,
    NotFound,
    Ok,
    PutAnswer,
    Unknown,
)
from upgraderun_operator.resources import LEASES, Resource

CALL_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 3.0
WATCH_SECONDS: Final = 290
LIST_CHUNK: Final = 500
CONNECTIONS: Final = 64
TOKEN_SECONDS: Final = 60.0
METADATA_LIST: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
_REFUSALS: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """Requests per second that leave this process; None lifts a limit (benchmarks)."""

    writes_per_second: float | None = 200
    writes_burst: int = 400
    leases_per_second: float | None = 200
    leases_burst: int = 200


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, with its object."""

    type: str
    object: KubeObject


@dataclass(frozen=True, slots=True)
class _Reply:
    """A whole answer: status code, parsed body (a `Status` on errors), `Retry-After`."""

    status: int
    body: Any
    retry_after: float | None

    @property
    def message(self) -> str:
        text = self.body.get("message") if isinstance(self.body, Mapping) else None
        return str(text or f"HTTP {self.status}")[:1024]

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", "")) if isinstance(self.body, Mapping) else ""


class KubeClient:
    """Async context manager around one connection pool. Every call ends within its timeout."""

    def __init__(
        self,
        config: ClusterConfig,
        clock: Clock,
        limits: WriteLimits | None = None,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        limits = limits or WriteLimits()
        self._config = config
        self._clock = clock
        self._call_seconds = call_seconds
        self._writes = RateLimiter(clock, limits.writes_per_second, limits.writes_burst)
        self._leases = RateLimiter(clock, limits.leases_per_second, limits.leases_burst)
        self._session: aiohttp.ClientSession | None = None
        self._token: tuple[float, str] | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._config.tls, limit=CONNECTIONS),
            headers={"Accept-Encoding": "identity", "User-Agent": "upgraderun-operator"},
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        timeout_seconds: float | None = None,
    ) -> GetAnswer:
        """Read one object from the API server itself (quorum)."""
        reply = await self._send(
            "GET", resource.path(namespace, name), timeout_seconds=timeout_seconds
        )
        if isinstance(reply, Unknown) or reply.status >= HTTPStatus.BAD_REQUEST:
            return _refusal(reply)
        return Ok(reply.body)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> ListAnswer:
        """Read a whole list in chunks of one consistent version. `namespace` None: everywhere."""
        items: list[KubeObject] = []
        query = {"limit": str(LIST_CHUNK)}
        query |= {"labelSelector": labels} if labels else {}
        query |= {"fieldSelector": fields} if fields else {}
        accept = METADATA_LIST if metadata_only else "application/json"
        while True:
            path = f"{resource.path(namespace)}?{urlencode(query)}"
            reply = await self._send("GET", path, accept=accept)
            if isinstance(reply, Unknown) or reply.status >= HTTPStatus.BAD_REQUEST:
                answer = _refusal(reply)
                return Unknown(str(answer)) if isinstance(answer, NotFound) else answer
            metadata = reply.body.get("metadata") or {}
            items.extend(reply.body.get("items") or ())
            if not metadata.get("continue"):
                return Ok(Listing(tuple(items), str(metadata.get("resourceVersion", ""))))
            query["continue"] = metadata["continue"]

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: KubeObject,
        *,
        timeout_seconds: float | None = None,
    ) -> CreateAnswer:
        """Create an object. AlreadyExists isn't failure: read it, adopt it only if it is ours."""
        await self._limiter(resource).acquire()
        reply = await self._send(
            "POST", resource.path(namespace), body=body, timeout_seconds=timeout_seconds
        )
        if isinstance(reply, _Reply):
            if reply.status < HTTPStatus.BAD_REQUEST:
                return Ok(reply.body)
            if reply.status == HTTPStatus.CONFLICT:
                taken = reply.reason == "AlreadyExists"
                return AlreadyExists(reply.message) if taken else Unknown(reply.message)
        return _refusal(reply)

    async def create_token(
        self, namespace: str, account: str, spec: Mapping[str, Any]
    ) -> CreateAnswer:
        """Ask for a token of a service account (TokenRequest)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": dict(spec),
        }
        reply = await self._send("POST", path, body=body)
        if isinstance(reply, _Reply) and reply.status < HTTPStatus.BAD_REQUEST:
            return Ok(reply.body)
        return _refusal(reply)

    async def put(
        self,
        resource: Resource,
        body: KubeObject,
        *,
        subresource: str = "",
        timeout_seconds: float | None = None,
    ) -> PutAnswer:
        """Replace an object at the resourceVersion and UID that `body` names."""
        metadata = body["metadata"]
        assert metadata["resourceVersion"]
        assert metadata["uid"]
        await self._limiter(resource).acquire()
        path = resource.path(metadata.get("namespace"), metadata["name"])
        path += f"/{subresource}" if subresource else ""
        reply = await self._send("PUT", path, body=body, timeout_seconds=timeout_seconds)
        if isinstance(reply, _Reply):
            if reply.status < HTTPStatus.BAD_REQUEST:
                return Ok(reply.body)
            if reply.status == HTTPStatus.CONFLICT:
                return Conflict(reply.message)
        return _refusal(reply)

    async def put_status(self, resource: Resource, body: KubeObject) -> PutAnswer:
        """Replace the status of an object; `body` is the whole object."""
        return await self.put(resource, body, subresource="status")

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> DeleteAnswer:
        """Delete exactly this object: the UID is a precondition."""
        await self._limiter(resource).acquire()
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        reply = await self._send("DELETE", resource.path(namespace, name), body=body)
        if isinstance(reply, _Reply):
            if reply.status < HTTPStatus.BAD_REQUEST:
                return Ok(None)
            if reply.status == HTTPStatus.CONFLICT:
                return Conflict(reply.message)
        return _refusal(reply)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        resource_version: str,
        labels: str = "",
    ) -> AsyncIterator[WatchEvent]:
        """Stream changes after a version until the server ends the stream, at most 290 s.

        Ends silently on any failure: the caller lists again. An ERROR event is yielded as it came.
        """
        query = {
            "watch": "1",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
            "allowWatchBookmarks": "true",
        }
        query |= {"labelSelector": labels} if labels else {}
        timeout = aiohttp.ClientTimeout(
            total=WATCH_SECONDS + 30, sock_connect=CONNECT_SECONDS, sock_read=WATCH_SECONDS
        )
        url = f"{self._config.server}{resource.path(namespace)}?{urlencode(query)}"
        try:
            async with self._open.get(url, headers=self._headers(), timeout=timeout) as answer:
                if answer.status != HTTPStatus.OK:
                    return
                async for line in answer.content:
                    event = json.loads(line)
                    yield WatchEvent(event["type"], event["object"])
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return

    @property
    def _open(self) -> aiohttp.ClientSession:
        assert self._session is not None, "KubeClient is used inside `async with` only"
        return self._session

    def _limiter(self, resource: Resource) -> RateLimiter:
        return self._leases if resource is LEASES else self._writes

    def _headers(self) -> dict[str, str]:
        token = self._config.token
        if self._config.token_file is not None:
            now = self._clock.monotonic()
            if self._token is None or now - self._token[0] > TOKEN_SECONDS:
                text = self._config.token_file.read_text(encoding="ascii").strip()
                self._token = (now, text)
            token = self._token[1]
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: KubeObject | None = None,
        accept: str = "application/json",
        timeout_seconds: float | None = None,
    ) -> _Reply | Unknown:
        """One attempt, its body read whole. A broken or late answer is Unknown."""
        headers = self._headers() | {"Accept": accept}
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            headers["Content-Type"] = "application/json"
        timeout = aiohttp.ClientTimeout(
            total=timeout_seconds or self._call_seconds, sock_connect=CONNECT_SECONDS
        )
        url = self._config.server + path
        try:
            async with self._open.request(
                method, url, data=data, headers=headers, timeout=timeout
            ) as answer:
                text = await answer.read()
                retry_after = answer.headers.get("Retry-After", "")
                seconds = float(retry_after) if retry_after.isdigit() else None
                return _Reply(answer.status, _decode(text), seconds)
        except TimeoutError:
            return Unknown(f"{method} {path}: no answer in {timeout.total:.1f} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Unknown(f"{method} {path}: {type(error).__name__}: {error}"[:512])


def _decode(text: bytes) -> Any:
    """Errors of proxies are no JSON; only their status counts then."""
    return json.loads(text) if text[:1] in {b"{", b"["} else {}


def _refusal(reply: _Reply | Unknown) -> NotFound | Denied | Unknown:
    """What an answer other than success and 409 means."""
    if isinstance(reply, Unknown):
        return reply
    if reply.status == HTTPStatus.NOT_FOUND:
        return NotFound()
    if reply.status in _REFUSALS:
        return Denied(reply.status, reply.message)
    return Unknown(f"{reply.status}: {reply.message}", reply.retry_after)
