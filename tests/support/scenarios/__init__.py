"""The scenario table of upgrade-run.md §15 and the worlds it is run in.

`load_table()` reads `tests/scenarios/table.toml`, from which tests are generated; `build_world()`
makes one row's repository, packages and tokens on running fixture servers.
"""

from support.scenarios.repository import RepositoryPlan, load_repository
from support.scenarios.table import (
    Cell,
    ExpectedRefusal,
    Ineligible,
    Row,
    Target,
    cells,
    load_table,
)
from support.scenarios.world import BuiltScenario, Seen, build_world, run_hidden_check

__all__ = [
    "BuiltScenario",
    "Cell",
    "ExpectedRefusal",
    "Ineligible",
    "RepositoryPlan",
    "Row",
    "Seen",
    "Target",
    "build_world",
    "cells",
    "load_repository",
    "load_table",
    "run_hidden_check",
]
