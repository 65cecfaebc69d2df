"""Writes of the product, counted from the API server's audit log.

Callers: the programs in `hack/bench`. The log has one line per write of anybody; the product's are
those of its own client's name. A TokenReview is created but never stored, so it counts apart, as
do Leases that are only renewed.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

AGENT: Final = "upgraderun-operator"


@dataclass(frozen=True, slots=True)
class Write:
    """One write: verb, resource with subresource, object's name, answer."""

    verb: str
    resource: str
    name: str
    code: int

    @property
    def kind(self) -> str:
        """What it counts as."""
        said = f"{self.verb} {self.resource}"
        return said if self.code < 400 else f"{said} ({self.code})"

    @property
    def is_lease_update(self) -> bool:
        """Whether it may be a renewal: Leases are also taken and released by an update."""
        return self.resource == "leases" and self.verb == "update"

    @property
    def is_review(self) -> bool:
        """Whether it only asks who somebody is."""
        return self.resource == "tokenreviews"


class AuditLog:
    """Reads what came since the last reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size

    def writes(self) -> list[Write]:
        """The product's writes since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return list(_ours(json.loads(line) for line in whole.splitlines()))


def _ours(events: Iterable[dict[str, Any]]) -> Iterator[Write]:
    for event in events:
        if not event.get("userAgent", "").startswith(AGENT):
            continue
        about = event["objectRef"]
        resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        code = event.get("responseStatus", {}).get("code", 0)
        yield Write(event["verb"], resource, about.get("name", ""), code)


def by_kind(writes: Iterable[Write]) -> Counter[str]:
    """Count writes by verb and resource."""
    return Counter(write.kind for write in writes)
