"""Entries that the runner words: prelude, steps, promotion, proposal (`journal.folding`)."""

from dataclasses import replace
from typing import Final

from upgraderun_operator.journal.building import Building, intended, target_of
from upgraderun_operator.journal.records import (
    Baseline,
    Context,
    Proposal,
    Target,
    Validation,
)
from upgraderun_operator.journal.state import Stage
from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.ids import CommitId, ProposalDigest, TreeId

VALIDATION_TOOL: Final = "run_validation"


def take_profile(known: Building, entry: Entry) -> None:
    """The context stands: the run is resumable."""
    if entry.state is EntryState.DONE:
        known.context = Context(
            at=entry.at,
            config_hash=entry.data["configHash"],
            ecosystem=entry.data["ecosystem"],
            context=entry.artifacts["context"],
            python=entry.data.get("python"),
            image=entry.data.get("image"),
            isolation=entry.data.get("isolation"),
        )


def take_baseline(known: Building, entry: Entry) -> None:
    """The untouched tree passed."""
    if entry.state is EntryState.DONE:
        known.baseline = Baseline(
            entry.at,
            TreeId(entry.data["tree"]),
            entry.data["configHash"],
            entry.artifacts["record"],
            entry.data.get("tests"),
        )


def take_candidates(known: Building, entry: Entry) -> None:
    """The versions are listed, perhaps with the pick."""
    if entry.state is EntryState.DONE:
        known.candidate = target_of(entry.data) or known.candidate


def take_step(known: Building, entry: Entry) -> None:
    """The loop does a step; validations are counted."""
    validates = entry.data.get("tool") == VALIDATION_TOOL
    if entry.state is EntryState.INTENT:
        known.usage = replace(known.usage, steps=known.usage.steps + 1)
        known.stage = Stage.VALIDATING if validates else Stage.UPGRADING
    elif entry.state is EntryState.DONE and validates:
        known.usage = replace(known.usage, validations=known.usage.validations + 1)
        tree = entry.data.get("tree")
        known.validation = Validation(
            entry.at, entry.id, entry.data.get("clean") == "true", TreeId(tree) if tree else None
        )


def take_promotion(known: Building, entry: Entry) -> None:
    """A pair moves into the work tree."""
    if entry.state is EntryState.INTENT:
        data = entry.data
        known.promoting[entry.id] = Target(data["name"], data["from"], data["to"])
    elif entry.state is EntryState.DONE:
        known.promoted = intended(known.promoting, entry.id, entry)


def take_proposal(known: Building, entry: Entry) -> None:
    """The commit is intended, or frozen: the intent says which commit, the record is the digest."""
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.freezing[entry.id] = (CommitId(data["commit"]), TreeId(data["tree"]))
    elif entry.state is EntryState.DONE:
        commit, tree = intended(known.freezing, entry.id, entry)
        known.proposal = Proposal(
            id=entry.id,
            at=entry.at,
            digest=ProposalDigest(entry.artifacts["record"]),
            commit=commit,
            tree=tree,
            target=Target(data["name"], data["from"], data["to"]),
            files=int(data["files"]),
            added=int(data["added"]),
            removed=int(data["removed"]),
            record=entry.artifacts["record"],
            report=entry.artifacts["report"],
            sources=data.get("sources"),
            recovered=data.get("recovered") == "true",
        )
