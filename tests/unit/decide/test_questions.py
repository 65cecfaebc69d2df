"""A runner's question in the middle of its work: shown, asked, answered, gone on with (§9.3, §11)."""

from dataclasses import replace
from typing import Any

import pytest

from support.scenes import (
    ARTIFACT,
    DIGEST,
    FREE,
    NONCE,
    OURS,
    REPORT,
    Scene,
    a_pod,
    a_record,
    an_approval,
    at,
    ended,
    outcome_of,
    report,
)
from upgraderun_operator.build.requests import clean_question
from upgraderun_operator.decide.approval import counted
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import (
    Append,
    DeletePod,
    TakeRepositoryLease,
    WriteReport,
)
from upgraderun_operator.decide.readings import ABSENT
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import ApprovalView, Malformed
from upgraderun_operator.journal.projection import project
from upgraderun_operator.journal.state import Lifecycle
from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import EntryState, entry_from_draft
from upgraderun_protocol.ids import Epoch, Sha256
from upgraderun_protocol.limits import ENTRY_BYTES_MAX
from upgraderun_protocol.questions import QUESTION_VERSION, QuestionKind, QuestionRecord
from upgraderun_protocol.records import RecordError, from_bytes, to_bytes
from upgraderun_protocol.redact import Redactor

QUESTION = Sha256("7" * 64)
SUBJECT = "8" * 64
WIDER = QuestionRecord(
    version=QUESTION_VERSION,
    kind="ScopeExpansion",
    step="s12",
    tool="edit_file",
    subject=SUBJECT,
    files=11,
    lines=22,
    files_max=20,
    lines_max=400,
)
UNTESTED = QuestionRecord(
    version=QUESTION_VERSION,
    kind="UnexercisedRepair",
    step="s6",
    tool="prepare_proposal",
    subject=SUBJECT,
    files=1,
    lines=4,
    tree="b" * 40,
    ranges=("src/a.py:3-4: no test runs it",),
)
ASKED = {"record": a_record("awaiting_approval"), "question": WIDER}


def parked(**spec: Any) -> Scene:
    """A runner that asks, with an upgrade in its work tree."""
    scene = Scene(**spec).working()
    scene.entry("candidates/1", "candidates", EntryState.INTENT, {"planTime": at()})
    listed = {"total": "1", "eligible": "1", "name": "lib", "from": "1.0", "to": "1.1"}
    scene.entry("candidates/1", "candidates", data=listed, artifacts={"list": ARTIFACT})
    data = {"cause": "yield", "reason": "awaiting_approval", "podUID": "pod-a1"}
    artifacts = {"question": QUESTION, "report": REPORT}
    return scene.entry("a1/end", "end", data=data, artifacts=artifacts)


def asked(kind: str = "ScopeExpansion", expires: float = 3600, **spec: Any) -> Scene:
    """The same with its request open."""
    data = {"ask": kind, "digest": DIGEST, "nonce": NONCE, "expiresAt": at(expires)}
    data |= {"files": "11", "lines": "22"}
    artifacts = {"presentation": ARTIFACT, "question": QUESTION}
    return parked(**spec).entry("req/1", "request", EntryState.INTENT, data, artifacts)


def let_on(scene: Scene) -> Scene:
    """Approved, and the next attempt works."""
    data = {"decision": "approved", "by": "anna", "approval": "yes", "at": at(-60)}
    return scene.entry("req/1", "request", data=data).working("a2")


def answered(scene: Scene, *approvals: ApprovalView, **parts: Any) -> Decision:
    return decide(scene.seen(**{"policy": scene.policy, "approvals": approvals, **parts}))


def wider(**fields: Any) -> ApprovalView:
    return an_approval(**{"kind": "ScopeExpansion", **fields})


class TestAsking:
    """The report first, then the request that binds exactly what the runner asks."""

    def test_reads_what_the_runner_left(self) -> None:
        scene = parked()
        assert Look(Need.RECORD) == decide(scene.seen()).what
        assert Look(Need.QUESTION) == decide(scene.seen(record=a_record())).what

    @pytest.mark.parametrize(
        ("part", "words"),
        [
            ({"question": ABSENT}, "gone from the store"),
            ({"question": Malformed("$.kind: odd")}, "$.kind"),
            ({"record": Malformed("$.x: odd")}, "$.x"),
        ],
    )
    def test_what_cant_be_shown_ends_the_run(self, part: Any, words: str) -> None:
        found = outcome_of(parked(), "InternalError", **{**ASKED, **part})
        assert "failed" == found["outcome"]["outcome"]
        assert words in found["outcome"]["message"]

    @pytest.mark.parametrize("question", [WIDER, UNTESTED])
    def test_binds_what_is_shown(self, question: QuestionRecord) -> None:
        scene = parked()
        parts = {**ASKED, "question": question}
        shown = decide(scene.seen(**parts, report=ABSENT)).what
        assert isinstance(shown, WriteReport)
        assert "AwaitingApproval" == shown.content.outcome
        capability = shown.content.capability
        assert capability is not None
        assert question.kind == capability.type.value
        assert capability.commit is None

        seen_report = report("AwaitingApproval", shown.content.presentation_sha256)
        request = decide(scene.seen(**parts, report=seen_report)).what

        assert isinstance(request, Append)
        (intent,) = request.change.drafts
        assert question.kind == intent.data["ask"]
        assert (str(question.files), str(question.lines)) == (
            intent.data["files"],
            intent.data["lines"],
        )
        assert QUESTION == intent.artifacts["question"]
        assert intent.artifacts["presentation"] == sha256_of(request.blobs[0])
        assert question.kind in request.events[0].message

    def test_other_ranges_are_another_digest(self) -> None:
        digests = set()
        for subject in (SUBJECT, "9" * 64):
            parts = {**ASKED, "question": replace(UNTESTED, subject=subject)}
            shown = decide(parked().seen(**parts, report=ABSENT)).what
            assert isinstance(shown, WriteReport)
            seen_report = report("AwaitingApproval", shown.content.presentation_sha256)
            request = decide(parked().seen(**parts, report=seen_report)).what
            assert isinstance(request, Append)
            digests.add(request.change.drafts[0].data["digest"])
        assert 2 == len(digests)


class TestAnswers:
    """As before a push: one reject ends the run, only the asked kind and digest count."""

    def test_nobody_answered(self) -> None:
        decision = answered(asked(), old_pods=(), lease=ABSENT, repository=FREE)
        assert ("AwaitingApproval", True) == (decision.reason, isinstance(decision.what, Pause))

    def test_another_kind_doesnt_count(self) -> None:
        decision = answered(asked(), an_approval())
        assert "the run asks for kind ScopeExpansion" in decision.message

    def test_a_reject_ends_the_run(self) -> None:
        scene = asked()
        found = outcome_of(scene, "ApprovalRejected", approvals=(wider(approves=False),))
        assert "rejected" == found["req/1"]["decision"]
        assert "approval_rejected" == found["outcome"]["outcome"]

    def test_too_late_ends_the_run(self) -> None:
        found = outcome_of(asked(expires=-1), "ApprovalExpired")
        assert "approval_expired" == found["outcome"]["outcome"]

    def test_the_old_pod_goes_first(self) -> None:
        old = a_pod("a1", **ended(5))
        decision = answered(asked(), wider(), old_pods=(old,), repository=OURS)
        assert isinstance(decision.what, DeletePod)

    def test_the_repository_is_taken_again(self) -> None:
        decision = answered(asked(), wider(), old_pods=(), repository=FREE)
        assert isinstance(decision.what, TakeRepositoryLease)

    def test_an_approval_starts_the_next_attempt(self) -> None:
        decision = answered(asked(), wider(), old_pods=(), repository=OURS)
        assert isinstance(decision.what, Append)
        answer, attempt = decision.what.change.drafts
        assert ("approved", "anna") == (answer.data["decision"], answer.data["by"])
        assert ("a2", EntryState.INTENT) == (attempt.id, attempt.state)
        assert "a2" == from_bytes(Bundle, decision.what.blobs[0]).writer
        assert ("grant", True) == (decision.what.name, decision.what.same_wish)

    def test_what_answered_it_is_history_afterwards(self) -> None:
        scene = let_on(asked()).proposal().end("a2", outcome="proposal_prepared")
        data = {"ask": "Publication", "digest": "5" * 64, "nonce": NONCE, "expiresAt": at(3600)}
        scene.entry("req/2", "request", EntryState.INTENT, data, {"presentation": ARTIFACT})
        later = counted(scene.seen(policy=scene.policy, approvals=(wider(),)))
        assert () == later.ignored + later.approves + later.rejects
        assert scene.view.state.grant is None


def test_the_largest_request_fits_into_an_entry() -> None:
    scene = parked()
    for number in range(1, 10):
        data = {"ask": "Publication", "digest": DIGEST, "nonce": NONCE, "expiresAt": at()}
        scene.entry(f"req/{number}", "request", EntryState.INTENT, data, {"presentation": ARTIFACT})
        scene.entry(f"req/{number}", "request", data={"decision": "void"})
    parts = {**ASKED, "question": replace(UNTESTED, files=9_999, lines=9_999)}
    shown = decide(scene.seen(**parts, report=ABSENT)).what
    assert isinstance(shown, WriteReport)
    seen_report = report("AwaitingApproval", shown.content.presentation_sha256)
    request = decide(scene.seen(**parts, report=seen_report)).what
    assert isinstance(request, Append)
    (intent,) = request.change.drafts
    assert {"ask", "digest", "nonce", "expiresAt", "files", "lines"} == set(intent.data)
    entry = entry_from_draft(intent, seq=99_999, at=at(), attempt="a10", epoch=Epoch(1000))
    assert entry.size <= ENTRY_BYTES_MAX


class TestShown:
    """What people see of it, and what they don't see: an approved publication."""

    def test_before_the_request(self) -> None:
        status = project(parked().view, at())
        summary = status["conditions"][0]
        assert ("AwaitingApproval", 5) == (status["phase"], status["exitCode"])
        assert "the runner asks" in summary["message"]

    @pytest.mark.parametrize(
        ("kind", "words"),
        [
            ("ScopeExpansion", "Let the repair grow to 11 files, 22 lines: upgrade lib"),
            ("UnexercisedRepair", "Take a repair that no test runs in part: upgrade lib"),
        ],
    )
    def test_the_headline_says_what_is_asked(self, kind: str, words: str) -> None:
        pending = project(asked(kind).view, at())["pendingApproval"]
        assert (kind, 11, 22) == (pending["kind"], pending["files"], pending["lines"])
        assert pending["headline"].startswith(words)

    def test_the_answer_approves_no_publication(self) -> None:
        view = let_on(asked()).view
        status = project(view, at())
        approved = next(c for c in status["conditions"] if c["type"] == "Approved")
        assert ("Unknown", "NotYet") == (approved["status"], approved["reason"])
        assert Lifecycle.RUNNING is view.state.lifecycle(suspended=False)
        assert (None, None) == (view.state.question, view.state.publication_request)

    def test_a_runner_that_parks_without_a_question_resumes(self) -> None:
        scene = Scene().working().end(cause="yield", reason="awaiting_approval")
        assert scene.view.state.question is None
        assert Look(Need.OLD_PODS) == decide(scene.seen()).what

    def test_nothing_is_asked_once_a_proposal_is_frozen(self) -> None:
        assert parked().proposal().view.state.question is None


class TestQuestion:
    """A runner's question is taken like a request body."""

    @pytest.mark.parametrize("question", [WIDER, UNTESTED])
    def test_is_read(self, question: QuestionRecord) -> None:
        assert question == clean_question(to_bytes(question), Redactor())

    def test_loses_secrets(self) -> None:
        redactor = Redactor()
        redactor.register("canary-secret")
        told = replace(UNTESTED, ranges=("src/a.py:1-2: canary-secret",))
        assert "canary" not in str(clean_question(to_bytes(told), redactor))

    @pytest.mark.parametrize(
        "fields",
        [
            {"version": 2},
            {"kind": "Publication"},
            {"subject": "SHA"},
            {"files": -1},
            {"lines": 10_000},
            {"tree": "b" * 40},
            {"kind": QuestionKind.UNEXERCISED_REPAIR.value},
            {"kind": QuestionKind.UNEXERCISED_REPAIR.value, "tree": "B" * 40},
        ],
    )
    def test_refuses_what_no_runner_asks(self, fields: Any) -> None:
        with pytest.raises(RecordError):
            clean_question(to_bytes(replace(WIDER, **fields)), Redactor())
