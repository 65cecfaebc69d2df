"""The role `publish`: verify the frozen proposal, then branch, then pull request (upgrade-run.md §12).

Caller: `main`. It works from artifacts and the base alone, opens no git directory of the runner, and
looks before it acts: the first delivery and the fifth are the same code.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, timedelta
from pathlib import Path
from typing import Final, TypeVar

from upgraderun_protocol import slugs
from upgraderun_protocol.bundle import Delivery
from upgraderun_protocol.bundle import Destination as BundleDestination
from upgraderun_protocol.ends import YieldReason
from upgraderun_protocol.entries import Draft, Entry, EntryState
from upgraderun_protocol.ids import EntryId, ProposalDigest, RunUid, Sha256
from upgraderun_protocol.kinds import Writer
from upgraderun_protocol.messages import ErrorCode, PullRequestRef, PushTokenRequest
from upgraderun_protocol.urls import normalise
from upgraderun_runner.client.journal import Journal
from upgraderun_runner.credentials import TokenRefused
from upgraderun_runner.ecosystems.python.profile import PROTECTED
from upgraderun_runner.ecosystems.python.refusals import LOCK, MANIFEST
from upgraderun_runner.errors import RunConflicts, RunEnds, TransportError, Yielded
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.delivery import (
    BranchEnsured,
    Destination,
    EffectName,
    NotPublished,
    OutcomeState,
    PublicationDeclined,
    PublicationDenied,
    PublicationUnknown,
    PullRequestEnsured,
    Remote,
    Subject,
)
from upgraderun_runner.forge.github import GitHub
from upgraderun_runner.forge.http import ForgeHttp, WritePacer
from upgraderun_runner.forge.publication import Publication
from upgraderun_runner.forge.tables import EffectJournal, PublicationConflict
from upgraderun_runner.forge.texts import pull_request_body
from upgraderun_runner.process import Conclusion, Machine, Settings, Speaking, speak
from upgraderun_runner.remote import git_settings, give_back, trusted
from upgraderun_runner.workspace.errors import RemoteFailed
from upgraderun_runner.workspace.git import Credential, Git, prepare_git
from upgraderun_runner.workspace.protected import HOUSE_GLOBS, ProtectedPaths
from upgraderun_runner.workspace.verify import (
    Expectation,
    Invalidated,
    LoadArtifact,
    Verified,
    verify_proposal,
)

T = TypeVar("T")
PAUSE_FIRST_SECONDS: Final = 5
PAUSE_MAX_SECONDS: Final = 300
WARM_SECONDS_MAX: Final = 120
_KINDS: Final[Mapping[EffectName, str]] = {"push": "push", "pr": "pullRequest"}


class DeliveryJournal:
    """`forge`'s view of the journal: `push/<k>` and `pr/<k>`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def state(self, effect: EffectName) -> EffectJournal:
        """DONE once an id is done, else OPEN while one is open, else NOT_OPEN."""
        entries = self._journal.fold.of_kind(_KINDS[effect])
        if any(entry.state is EntryState.DONE for entry in entries):
            return EffectJournal.DONE
        return EffectJournal.NOT_OPEN if self._open(effect) is None else EffectJournal.OPEN

    def pull_request_number(self) -> int | None:
        """Number in the done `pr` entry."""
        entry = self.pull_request
        return None if entry is None else int(entry.data["number"])

    @property
    def pull_request(self) -> Entry | None:
        """The done `pr` entry."""
        return self._journal.fold.last("pullRequest", EntryState.DONE)

    async def intent(self, effect: EffectName, data: Mapping[str, str]) -> None:
        """Open a new id. Where people hold the publication, this publisher parks itself."""
        try:
            await self._append(self._next(effect), effect, EntryState.INTENT, data)
        except TransportError as error:
            if error.code != ErrorCode.PUBLICATION_HELD:
                raise
            raise Yielded(YieldReason.SUSPENDED, f"{effect} is held: {error.text}") from error

    async def outcome(
        self, effect: EffectName, state: OutcomeState, data: Mapping[str, str]
    ) -> None:
        """Close the open id; where none is open, write the outcome under a new id."""
        await self._append(self._closing(effect), effect, EntryState(state), data)

    def defer_done(
        self, effect: EffectName, data: Mapping[str, str], recorded: Callable[[], None]
    ) -> None:
        """Count it as done now, but let the entry travel with the next one; then call `recorded`."""
        draft = Draft(self._closing(effect), _KINDS[effect], EntryState.DONE, data)
        self._journal.defer(draft, recorded=recorded)

    async def flush(self) -> None:
        """Append what was deferred and found no company."""
        await self._journal.flush()

    async def _append(
        self, entry: EntryId, effect: EffectName, state: EntryState, data: Mapping[str, str]
    ) -> None:
        await self._journal.append(Draft(entry, _KINDS[effect], state, data))

    def _closing(self, effect: EffectName) -> EntryId:
        open_id = self._open(effect)
        return self._next(effect) if open_id is None else open_id

    def _open(self, effect: EffectName) -> EntryId | None:
        kind = _KINDS[effect]
        found = [e.id for e in self._journal.fold.open_intents() if e.kind == kind]
        return found[-1] if found else None

    def _next(self, effect: EffectName) -> EntryId:
        taken = {entry.id for entry in self._journal.fold.of_kind(_KINDS[effect])}
        return EntryId(f"{effect}/{len(taken) + 1}")


async def publish_role(settings: Settings, machine: Machine, ca_bundle: Path | None) -> int:
    """Publish exactly one proposal; returns the exit code."""
    return await speak(
        settings, machine, Writer.PUBLISHER, lambda speaking: _work(speaking, ca_bundle)
    )


async def _work(speaking: Speaking, ca_bundle: Path | None) -> Conclusion:
    try:
        return await _published(speaking, ca_bundle)
    finally:
        await give_back(speaking, ca_bundle)


async def _published(speaking: Speaking, ca_bundle: Path | None) -> Conclusion:
    settings = git_settings(speaking, ca_bundle)
    prepare_git(settings)
    journal = DeliveryJournal(speaking.journal)
    verified, git = await _until_known(
        speaking,
        lambda attempt: _verify(speaking, journal, Git(settings, _directory(speaking, attempt))),
    )
    record = verified.record
    policy = speaking.bundle.policy
    if policy.on_base_moved == "Invalidate" and verified.branch_head != record.base_commit:
        raise RunEnds(
            "proposal_invalidated",
            f"the base branch moved from {record.base_commit} to {verified.branch_head} and the "
            "policy invalidates then",
        )
    counter = _Counter(speaking, ca_bundle, git, verified, journal)
    try:
        await _ensured(speaking, counter, lambda to: to.ensure_branch(), BranchEnsured)
        opened = await _ensured(
            speaking, counter, lambda to: to.ensure_pull_request(), PullRequestEnsured
        )
    finally:
        await counter.close()
    entry = journal.pull_request
    assert entry is not None, "an ensured pull request is journaled"
    return Conclusion(
        "proposal_published",
        "; ".join((f"pull request {opened.number}: {opened.url}", *opened.warnings)),
        pull_request=PullRequestRef(opened.number, entry.data["state"], opened.url),
    )


class _Counter:
    """Gives the publication with a credential that holds: a pass may begin after the last ended."""

    def __init__(
        self,
        speaking: Speaking,
        ca_bundle: Path | None,
        git: Git,
        verified: Verified,
        journal: DeliveryJournal,
    ) -> None:
        self._speaking = speaking
        self._tls = trusted(ca_bundle)
        self._git = git
        self._subject = _subject(speaking, verified)
        self._journal = journal
        seams = speaking.machine.seams
        self._pacer = WritePacer(seams.monotonic, seams.sleep)
        self._credential: Credential | None = None
        self._http: ForgeHttp | None = None

    async def publication(self) -> Publication:
        """The publication; its client is made anew when the credential changed."""
        speaking = self._speaking
        found = await _credential(speaking, self._journal)
        if self._http is None or found != self._credential:
            await self.close()
            api_url, secret = _destination(speaking).api_url, found.secret if found else ""
            wire = speaking.machine.seams.wire
            self._http = ForgeHttp(api_url, secret, pacer=self._pacer, tls=self._tls, wire=wire)
            self._credential = found
        remote = Remote(
            GitHub(self._http, _destination(speaking).repository),
            self._git,
            found,
            self._pacer,
            speaking.machine.seams.sleep,
        )
        return Publication(
            _looks(speaking), self._subject, remote, self._journal, speaking.machine.fault
        )

    async def close(self) -> None:
        """Give the connections back."""
        if self._http is not None:
            await self._http.close()
            self._http = None


async def _credential(speaking: Speaking, journal: DeliveryJournal) -> Credential | None:
    """The push credential; where the forge gives none, the open effect is closed as denied."""
    number = int(speaking.journal.tag.removeprefix("d"))
    request = PushTokenRequest(number, _delivery(speaking).proposal_digest)
    try:
        return await speaking.credentials.get(lambda: speaking.client.push_token(request))
    except TokenRefused as refusal:
        if refusal.held:
            raise Yielded(YieldReason.SUSPENDED, str(refusal)) from refusal
        effect: EffectName = "push" if journal.state("push") is EffectJournal.OPEN else "pr"
        text = str(speaking.machine.redactor.redact(str(refusal), limits.ENTRY_TEXT_MAX))
        await journal.outcome(effect, "failed", {"reason": "denied", "message": text})
        raise Yielded(YieldReason.NOT_RESUMABLE, f"no token: {refusal}") from refusal


async def _verify(
    speaking: Speaking, journal: DeliveryJournal, git: Git
) -> tuple[Verified, Git] | None:
    """Rebuild the proposal in a fresh repository; None where the git host can't be read now."""
    delivery, destination = _delivery(speaking), _destination(speaking)
    expectation = Expectation(
        digest=ProposalDigest(delivery.proposal_digest),
        commit=delivery.commit,
        url=speaking.bundle.repository.url,
        branch=destination.base_branch,
        pair=frozenset(_inside(speaking, name) for name in (MANIFEST, LOCK)),
    )
    policy = speaking.bundle.policy
    directory = speaking.bundle.repository.directory
    protected = ProtectedPaths(
        (*HOUSE_GLOBS, *PROTECTED, *expectation.pair),
        add=policy.protected_add,
        release=policy.protected_release,
        directory="" if directory == "." else directory,
    )
    try:
        found = await verify_proposal(
            git,
            expectation,
            _loader(speaking),
            protected,
            await _credential(speaking, journal),
        )
    except RemoteFailed as error:
        speaking.machine.log(f"the git host can't be read: {error}")
        return None
    if isinstance(found, Invalidated):
        raise RunEnds(
            "proposal_invalidated",
            f"{found.code}: expected {found.expected}, observed {found.observed}",
        )
    return found, git


def _loader(speaking: Speaking) -> LoadArtifact:
    """Bytes of an artifact of this run; None if the store says that it is gone."""

    async def load(digest: Sha256) -> bytes | None:
        try:
            return await speaking.journal.fetch(digest)
        except TransportError as error:
            if error.status == 404:
                return None
            raise

    return load


async def _ensured(
    speaking: Speaking,
    counter: _Counter,
    ensure: Callable[[Publication], Awaitable[T | NotPublished]],
    kind: type[T],
) -> T:
    """Repeat a look-and-act until it stands; everything that ends it is raised."""

    async def once(_attempt: int) -> T | None:
        found = await ensure(await counter.publication())
        if isinstance(found, PublicationConflict):
            raise RunConflicts(found.kind, found.expected, found.observed)
        if isinstance(found, PublicationUnknown):
            speaking.machine.log(f"not known yet: {found.reason}")
            if found.after_seconds and found.after_seconds > WARM_SECONDS_MAX:
                raise _limited(speaking, found.reason, found.after_seconds)
            if found.after_seconds:
                await speaking.machine.seams.sleep(found.after_seconds)
            return None
        if isinstance(found, PublicationDenied):
            raise Yielded(YieldReason.NOT_RESUMABLE, f"the forge refuses: {found.text}")
        if isinstance(found, PublicationDeclined):
            raise RunEnds("publication_declined", found.reason)
        assert isinstance(found, kind), "every answer of an ensure_* has its branch"
        return found

    return await _until_known(speaking, once)


def _limited(speaking: Speaking, reason: str, seconds: int) -> Yielded:
    """A long wait needs no pod: the journal says until when, and the next publisher goes on."""
    ends = speaking.machine.seams.now().astimezone(UTC) + timedelta(seconds=seconds)
    until = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Yielded(YieldReason.FORGE_LIMITED, f"the forge limits: {reason}", until)


async def _until_known(speaking: Speaking, once: Callable[[int], Awaitable[T | None]]) -> T:
    """Try again after 5 s doubling to 300 s; an outage of the forge is never a verdict (§13.2)."""
    pause, attempt = PAUSE_FIRST_SECONDS, 1
    while True:
        speaking.check()
        found = await once(attempt)
        if found is not None:
            return found
        await speaking.machine.seams.sleep(pause)
        pause, attempt = min(pause * 2, PAUSE_MAX_SECONDS), attempt + 1


def _directory(speaking: Speaking, attempt: int) -> Path:
    return speaking.machine.private / f"publish-{attempt}.git"


def _inside(speaking: Speaking, name: str) -> str:
    directory = speaking.bundle.repository.directory
    return name if directory == "." else f"{directory}/{name}"


def _delivery(speaking: Speaking) -> Delivery:
    assert speaking.bundle.delivery is not None, "a publisher's bundle names its delivery"
    return speaking.bundle.delivery


def _destination(speaking: Speaking) -> BundleDestination:
    assert speaking.bundle.destination is not None, "a publisher's bundle names its destination"
    return speaking.bundle.destination


def _looks(speaking: Speaking) -> Destination:
    """Where the branch goes and how the pull request looks."""
    destination, wish = _destination(speaking), speaking.bundle.publication
    origin = normalise(speaking.bundle.repository.url).origin
    return Destination(
        url=speaking.bundle.repository.url,
        web_url=f"{origin}/{destination.repository}",
        branch=_delivery(speaking).branch,
        base_branch=destination.base_branch,
        draft=wish.draft,
        labels=wish.labels,
        reviewers=wish.reviewers,
    )


def _subject(speaking: Speaking, verified: Verified) -> Subject:
    record, run_uid = verified.record, RunUid(speaking.bundle.run.uid)
    digest = _delivery(speaking).proposal_digest
    target = record.target
    marker = slugs.marker(run_uid, digest, target.ecosystem, target.name, target.to_version)
    body = pull_request_body(
        record.recipe.body,
        base=record.base_commit,
        base_branch=_destination(speaking).base_branch,
        branch_head=verified.branch_head,
        marker=marker,
    )
    return Subject(verified.commit, record.recipe.title, body, run_uid, digest)
