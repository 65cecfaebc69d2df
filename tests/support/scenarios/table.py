"""Reads `tests/scenarios/table.toml` into values. No network, no git.

The file's own head explains its keys. An unknown key is an error, so a misspelt expectation can't
be skipped silently.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fixtures.faults import Fault

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
MODES = ("Baseline", "Rules", "Scripted")
NOT_REACHED = "not-reached"


@dataclass(frozen=True, slots=True)
class Target:
    """The upgrade that must be selected."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Another package that moves with the target; `before` empty: it enters the lock."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Ineligible:
    """A newer version that must be listed with exactly these reasons (upgrade-run.md §5.1)."""

    name: str
    version: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExpectedRefusal:
    """A refusal of upgrade-run.md §6 that must be among those listed."""

    code: str
    file: str


@dataclass(frozen=True, slots=True)
class Cell:
    """How one row must end in one mode.

    `files` are the paths that the proposal changes, `findings` the keys of a failing baseline or
    the introduced keys of a regression, `violations` the codes of a gate, `denied` the tools whose
    calls the policy denies, in order, `says` regular expressions found in the proposal's body, `asks`
    the kinds of approval that are asked before the publication's, in order, and given.
    """

    mode: str
    outcome: str
    target: Target | None = None
    files: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    findings: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()

    @property
    def publishes(self) -> bool:
        """Whether the approver is asked and a pull request must exist at the end."""
        return self.outcome == "proposal_published"


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario variant. `run` and `policy` are merged into the specs, spelt as in the API.

    `shown_in` is the mode that shows what the row is about, empty where every mode does.
    """

    scenario: str
    variant: str
    ecosystem: str
    content: str
    repository: str
    run: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    decisions: str = NOT_REACHED
    outages: tuple[Fault, ...] = ()
    ineligible: tuple[Ineligible, ...] = ()
    refusals: tuple[ExpectedRefusal, ...] = ()
    shown_in: str = ""
    cells: tuple[Cell, ...] = ()

    @property
    def id(self) -> str:
        """Name for tests, repositories and indexes: letters, digits, dashes."""
        return f"{self.scenario}-{self.variant}" if self.variant else self.scenario

    def cell(self, mode: str) -> Cell:
        """The expectation in a mode."""
        return next(cell for cell in self.cells if cell.mode == mode)

    def is_shown_by(self, cell: Cell) -> bool:
        """Whether the cell shows what the row is about; the others repeat what other rows show."""
        return self.shown_in in {"", cell.mode}

    def decision_lines(self) -> bytes:
        """The list of mode Scripted, exactly the bytes that the policy names by digest."""
        return (FOLDER / "decisions" / f"{self.decisions}.jsonl").read_bytes()

    def decision_list(self) -> tuple[dict[str, Any], ...]:
        """The same list, parsed: `tool` and `arguments` (upgrade-run.md §9.2)."""
        return tuple(json.loads(line) for line in self.decision_lines().splitlines())


def load_table(path: Path = FOLDER / "table.toml") -> tuple[Row, ...]:
    """Read every row, in the table's order; raises ValueError on a bad one."""
    data = tomllib.loads(path.read_text())
    rows = tuple(_row(value) for value in data["row"])
    ids = [row.id for row in rows]
    if len(set(ids)) != len(ids):
        raise ValueError("two rows of one name")
    return rows


def cells(rows: tuple[Row, ...]) -> tuple[tuple[Row, Cell], ...]:
    """Every cell with its row: what tests are generated from, and counted against."""
    return tuple((row, cell) for row in rows for cell in row.cells)


def _row(value: dict[str, Any]) -> Row:
    shared = value.pop("expect", {})
    by_mode = value.pop("cells")
    if set(by_mode) != set(MODES):
        raise ValueError(f"{value['scenario']}: cells for {sorted(by_mode)}, not for {MODES}")
    if value.get("shown_in", MODES[0]) not in MODES:
        raise ValueError(f"{value['scenario']}: {value['shown_in']!r} is no mode")
    try:
        return Row(
            **{
                "variant": "",
                "ecosystem": "Python",
                **value,
                "outages": tuple(Fault(**outage) for outage in value.get("outages", ())),
                "ineligible": tuple(_ineligible(row) for row in value.get("ineligible", ())),
                "refusals": tuple(ExpectedRefusal(**r) for r in value.get("refusals", ())),
                "cells": tuple(_cell(mode, by_mode[mode], shared) for mode in MODES),
            }
        )
    except TypeError as error:
        raise ValueError(f"{value['scenario']}: {error}") from error


def _ineligible(value: dict[str, Any]) -> Ineligible:
    return Ineligible(value["name"], value["version"], tuple(value["reasons"]))


def _cell(mode: str, value: dict[str, Any], shared: dict[str, Any]) -> Cell:
    """A cell; what `expect` says holds wherever a proposal is made, unless the cell says else."""
    proposes = value["outcome"] in {"proposal_prepared", "proposal_published"}
    merged = {**(shared if proposes else {}), **value}
    lists = ("files", "findings", "violations", "denied", "says", "asks")
    return Cell(
        **{
            **merged,
            "mode": mode,
            "target": Target(**merged["target"]) if "target" in merged else None,
            "moved": tuple(Moved(**row) for row in merged.get("moved", ())),
            **{key: tuple(merged.get(key, ())) for key in lists},
        }
    )
