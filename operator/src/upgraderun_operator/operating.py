"""Puts the reconciler together: readers, rules, performers of `perform` and `finalize`.

Callers: `main`, tests of the whole loop. It exists because `reconcile` and `finalize` stand side by
side and don't import each other (DESIGN §5).
"""

from upgraderun_operator.finalize.cleanup import cleanup_table
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.table import Performer, Table, table
from upgraderun_operator.perform.telling import Telling
from upgraderun_operator.reconcile import Ended, Reconciler, Stands


def build_reconciler(world: World, ended: Ended, stands: Stands) -> Reconciler:
    """Make the one reconciler of a process."""
    telling = Telling(world)
    performer = Performer(world, bindings(world, telling))
    return Reconciler(world, performer, telling, ended, stands)


def bindings(world: World, telling: Telling) -> Table:
    """The whole table: one row per member of the closed union of effects."""
    return {**table(world, telling), **cleanup_table(world)}
