"""Every effect of runner and publisher in one place: its row, what performs it, what looks for it.

Callers: the tidy test and the kill tests, which are computed from it. The row (intent, record, fault
points) stands in `upgraderun_protocol.effects`. A look answers in the words of its module what stands,
what doesn't, or that it can't be read; recovery decides on it (upgrade-run.md §13).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_protocol.effects import EFFECTS, EffectRow
from upgraderun_runner.agent.history import History
from upgraderun_runner.agent.loop import DECISION
from upgraderun_runner.client.journal import Journal
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.client.transport import WIRE
from upgraderun_runner.client.verdict import VERDICT_SPOOL, VerdictDesk
from upgraderun_runner.forge.branch import see_branch
from upgraderun_runner.forge.github import GitHub
from upgraderun_runner.forge.pull_request import DECORATION, PULL_REQUEST
from upgraderun_runner.forge.push import PUSH_BRANCH
from upgraderun_runner.performing import AsyncEffect, Effect
from upgraderun_runner.phases.prelude import ACQUIRE, CONTEXT
from upgraderun_runner.phases.session import Session
from upgraderun_runner.tools.proposing import PROPOSAL_OBJECTS, PROPOSAL_UPLOAD
from upgraderun_runner.tools.validating import VALIDATION
from upgraderun_runner.tools.writing import FILE_WRITE
from upgraderun_runner.workspace.clone import CLONE
from upgraderun_runner.workspace.files import hash_file
from upgraderun_runner.workspace.git import resolve_ref
from upgraderun_runner.workspace.identity import compare_identity
from upgraderun_runner.workspace.promotion import (
    PROMOTION_FIRST,
    PROMOTION_SECOND,
    STAGING,
    STAGING_DELETE,
    observe_pair,
)
from upgraderun_runner.workspace.proposal import PROPOSAL_COMMIT, PROPOSAL_REF, tree_is_present
from upgraderun_runner.workspace.sweep import sweep


@dataclass(frozen=True, slots=True)
class Binding:
    """One effect. `perform` is the only way to it: an effect's value, or a call over the wire."""

    name: str
    perform: Callable[..., Any]
    look: Callable[..., Any]

    @property
    def row(self) -> EffectRow:
        """Its row in the table of effects."""
        return EFFECTS[self.name]


def _bound(effect: Effect[..., Any] | AsyncEffect[..., Any], look: Callable[..., Any]) -> Binding:
    return Binding(effect.name, effect, look)


def _wired(
    endpoint: tuple[str, str], perform: Callable[..., Any], look: Callable[..., Any]
) -> Binding:
    """A call whose points the transport passes. A lost answer is sent again: the call looks, too."""
    return Binding(WIRE[endpoint], perform, look)


BINDINGS: Final = (
    _wired(("POST", "hello"), OperatorClient.hello, OperatorClient.hello),
    _wired(("POST", "journal"), OperatorClient.append, Journal.load),
    _wired(("PUT", "artifacts"), OperatorClient.put_artifact, OperatorClient.has_artifact),
    _wired(("POST", "workspace"), OperatorClient.fix_base, OperatorClient.fix_base),
    _wired(("POST", "result"), OperatorClient.post_result, VerdictDesk.post),
    _bound(CLONE, compare_identity),
    _bound(CONTEXT, Session.finished),
    _bound(ACQUIRE, Session.finished),
    _bound(VALIDATION, Session.finished),
    _bound(DECISION, History.view),
    _bound(STAGING, sweep),
    _bound(PROMOTION_FIRST, observe_pair),
    _bound(PROMOTION_SECOND, observe_pair),
    _bound(STAGING_DELETE, sweep),
    _bound(FILE_WRITE, hash_file),
    _bound(PROPOSAL_OBJECTS, tree_is_present),
    _bound(PROPOSAL_COMMIT, tree_is_present),
    _bound(PROPOSAL_REF, resolve_ref),
    _bound(PROPOSAL_UPLOAD, OperatorClient.has_artifact),
    _bound(VERDICT_SPOOL, VerdictDesk.spooled),
    _bound(PUSH_BRANCH, see_branch),
    _bound(PULL_REQUEST, GitHub.pull_requests_from),
    _bound(DECORATION, GitHub.decorate),
)
"""The closed union of what the pods do."""
