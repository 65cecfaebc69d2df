"""The verdict: built once, spooled, shown as termination message, posted (runner-protocol.md §6).

Callers: the end of a process, and the start of the next one, which posts what its predecessor spooled.
After a verdict exists no other may be built: an exhausted success is never followed by `failed`.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.limits import VERDICT_BYTES_MAX
from upgraderun_protocol.messages import ErrorCode, Verdict
from upgraderun_protocol.outcomes import GAVE_UP_EXIT, OUTCOMES
from upgraderun_protocol.records import RecordError, from_bytes, to_bytes
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.errors import TransportError
from upgraderun_runner.performing import Effect


@dataclass(frozen=True, slots=True)
class Delivered:
    """How a verdict fared. `stands`: some verdict of this run is recorded; `exit_code` is ours.

    `code` is the operator's error code where it answered with one.
    """

    stands: bool
    exit_code: int
    text: str
    code: str | None = None


class VerdictDesk:
    """Where this process leaves its verdict. A publisher has no spool."""

    def __init__(
        self,
        client: OperatorClient,
        termination_log: Path,
        spool: Path | None = None,
        fault: FaultPoint = no_fault,
    ) -> None:
        self._client = client
        self._termination_log = termination_log
        self._spool = spool
        self._fault = fault

    def spooled(self) -> Verdict | None:
        """The verdict of an earlier process, or of this one before its post; None if there is none."""
        if self._spool is None or not self._spool.is_file():
            return None
        try:
            return from_bytes(Verdict, self._spool.read_bytes())
        except RecordError:
            return None

    def discard(self) -> None:
        """Forget a spooled verdict that the operator refused as stale."""
        if self._spool is not None:
            self._spool.unlink(missing_ok=True)

    async def deliver(self, verdict: Verdict) -> Delivered:
        """Spool it, write it to the termination log, post it (§6.1)."""
        content = to_bytes(verdict)
        assert len(content) <= VERDICT_BYTES_MAX, f"a verdict of {len(content)} bytes"
        if self._spool is not None and not self._spool.is_file():
            VERDICT_SPOOL(self._fault, self._spool, content)
        self.leave_message(content.decode("utf-8"))
        return await self.post(verdict)

    async def post(self, verdict: Verdict) -> Delivered:
        """Post a verdict that is spooled already, and read the answer (§6.2)."""
        exit_code = OUTCOMES[verdict.outcome].exit_code
        try:
            answer = await self._client.post_result(to_bytes(verdict))
        except TransportError as error:
            if error.is_recorded or error.code == ErrorCode.FINALIZATION_IN_PROGRESS.value:
                return Delivered(True, exit_code, str(error), error.code)
            if error.code == ErrorCode.VERDICT_CONFLICT.value:
                return Delivered(True, exit_code, f"another verdict stands: {error}", error.code)
            return Delivered(False, GAVE_UP_EXIT, str(error), error.code)
        return Delivered(True, exit_code, f"verdict {answer.verdict_id} is recorded")

    def leave_message(self, text: str) -> None:
        """Write the termination message; a missing file is no reason to fail."""
        try:
            self._termination_log.write_text(text, encoding="utf-8")
        except OSError:
            return


def _write_durably(path: Path, content: bytes) -> None:
    """Write a file whole: temporary sibling, fsync, rename, fsync of the directory."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


VERDICT_SPOOL: Final = Effect("verdict_spool", _write_durably)
