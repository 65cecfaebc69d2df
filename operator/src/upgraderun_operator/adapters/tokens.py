"""Who holds a bearer token: TokenReview, positive answers kept for 30 s (runner-protocol.md §1.4).

The cache is keyed by the token's hash; tokens themselves are never stored or logged. What is kept
is who somebody is, never whether he is the run's writer. `main` makes one for the runner API.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, Protocol

from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.answers import CreateAnswer, Denied, KubeObject, Ok, Unknown
from upgraderun_operator.api.ports import Identity
from upgraderun_operator.resources import TOKEN_REVIEWS, Resource
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import PodUid, Sha256
from upgraderun_protocol.messages import TOKEN_AUDIENCE

CACHE_SECONDS: Final = 30.0
CACHE_MAX: Final = 4096
TOKEN_BYTES_MAX: Final = 16_384
POD_UID_KEY: Final = "authentication.kubernetes.io/pod-uid"
_PREFIX: Final = "system:serviceaccount:"


class Creator(Protocol):
    """The part of the client that a review needs."""

    async def create(
        self, resource: Resource, namespace: str | None, body: KubeObject
    ) -> CreateAnswer:
        """Create one object."""
        ...


class TokenReviews:
    """Reviews for one audience. Negative and unknown answers aren't kept."""

    def __init__(self, client: Creator, clock: Clock, audience: str = TOKEN_AUDIENCE) -> None:
        self._client = client
        self._clock = clock
        self._audience = audience
        self._known: OrderedDict[Sha256, tuple[float, Identity]] = OrderedDict()

    async def review(self, token: str) -> Identity | Unknown | None:
        """Tell who holds a token; None: nobody that may speak here."""
        if len(token) > TOKEN_BYTES_MAX or not token.isascii():
            return None
        key = sha256_of(token.encode("ascii"))
        now = self._clock.monotonic()
        known = self._known.get(key)
        if known is not None and now - known[0] < CACHE_SECONDS:
            return known[1]
        body = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token, "audiences": [self._audience]},
        }
        match await self._client.create(TOKEN_REVIEWS, None, body):
            case Ok(answer):
                identity = self._identity(answer.get("status") or {})
                if identity is not None:
                    self._remember(key, now, identity)
                return identity
            case Denied(status, message):
                # The review was refused, not the token: our own rights are missing.
                return Unknown(f"TokenReview: {status} {message}")
            case Unknown() as unknown:
                return unknown
            case other:
                return Unknown(f"TokenReview: {other}")

    def _identity(self, status: Mapping[str, Any]) -> Identity | None:
        if status.get("authenticated") is not True:
            return None
        if self._audience not in (status.get("audiences") or ()):
            return None
        user = status.get("user") or {}
        namespace, _, account = str(user.get("username", "")).removeprefix(_PREFIX).partition(":")
        pods: list[str] = (user.get("extra") or {}).get(POD_UID_KEY) or []
        is_account = str(user.get("username", "")).startswith(_PREFIX)
        if not is_account or not namespace or not account or len(pods) != 1:
            return None
        return Identity(namespace, account, PodUid(pods[0]))

    def _remember(self, key: Sha256, now: float, identity: Identity) -> None:
        self._known[key] = (now, identity)
        self._known.move_to_end(key)
        if len(self._known) > CACHE_MAX:
            self._known.popitem(last=False)
