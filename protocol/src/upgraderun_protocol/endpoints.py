"""The runner API's endpoints: may a call be sent again after an ambiguous loss, and for how long.

One read-only table (runner-protocol.md §1.5, §1.7). The transport resolves it by itself; no other
function takes a policy, a budget or a retry argument.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class EndpointPolicy:
    """How a call behaves on loss: `budget_seconds` bounds all its tries; `why` justifies replay."""

    replay_safe: bool
    budget_seconds: int
    why: str


CONSERVATIVE: Final = EndpointPolicy(False, 180, "an unknown endpoint is never sent twice")

ENDPOINTS: Final = MappingProxyType(
    {
        ("POST", "hello"): EndpointPolicy(
            True, 180, "same nonce, same claim until the claim closes"
        ),
        ("GET", "bundle"): EndpointPolicy(True, 180, "read only; digest checked by the client"),
        ("POST", "workspace"): EndpointPolicy(
            True, 180, "appended once; the equal value answers 200"
        ),
        ("POST", "journal"): EndpointPolicy(True, 180, "same (id, state) and content is a replay"),
        ("GET", "journal"): EndpointPolicy(True, 180, "read only"),
        ("PUT", "artifacts"): EndpointPolicy(
            True, 180, "put-if-absent under the digest of the bytes"
        ),
        ("GET", "artifacts"): EndpointPolicy(True, 180, "read only"),
        ("HEAD", "artifacts"): EndpointPolicy(True, 180, "read only"),
        ("POST", "push-token"): EndpointPolicy(
            True, 180, "each call mints one more, counted before it is minted"
        ),
        ("PUT", "lease"): EndpointPolicy(
            True, 20, "compare-and-set by the holder; only moves the time"
        ),
        ("POST", "result"): EndpointPolicy(
            True, 300, "a verdict is written once and known by its id"
        ),
    }
)


def endpoint_key(method: str, path: str) -> tuple[str, str]:
    """Name the row of a call: method and first path segment after the run UID.

    `path` is relative to the run, such as `artifacts/3f1c…`; query, fragment and slashes at the
    ends are stripped. Never raises: an odd path names a row that isn't there.
    """
    bare = path.partition("#")[0].partition("?")[0].strip("/")
    return method.upper(), bare.partition("/")[0]


def policy_for(method: str, path: str) -> EndpointPolicy:
    """Look a call up; anything unknown, renamed or odd is CONSERVATIVE."""
    return ENDPOINTS.get(endpoint_key(method, path), CONSERVATIVE)
