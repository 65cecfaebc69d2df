"""From answers of the API server to readings. Pure. Callers: `observe.readers`."""

from collections.abc import Callable
from typing import Any, TypeVar

from upgraderun_operator.answers import Denied, GetAnswer, NotFound, Ok, Unknown
from upgraderun_operator.decide.readings import ABSENT, Reading, Unreadable

T = TypeVar("T")


def reading(answer: GetAnswer, convert: Callable[[Any], T]) -> Reading[T]:
    """Convert what was found; a refusal is as unreadable as no answer: it is no verdict."""
    match answer:
        case Ok(value):
            return convert(value)
        case NotFound():
            return ABSENT
        case Denied(status, message):
            return Unreadable("cluster", f"{status} {message}"[:300])
        case Unknown(cause, retry_after):
            return Unreadable("cluster", cause[:300], retry_after)
