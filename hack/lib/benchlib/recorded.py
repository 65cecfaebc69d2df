"""The commands of a run, as its own records tell them.

Caller: `hack/bench/replay.py`. Each step that runs commands has an intent `sb/<step>` with the planned
list, and, where the step has an evidence artifact, the list of what ran. The second is taken where
there is one. git isn't in the records: a step's commands are those of its sandbox.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from support.kubeapi import Json

PLAN_ID: Final = "sb/"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One command. `duration_ms` is None where only the plan was recorded."""

    step: str
    argv: tuple[str, ...]
    profile: str
    workdir: str
    exit_code: int
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Manifest and lock that the run proposed, and where they lie in the repository."""

    manifest_path: str
    lock_path: str
    manifest: bytes
    lock: bytes


class RunRecords:
    """Entries of one run's journal in order, and the folder of its artifacts."""

    def __init__(self, entries: Iterable[Json], artifacts: Path) -> None:
        self._entries = tuple(entries)
        self._folder = artifacts

    def commands(self) -> tuple[Recorded, ...]:
        """Every command in the order in which the run ran them."""
        executed = self._executed()
        found: list[Recorded] = []
        for entry in self._entries:
            if entry["id"].startswith(PLAN_ID) and entry["state"] == "intent":
                step = entry["data"]["step"]
                plan = self._json(entry["artifacts"]["commands"])["commands"]
                found += [_recorded(step, row) for row in executed.get(step, plan)]
        return tuple(found)

    def promoted(self) -> Pair:
        """The pair that the upgrade's promotion wrote."""
        intent = self._promotion()
        plan = self._json(intent["artifacts"]["plan"])["plan"]
        return Pair(
            plan["manifestPath"],
            plan["lockPath"],
            self._bytes(plan["after"]["manifest"]),
            self._bytes(plan["after"]["lock"]),
        )

    def target(self) -> tuple[str, str]:
        """Name and version that the run upgraded to."""
        data = self._promotion()["data"]
        return data["name"], data["to"]

    def tool(self, step: str) -> str:
        """What a step of the loop did; phases are named by themselves."""
        said = (e.get("data", {}).get("tool") for e in self._entries if e["id"] == step)
        return next((str(tool) for tool in said if tool), step)

    def _promotion(self) -> Json:
        found = (e for e in self._entries if e["kind"] == "promotion" and e["state"] == "intent")
        return next(found)

    def _executed(self) -> Mapping[str, list[Json]]:
        """What ran, by step, from every artifact that has such a list."""
        found: dict[str, list[Json]] = {}
        for digest in {d for e in self._entries for d in e.get("artifacts", {}).values()}:
            record = self._json(digest)
            for row in record.get("commands", ()) if isinstance(record, dict) else ():
                if "commandId" in row:
                    found.setdefault(row["commandId"].rpartition(".")[0], []).append(row)
        return {step: sorted(rows, key=_number) for step, rows in found.items()}

    def _json(self, digest: str) -> Any:
        return json.loads(self._bytes(digest))

    def _bytes(self, digest: str) -> bytes:
        return (self._folder / "sha256" / digest).read_bytes()


def _number(row: Json) -> int:
    return int(row["commandId"].rpartition(".")[2])


def _recorded(step: str, row: Json) -> Recorded:
    return Recorded(
        step,
        tuple(row["argv"]),
        row["profile"],
        row["workdir"],
        row.get("exitCode", 0),
        row.get("durationMs"),
    )
