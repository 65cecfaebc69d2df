"""Reads the repository Lease and judges its holder by live reads (DESIGN §7).

A Lease whose holder is gone or finished is free, whatever it says; a holder that can't be read is
unknown. Callers: `observe.readers`, `perform.repository` for the names of annotations.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from upgraderun_operator import limits
from upgraderun_operator.answers import Denied, NotFound, Ok, Unknown
from upgraderun_operator.decide.readings import ABSENT, Reading, Unreadable
from upgraderun_operator.decide.views import Holder, RepositoryLeaseView
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Broken, Gone, Unavailable
from upgraderun_operator.model.names import GROUP
from upgraderun_operator.observe.world import World
from upgraderun_operator.resources import LEASES
from upgraderun_protocol.urls import UrlError, normalise

FROZEN_ANNOTATION: Final = f"{GROUP}/frozen"
"""Targets of frozen, unfinished runs of the repository: `{"<ns>/<name>/<uid>": "name@version"}`."""


async def read_repository(world: World, url: str, holder: str) -> Reading[RepositoryLeaseView]:
    """Read the Lease of a repository as seen by the run that `holder` names."""
    try:
        name = f"repo-{normalise(url).lease_hash}"
    except UrlError:
        return ABSENT
    namespace = world.options().operator_namespace
    match await world.cluster.get(LEASES, namespace, name):
        case NotFound():
            return RepositoryLeaseView(name, Holder.FREE)
        case Denied(status, message):
            return Unreadable("cluster", f"{status} {message}")
        case Unknown(cause, retry_after):
            return Unreadable("cluster", cause, retry_after)
        case Ok(raw):
            return await _judged(world, name, raw, holder)


def frozen_targets(raw: Mapping[str, Any]) -> dict[str, str]:
    """Read the annotation; what isn't of our form counts as nothing."""
    text = (raw["metadata"].get("annotations") or {}).get(FROZEN_ANNOTATION, "{}")
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(run): str(target) for run, target in found.items()}


async def _judged(
    world: World, name: str, raw: Mapping[str, Any], me: str
) -> RepositoryLeaseView | Unreadable:
    targets = frozen_targets(raw)
    frozen: dict[str, str] = {}
    for run, target in list(targets.items())[: limits.FROZEN_TARGETS_MAX]:
        lives = True if run == me else await _lives(world, run)
        if isinstance(lives, Unreadable):
            return lives
        if lives:
            frozen[run] = target
    held_by = str((raw.get("spec") or {}).get("holderIdentity") or "")
    if held_by == me:
        return RepositoryLeaseView(name, Holder.OURS, raw=raw, frozen=frozen)
    lives = await _lives(world, held_by) if held_by else False
    if isinstance(lives, Unreadable):
        return lives
    who = Holder.OTHER if lives else Holder.FREE
    words = held_by.rpartition("/")[0]
    return RepositoryLeaseView(name, who, words, raw=raw, frozen=frozen)


async def _lives(world: World, run: str) -> bool | Unreadable:
    """Whether a run of this UID is there and not ended; an unusable journal may still be active."""
    namespace, _, rest = run.partition("/")
    name, _, uid = rest.partition("/")
    if not namespace or not name or not uid:
        return False
    match await world.runs.read(namespace, name):
        case RunView() as view:
            return view.uid == uid and view.state.finalized_at is None
        case Gone():
            return False
        case Broken():
            return True
        case Unavailable(cause):
            return Unreadable("cluster", cause)
