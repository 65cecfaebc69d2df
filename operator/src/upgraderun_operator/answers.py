"""What the API server can answer, as values: unknown is an answer, not an exception (style.md §1).

Made by `adapters.kubernetes`; matched by whoever calls it through a protocol of its own.

    Ok        it happened, or this is what stands there
    NotFound  404 by a live read
    Conflict  409 on an update or delete: the version or UID that we named is no longer there
    AlreadyExists  409 on a create
    Denied    401, 403, 400, 422: the server said no; repeating changes nothing
    Unknown   timeout, reset, 429, 5xx: nothing is known of the outcome; never a verdict
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

KubeObject = Mapping[str, Any]
"""One decoded object. Nobody changes it in place."""


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """It happened; `value` is the object, the page or the list."""

    value: T


@dataclass(frozen=True, slots=True)
class NotFound:
    """No such object, by a live read."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else was faster, or the UID is another one. Read again and decide again."""

    message: str


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """The name is taken: read it, adopt it only if it is ours."""

    message: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The server refused for good: `status` is 400, 401, 403, 405 or 422."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, or none that tells anything. `retry_after` in seconds, if the server named it."""

    cause: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list, read in chunks of one consistent version."""

    items: tuple[KubeObject, ...]
    resource_version: str


GetAnswer = Ok[KubeObject] | NotFound | Denied | Unknown
ListAnswer = Ok[Listing] | Denied | Unknown
CreateAnswer = Ok[KubeObject] | AlreadyExists | NotFound | Denied | Unknown
PutAnswer = Ok[KubeObject] | NotFound | Conflict | Denied | Unknown
DeleteAnswer = Ok[None] | NotFound | Conflict | Denied | Unknown


@dataclass(frozen=True, slots=True)
class Stored:
    """An artifact stands in the store. `existed`: it stood there before."""

    sha256: str
    size: int
    existed: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """The store answered, and has no such artifact."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The received bytes have another digest than the name says. Nothing was stored."""

    found: str


@dataclass(frozen=True, slots=True)
class TooLarge:
    """More bytes than one artifact, or all of a run, may have. Nothing was stored."""

    limit: int


@dataclass(frozen=True, slots=True)
class StoreDown:
    """The store didn't answer, or what it holds is damaged. Nothing is known."""

    cause: str


PutArtifactAnswer = Stored | Mismatch | TooLarge | StoreDown
HeadArtifactAnswer = Stored | Absent | StoreDown
GetArtifactAnswer = bytes | Absent | StoreDown
