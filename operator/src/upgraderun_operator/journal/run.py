"""`RunView`: one version of an UpgradeRun with its journal folded. What guards and changes see.

Callers: readers (`adapters.runs`) make it with `view_of`; everything else reads it. It holds the
object as it was decoded, so `spec` and metadata are there for whoever needs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from upgraderun_operator.journal.codec import LoadedJournal, load, segment_names
from upgraderun_operator.journal.facts import Facts, facts_of
from upgraderun_operator.journal.folding import run_state
from upgraderun_operator.journal.state import RunState
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.ids import ResourceVersion, RunUid, Sha256


@dataclass(frozen=True, slots=True)
class RunView:
    """A run at one resourceVersion. `raw` is the whole object; nobody changes it in place."""

    ref: RunRef
    resource_version: ResourceVersion
    raw: Mapping[str, Any] = field(repr=False)
    journal: LoadedJournal = field(repr=False)
    state: RunState = field(repr=False)
    facts: Facts

    @property
    def uid(self) -> RunUid:
        """UID of the run."""
        return self.ref.uid

    @property
    def spec(self) -> Mapping[str, Any]:
        """Spec as stored."""
        return self.raw.get("spec") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        """Status as stored; projections in it are for people (DESIGN §3)."""
        return self.raw.get("status") or {}

    @property
    def generation(self) -> int:
        """Generation of the spec."""
        return int(self.raw["metadata"].get("generation", 0))

    @property
    def is_deleting(self) -> bool:
        """Whether somebody asked to delete it."""
        return "deletionTimestamp" in self.raw["metadata"]

    @property
    def wants_suspend(self) -> bool:
        """The wish `spec.suspend`."""
        return self.spec.get("suspend") is True

    @property
    def wants_cancel(self) -> bool:
        """The wish `spec.cancel`."""
        return self.spec.get("cancel") is True

    @property
    def held_publication(self) -> str | None:
        """Why nothing new may be pushed or opened now (upgrade-run.md §12); None if nothing holds it."""
        if self.wants_cancel or self.wants_suspend:
            return "somebody wants the run to pause or to end"
        if self.state.grant is None or self.state.proposal is None:
            return "no grant stands for a proposal"
        return None

    @property
    def wants_publication(self) -> bool:
        """Whether a frozen proposal goes on to approval; Baseline never publishes."""
        publication = self.spec.get("publication") or {}
        return publication.get("enabled") is True and self.spec.get("mode") != "Baseline"


def ref_of(raw: Mapping[str, Any]) -> RunRef:
    """Identity of a run object."""
    metadata = raw["metadata"]
    return RunRef(metadata["namespace"], metadata["name"], RunUid(metadata["uid"]))


def segments_needed(raw: Mapping[str, Any]) -> tuple[Sha256, ...]:
    """Segments that `view_of` needs for this object, oldest first."""
    return segment_names((raw.get("status") or {}).get("journal"))


def view_of(
    raw: Mapping[str, Any], segments: Mapping[Sha256, bytes], known: RunView | None = None
) -> RunView:
    """Fold a run object. `known`, an earlier view of the same run, saves verifying twice.

    Raises JournalBroken or JournalTooNew (`journal.errors`), KeyError if a segment is missing.
    """
    ref = ref_of(raw)
    earlier = known.journal if known is not None and known.uid == ref.uid else None
    status = raw.get("status") or {}
    journal = load(status.get("journal"), segments, ref.uid, earlier)
    state = known.state if known and journal is earlier else run_state(journal.fold)
    return RunView(
        ref,
        ResourceVersion(raw["metadata"]["resourceVersion"]),
        raw,
        journal,
        state,
        facts_of(status),
    )
