"""One process that speaks for a run: claim, Lease, journal, work, verdict (runner-protocol.md §1.8, §6).

Callers: `run` and `publish` hand in their work. It is the one exit: whatever the work raises becomes a
verdict, an entry or an exit code here, and no verdict is built twice.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.effects import FaultPoint
from upgraderun_protocol.ends import EndCause, YieldReason
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, PodUid, ProposalDigest, RunUid, Sha256, WriterTag
from upgraderun_protocol.kinds import Writer
from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX, VERDICT_MESSAGE_MAX
from upgraderun_protocol.messages import ErrorCode, HelloResponse, PullRequestRef, Verdict
from upgraderun_protocol.outcomes import INTERNAL_ERROR_EXIT, OUTCOMES, ConflictKind
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.client.heartbeat import RunLease
from upgraderun_runner.client.journal import Journal, Speaker
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.client.transport import Seams, Target, Transport
from upgraderun_runner.client.verdict import VerdictDesk
from upgraderun_runner.credentials import Credentials
from upgraderun_runner.errors import (
    Asks,
    Fenced,
    GaveUp,
    RunConflicts,
    RunEnds,
    Stop,
    Terminal,
    TransportError,
    Yielded,
)
from upgraderun_runner.text import brief
from upgraderun_runner.workspace.gitenv import origin_of

VERDICT_VERSION: Final = 1
QUESTION_MESSAGE_MAX: Final = 120
"""Bytes of what is asked: the entry names two artifacts beside it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, read. `workspace` is None for a publisher."""

    operator_url: str
    namespace: str
    run: str
    run_uid: RunUid
    token_file: Path
    ca_file: Path | None
    termination_log: Path
    workspace: Path | None = None
    credential_file: Path | None = None
    trust_bundle: Path | None = None
    pod_uid: str = ""

    @property
    def base_url(self) -> str:
        """Where this run's endpoints are."""
        root = self.operator_url.rstrip("/")
        return f"{root}/runner/{self.namespace}/{self.run}/{self.run_uid}"


@dataclass(frozen=True, slots=True)
class Machine:
    """What `main` makes once per process. `log` takes one line; it redacts."""

    seams: Seams
    fault: FaultPoint
    redactor: Redactor
    log: Callable[[str], None]
    private: Path


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How the work ended, before it becomes a verdict."""

    outcome: str
    message: str
    report: Sha256 | None = None
    proposal: ProposalDigest | None = None
    pull_request: PullRequestRef | None = None
    conflict: RunConflicts | None = None


@dataclass(frozen=True, slots=True)
class Speaking:
    """What the work gets: it speaks for the run now."""

    settings: Settings
    machine: Machine
    client: OperatorClient
    lease: RunLease
    journal: Journal
    bundle: Bundle
    credentials: Credentials

    def check(self) -> None:
        """Raise if the next step must not start: people want a pause or the end."""
        if self.lease.cancel_wanted:
            raise Terminal("the run is cancelled")
        if self.lease.suspend_wanted:
            raise Yielded(YieldReason.SUSPENDED, "the run is suspended; clear spec.suspend")


Work = Callable[[Speaking], Awaitable[Conclusion]]


async def speak(settings: Settings, machine: Machine, writer: Writer, work: Work) -> int:
    """Claim the run, do the work under its Lease, tell the end; returns the exit code."""
    transport = Transport(
        Target(settings.base_url, settings.token_file, settings.ca_file),
        machine.seams,
        machine.redactor,
        machine.fault,
    )
    client = OperatorClient(transport, machine.seams)
    spool = settings.workspace / "verdict.json" if settings.workspace else None
    desk = VerdictDesk(client, settings.termination_log, spool, machine.fault)
    try:
        return await _claimed(settings, machine, client, desk, (writer, work))
    except Stop as stop:
        machine.log(f"ends with {stop.exit_code}: {stop}")
        desk.leave_message(machine.redactor.redact(str(stop)))
        return stop.exit_code
    except TransportError as error:
        machine.log(f"the operator refuses: {error}")
        desk.leave_message(machine.redactor.redact(str(error)))
        return INTERNAL_ERROR_EXIT
    finally:
        await transport.aclose()


@dataclass(frozen=True, slots=True)
class _Claim:
    """This process speaks for the run: what it was told, and where its verdict goes."""

    client: OperatorClient
    hello: HelloResponse
    lease: RunLease
    desk: VerdictDesk


async def _claimed(
    settings: Settings,
    machine: Machine,
    client: OperatorClient,
    desk: VerdictDesk,
    role: tuple[Writer, Work],
) -> int:
    nonce = machine.seams.new_id()
    hello = await client.hello(nonce)
    machine.log(f"speaks as {hello.writer} under epoch {hello.epoch}")
    lease = RunLease(client, nonce, machine.seams)
    claim = _Claim(client, hello, lease, desk)
    return await _under_lease(lease, _work(settings, machine, claim, role))


async def _under_lease(lease: RunLease, work: Awaitable[int]) -> int:
    """Work while the Lease is kept; losing it ends the work, whose children are killed with it."""
    working = asyncio.ensure_future(work)
    keeping = asyncio.ensure_future(lease.keep())
    try:
        await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        keeping.result()
        raise AssertionError("a Lease is kept until it is lost")
    finally:
        for task in (working, keeping):
            task.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)


async def _work(
    settings: Settings, machine: Machine, claim: _Claim, role: tuple[Writer, Work]
) -> int:
    writer, work = role
    hello = claim.hello
    earlier = await _post_earlier(claim.desk, machine)
    if earlier is not None:
        return earlier
    bundle = await claim.client.bundle(hello.bundle)
    journal = Journal(
        claim.client,
        speaker=Speaker(writer, WriterTag(hello.writer), hello.epoch),
        now=machine.seams.now,
        permit=claim.lease.permit,
        log=machine.log,
    )
    await journal.load()
    credentials = Credentials(
        hello,
        settings.credential_file,
        origin_of(bundle.repository.url),
        machine.redactor,
        machine.seams.now,
    )
    speaking = Speaking(settings, machine, claim.client, claim.lease, journal, bundle, credentials)
    try:
        conclusion = await _concluded(speaking, work)
    except Yielded as pause:
        await _record_pause(speaking, pause)
        raise
    verdict = _verdict(speaking, conclusion)
    machine.log(f"verdict {verdict.outcome}: {verdict.message}")
    delivered = await claim.desk.deliver(verdict)
    machine.log(delivered.text)
    return delivered.exit_code


async def _post_earlier(desk: VerdictDesk, machine: Machine) -> int | None:
    """Post what a predecessor spooled, first thing (§1.8); None where there is nothing to post."""
    spooled = desk.spooled()
    if spooled is None:
        return None
    machine.log(f"an earlier process left the verdict {spooled.outcome}: posted first")
    delivered = await desk.post(spooled)
    if delivered.code == ErrorCode.VERDICT_STALE.value:
        desk.discard()
        return None
    return delivered.exit_code


async def _concluded(speaking: Speaking, work: Work) -> Conclusion:
    """Turn every end of the work into a conclusion; a bug ends the run `failed`, with an id."""
    try:
        conclusion = await _worked(speaking, work)
        await speaking.journal.flush()
    except (Stop, TransportError):
        raise
    except Exception as error:  # noqa: BLE001 - the one exit of the process
        error_id = speaking.machine.seams.new_id()[:12]
        speaking.machine.log(f"error {error_id}: {_trace(error)}")
        await _record_what_waits(speaking)
        return failed(speaking.journal.tag, error_id, error)
    return conclusion


def failed(tag: str, error_id: str, error: Exception) -> Conclusion:
    """The end of a run by a bug: the id finds the trace in the log of the pod."""
    return Conclusion("failed", f"error {error_id} in {tag} ({type(error).__name__}): {error}")


async def _record_what_waits(speaking: Speaking) -> None:
    """Append what was deferred when a bug came: effects that stand, the decision that led to it."""
    try:
        await speaking.journal.flush()
    except (Fenced, Terminal, GaveUp):
        raise
    except Exception as error:  # noqa: BLE001 - maybe the bug itself; its verdict matters more
        speaking.machine.log(f"not recorded: {error}")


async def _worked(speaking: Speaking, work: Work) -> Conclusion:
    try:
        _raise_recorded_conflict(speaking)
        return await work(speaking)
    except RunEnds as end:
        return Conclusion(end.outcome, end.message, end.report)
    except RunConflicts as conflict:
        return Conclusion(conflict.outcome, str(conflict), conflict=conflict)


def _raise_recorded_conflict(speaking: Speaking) -> None:
    """A contradiction that is journaled stands: nothing is touched again (§13.1)."""
    for entry in speaking.journal.fold:
        if entry.state is EntryState.CONFLICT:
            kind = ConflictKind(entry.data["conflict"])
            raise RunConflicts(kind, entry.data["expected"], entry.data["observed"])


async def _record_pause(speaking: Speaking, pause: Yielded) -> None:
    """Tell the journal that this attempt parks itself (§1.8); a full journal can't be told."""
    if pause.reason == YieldReason.JOURNAL_FULL:
        return
    tag = speaking.journal.tag
    room = QUESTION_MESSAGE_MAX if isinstance(pause, Asks) else OUTCOME_DATA_MESSAGE_MAX
    data = {
        "cause": EndCause.YIELD.value,
        "reason": str(pause.reason),
        "message": brief(speaking.machine.redactor, str(pause), room),
    }
    if pause.until is not None:
        data["until"] = pause.until
    if pause.python is not None:
        data["python"] = pause.python
    artifacts: dict[str, Sha256] = {}
    if isinstance(pause, Asks):
        artifacts = {"question": pause.question, "report": pause.report}
    end = Draft(EntryId(f"{tag}/end"), "end", EntryState.DONE, data, artifacts)
    await speaking.journal.append(end)


def _verdict(speaking: Speaking, conclusion: Conclusion) -> Verdict:
    redactor = speaking.machine.redactor
    conflict = conclusion.conflict
    return Verdict(
        version=VERDICT_VERSION,
        verdict_id=speaking.machine.seams.new_id(),
        run_uid=speaking.settings.run_uid,
        writer=speaking.journal.tag,
        pod_uid=pod_uid(speaking.settings),
        outcome=conclusion.outcome,
        message=brief(redactor, conclusion.message, VERDICT_MESSAGE_MAX),
        exit_code=OUTCOMES[conclusion.outcome].exit_code,
        report=conclusion.report,
        proposal_digest=conclusion.proposal,
        pull_request=conclusion.pull_request,
        conflict=None if conflict is None else conflict.kind.value,
        expected=None if conflict is None else redactor.redact(conflict.expected, 256),
        observed=None if conflict is None else redactor.redact(conflict.observed, 256),
    )


def pod_uid(settings: Settings) -> PodUid:
    """UID of this pod: from the command line, else from the token that is bound to it."""
    if settings.pod_uid:
        return PodUid(settings.pod_uid)
    try:
        payload = settings.token_file.read_text(encoding="ascii").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return PodUid(str(claims["kubernetes.io"]["pod"]["uid"])[:64])
    except (OSError, ValueError, LookupError, TypeError, binascii.Error):
        return PodUid("unknown")


def _trace(error: BaseException) -> str:
    frames: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} at {' < '.join(reversed(frames[-8:]))}"
