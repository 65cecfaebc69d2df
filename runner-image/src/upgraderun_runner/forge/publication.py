"""Publication: `ensure_branch`, then `ensure_pull_request`, one path each (upgrade-run.md §12).

Observe → decide (`forge.tables`) → perform one effect → record, until a result stands. The first
attempt, a retry and a recovery are the same call. Caller: the publisher role, which hands in the
journal: an intent is appended before its effect, an outcome after it.
"""

from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_runner.forge import branch, pull_request
from upgraderun_runner.forge.delivery import (
    BranchEnsured,
    Delivery,
    Destination,
    NotPublished,
    PublicationJournal,
    PullRequestEnsured,
    Remote,
    Subject,
)


class Publication:
    """One delivery's view of the remote. Holds no state between calls but the journal's."""

    def __init__(
        self,
        destination: Destination,
        subject: Subject,
        remote: Remote,
        journal: PublicationJournal,
        fault: FaultPoint = no_fault,
    ) -> None:
        self._delivery = Delivery(destination, subject, remote, journal, fault)

    async def ensure_branch(self) -> BranchEnsured | NotPublished:
        """Our branch at our commit, created only. Conflicts are journaled before they return.

        That it stands may be journaled only by `ensure_pull_request`, which is called at once.
        """
        return await branch.ensure_branch(self._delivery)

    async def ensure_pull_request(self) -> PullRequestEnsured | NotPublished:
        """One pull request of ours with labels and reviewers. Call after `ensure_branch`.

        Whatever it answers, everything known by then is journaled: a wait may be long.
        """
        found = await pull_request.ensure_pull_request(self._delivery)
        await self._delivery.journal.flush()
        return found
