"""Lists of runs for the resync: keys of the unfinished ones, kinds of conflicts.

Only `main` makes it. Metadata lists keep 10,000 finished runs out of the operator's memory; the
conflicts come by their own selectable field (DESIGN §6a).
"""

from collections.abc import AsyncIterator, Mapping
from typing import Final

from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.answers import Denied, Ok, Unknown
from upgraderun_operator.journal.conditions import conflict_reason
from upgraderun_operator.keys import Key
from upgraderun_operator.resources import UPGRADE_RUNS
from upgraderun_protocol.outcomes import ConflictKind

_LABELS: Final = {conflict_reason(kind.value): kind.value for kind in ConflictKind}
"""Status spells kinds as the API does (`ForeignPod`), metrics as the journal does."""


class RunListing:
    """Runs of the watched namespaces; an empty tuple of namespaces means all of them."""

    def __init__(self, client: KubeClient, namespaces: tuple[str, ...]) -> None:
        self._client = client
        self._namespaces: tuple[str | None, ...] = namespaces or (None,)

    async def unfinished(self) -> AsyncIterator[tuple[Key, ...]]:
        """Yield keys, a namespace at a time, the youngest first. Raises OSError when unanswered.

        Old runs mostly wait; what was made while nobody led waits for its first act.
        """
        for namespace in self._namespaces:
            answer = await self._client.list(
                UPGRADE_RUNS, namespace, fields="status.finished!=true", metadata_only=True
            )
            match answer:
                case Ok(listing):
                    found = [item["metadata"] for item in listing.items]
                    found.sort(key=lambda metadata: metadata["creationTimestamp"], reverse=True)
                    yield tuple(Key(metadata["namespace"], metadata["name"]) for metadata in found)
                case Denied(_, message) | Unknown(message):
                    raise ConnectionError(message)

    async def conflicts(self) -> Mapping[Key, str]:
        """Runs in conflict with its kind, finished ones included. Raises OSError, as above."""
        found: dict[Key, str] = {}
        for namespace in self._namespaces:
            answer = await self._client.list(
                UPGRADE_RUNS, namespace, fields="status.conflict.kind!="
            )
            match answer:
                case Ok(listing):
                    for run in listing.items:
                        kind = str(run["status"]["conflict"]["kind"])
                        key = Key(run["metadata"]["namespace"], run["metadata"]["name"])
                        found[key] = _LABELS.get(kind, kind)
                case Denied(_, message) | Unknown(message):
                    raise ConnectionError(message)
        return found
