"""What people let through: approved questions of earlier attempts, read from the journal (§11).

Callers: the loop for its policy, `prepare_proposal` for what it warns of.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from upgraderun_protocol.ends import RequestDecision
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.questions import QuestionRecord
from upgraderun_runner.agent.policy import Unexercised
from upgraderun_runner.agent.readiness import Failure
from upgraderun_runner.agent.view import UNEXERCISED
from upgraderun_runner.client.journal import Journal


@dataclass(frozen=True, slots=True)
class ApprovedRisk:
    """What a proposal warns of: ranges that no test runs, and who let them through."""

    ranges: tuple[str, ...]
    approver: str


async def grants_of(journal: Journal) -> Mapping[Sha256, str]:
    """Subjects of questions that people approved, each with the approver's name."""
    found: dict[Sha256, str] = {}
    for entry in journal.fold.of_kind("request"):
        answer, question = journal.fold.done(entry.id), entry.artifacts.get("question")
        if question is None or answer is None:
            continue
        if answer.data["decision"] == RequestDecision.APPROVED:
            record = await journal.fetch_record(QuestionRecord, question)
            found[Sha256(record.subject)] = answer.data.get("by", "")
    return found


async def approved_risk(
    journal: Journal, tree: str, failures: tuple[Failure, ...]
) -> ApprovedRisk | None:
    """Say what people let through of exactly this tree; None if anything else fails too."""
    found = only_unexercised(tree, failures)
    approver = None if found is None else (await grants_of(journal)).get(found.subject)
    return None if found is None or approver is None else ApprovedRisk(found.ranges, approver)


def only_unexercised(tree: str, failures: tuple[Failure, ...]) -> Unexercised | None:
    """The ranges that no test runs, if nothing else keeps the candidate from being ready."""
    if {failure.code for failure in failures} != {UNEXERCISED}:
        return None
    return Unexercised(tree, tuple(failure.detail for failure in failures))
