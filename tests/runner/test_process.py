"""Claim, Lease, verdict and exits of a process that speaks for a run (runner-protocol.md §1.8, §6)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.bookkeeper import Bookkeeper
from support.seams import VirtualTime, seams
from support.smallbundle import UID, small_bundle
from upgraderun_protocol.effects import no_fault
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId
from upgraderun_protocol.kinds import Writer
from upgraderun_protocol.messages import Verdict
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.records import from_bytes, to_bytes
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.errors import RunConflicts, RunEnds, Yielded
from upgraderun_runner.process import (
    Conclusion,
    Machine,
    Settings,
    Speaking,
    Work,
    pod_uid,
    speak,
)


@pytest.fixture
async def keeper() -> AsyncIterator[Bookkeeper]:
    made = await Bookkeeper(small_bundle()).start()
    yield made
    await made.stop()


class Pod:
    """One process in this one: settings, machine, virtual time."""

    def __init__(self, keeper: Bookkeeper, folder: Path) -> None:
        (folder / "token").write_text("a-token-for-tests")
        (folder / "volume").mkdir(exist_ok=True)
        self.time = VirtualTime()
        self.lines: list[str] = []
        self.message = folder / "message"
        self.spool = folder / "volume" / "verdict.json"
        self.settings = Settings(
            operator_url=keeper.url,
            namespace="n",
            run="r",
            run_uid=UID,
            token_file=folder / "token",
            ca_file=None,
            termination_log=self.message,
            workspace=folder / "volume",
            pod_uid="pod-1",
        )
        self.machine = Machine(seams(self.time), no_fault, Redactor(), self.lines.append, folder)

    async def run(self, work: Work) -> int:
        return await speak(self.settings, self.machine, Writer.RUNNER, work)


@pytest.fixture
def pod(keeper: Bookkeeper, tmp_path: Path) -> Pod:
    return Pod(keeper, tmp_path)


async def _proposes(_: Speaking) -> Conclusion:
    return Conclusion("proposal_prepared", "one commit")


async def _waits(speaking: Speaking) -> Conclusion:
    await asyncio.Event().wait()
    raise AssertionError(f"{speaking} never ends by itself")


async def _decides(speaking: Speaking) -> None:
    digest = await speaking.journal.store(b"{}")
    data, artifacts = {"tool": "git_diff"}, {"decision": digest}
    entry = EntryId("s0/decision")
    speaking.journal.defer(Draft(entry, "decision", EntryState.DONE, data, artifacts))


class TestVerdict:
    """§6.1: built once, spooled, shown, posted."""

    async def test_conclusion_becomes_verdict_message_and_exit_code(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        assert 0 == await pod.run(_proposes)

        verdict = keeper.verdicts[0]
        assert ("proposal_prepared", "a1", "pod-1") == (
            verdict.outcome,
            verdict.writer,
            verdict.pod_uid,
        )
        assert verdict == from_bytes(Verdict, pod.message.read_bytes())
        assert pod.spool.read_bytes() == pod.message.read_bytes()

    @pytest.mark.parametrize(
        ("error", "outcome", "code"),
        [
            (RunEnds("unsupported", "no lock"), "unsupported", 2),
            (RunEnds("acquisition_failed", "away"), "acquisition_failed", 6),
            (RunConflicts(ConflictKind.STAGING_LOST, "a", "b"), "workspace_conflict", 4),
            (ValueError("a bug"), "failed", 1),
        ],
    )
    async def test_every_end_is_told(
        self, pod: Pod, keeper: Bookkeeper, error: Exception, outcome: str, code: int
    ) -> None:
        async def work(_: Speaking) -> Conclusion:
            raise error

        assert code == await pod.run(work)
        assert outcome == keeper.verdicts[0].outcome

    async def test_bug_is_told_with_an_id_that_the_log_explains(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        async def work(_: Speaking) -> Conclusion:
            raise KeyError("gone")

        await pod.run(work)

        error_id = keeper.verdicts[0].message.split()[1]
        assert any(error_id in line and "KeyError" in line for line in pod.lines)

    async def test_what_waits_for_company_stands_before_a_bug_is_told(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        async def work(speaking: Speaking) -> Conclusion:
            await _decides(speaking)
            raise KeyError("gone")

        assert 1 == await pod.run(work)
        assert "failed" == keeper.verdicts[0].outcome
        assert "s0/decision done" == keeper.story[-1]

    async def test_bug_is_told_also_where_the_journal_takes_nothing_more(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        async def work(speaking: Speaking) -> Conclusion:
            await _decides(speaking)
            keeper.artifacts.clear()
            raise KeyError("gone")

        assert 1 == await pod.run(work)
        assert "KeyError" in keeper.verdicts[0].message
        assert any("not recorded" in line for line in pod.lines)

    async def test_bug_of_a_fenced_process_is_told_to_nobody(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        async def work(speaking: Speaking) -> Conclusion:
            await _decides(speaking)
            keeper.epoch += 1
            raise KeyError("gone")

        assert 77 == await pod.run(work)
        assert [] == keeper.verdicts

    async def test_conflict_carries_both_sides(self, pod: Pod, keeper: Bookkeeper) -> None:
        async def work(_: Speaking) -> Conclusion:
            raise RunConflicts(ConflictKind.PROPOSAL_REF_MOVED, "ours", "theirs")

        await pod.run(work)

        verdict = keeper.verdicts[0]
        assert ("proposal_ref_moved", "ours", "theirs") == (
            verdict.conflict,
            verdict.expected,
            verdict.observed,
        )

    async def test_spooled_verdict_of_a_predecessor_is_posted_first(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        """RP21: no work is done again, the same verdict stands."""
        await pod.run(_proposes)
        first = keeper.verdicts.copy()

        assert 0 == await pod.run(_waits)
        assert [first[0], first[0]] == keeper.verdicts

    async def test_journaled_conflict_stands_in_the_next_process(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        data = {"conflict": "staging_lost", "expected": "e", "observed": "o"}
        keeper.record(Draft(EntryId("s0/promotion"), "promotion", EntryState.CONFLICT, data), "a1")

        assert 4 == await pod.run(_proposes)
        assert "workspace_conflict" == keeper.verdicts[0].outcome

    async def test_run_that_ended_meanwhile_makes_the_exit_quiet(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        async def work(_: Speaking) -> Conclusion:
            keeper.terminal = True
            return Conclusion("proposal_prepared", "late")

        assert 0 == await pod.run(work)
        assert [] == keeper.verdicts


class TestLease:
    """§1.8: losing the Lease ends the process; an outage doesn't."""

    async def test_fenced_process_exits_77_and_says_nothing(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        async def work(speaking: Speaking) -> Conclusion:
            keeper.epoch += 1
            return await _waits(speaking)

        assert 77 == await pod.run(work)
        assert [] == keeper.verdicts

    async def test_cancelled_run_ends_the_work_at_the_next_renewal(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        killed: list[str] = []

        async def work(speaking: Speaking) -> Conclusion:
            keeper.terminal = True
            try:
                return await _waits(speaking)
            finally:
                killed.append("child")

        assert 4 == await pod.run(work)
        assert (["child"], []) == (killed, keeper.verdicts)

    async def test_suspended_run_yields_with_its_entry(self, pod: Pod, keeper: Bookkeeper) -> None:
        keeper.suspend = True

        async def work(speaking: Speaking) -> Conclusion:
            while True:
                speaking.check()
                await asyncio.sleep(0)

        assert 76 == await pod.run(work)
        end = keeper.fold.done("a1/end")
        assert end is not None
        assert ("yield", "suspended") == (end.data["cause"], end.data["reason"])

    async def test_full_journal_yields_without_an_entry(self, pod: Pod, keeper: Bookkeeper) -> None:
        async def work(_: Speaking) -> Conclusion:
            raise Yielded("journal_full", "no room")

        before = len(keeper.fold)
        assert 76 == await pod.run(work)
        assert before + 1 == len(keeper.fold), "only the incarnation's own entry came"

    async def test_silent_operator_is_given_up_after_half_an_hour(
        self, pod: Pod, keeper: Bookkeeper
    ) -> None:
        await keeper.stop()

        assert 75 == await pod.run(_proposes)
        assert pod.time.elapsed >= 1800


class TestPodUid:
    """The token that a pod gets is bound to it: its claim names the pod."""

    def test_claim_is_read_where_the_command_line_names_none(self, tmp_path: Path) -> None:
        import base64

        claims = json.dumps({"kubernetes.io": {"pod": {"uid": "u-1"}}}).encode()
        payload = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
        token = tmp_path / "token"
        token.write_text(f"e30.{payload}.sig")
        settings = Settings("u", "n", "r", UID, token, None, tmp_path / "m")

        assert "u-1" == pod_uid(settings)

    @pytest.mark.parametrize("text", ["", "a.b", "a.!!!.c", "a.e30.c"])
    def test_unreadable_token_names_nobody(self, tmp_path: Path, text: str) -> None:
        token = tmp_path / "token"
        token.write_text(text)
        assert "unknown" == pod_uid(Settings("u", "n", "r", UID, token, None, tmp_path / "m"))


async def test_verdict_fits_into_a_termination_message(pod: Pod, keeper: Bookkeeper) -> None:
    async def work(_: Speaking) -> Conclusion:
        conflict = RunConflicts(ConflictKind.FOREIGN_BRANCH, "ä" * 900, "ö" * 900)
        return Conclusion("publication_conflict", "ü" * 2000, conflict=conflict)

    await pod.run(work)

    assert len(to_bytes(keeper.verdicts[0])) <= 3400
