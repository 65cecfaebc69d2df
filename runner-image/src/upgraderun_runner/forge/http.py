"""The only HTTP client for the forge (style.md §9.4): bounded, no redirects, one host.

Callers: `forge.github`. A transport error, a 5xx or an unreadable body is `NoAnswer`: unknown.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Monotonic = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """The forge answered below 500; `body` is decoded JSON or None."""

    status: int
    body: Any
    retry_after_seconds: int | None
    rate_limited: bool


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No verdict: transport error, 5xx, 429 or secondary limit. `retry_after_seconds` is obeyed."""

    reason: str
    retry_after_seconds: int | None = None


class WritePacer:
    """Keeps writes to one host at least `interval_seconds` apart; git push and API share one."""

    def __init__(self, monotonic: Monotonic, sleep: Sleep, interval_seconds: float = 1.0) -> None:
        raise NotImplementedError

    async def wait(self) -> None:
        """Return when the next write may start, and count it as started."""
        raise NotImplementedError


class ForgeHttp:
    """JSON over HTTPS to one API root. `api_url` comes from the policy; the token goes nowhere else."""

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        pacer: WritePacer,
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        raise NotImplementedError

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply | NoAnswer:
        """Read; repeatable."""
        raise NotImplementedError

    async def post(self, path: str, body: Mapping[str, Any]) -> Reply | NoAnswer:
        """Write once; never repeated by itself."""
        raise NotImplementedError

    async def close(self) -> None:
        """Give the connections back."""
        raise NotImplementedError
