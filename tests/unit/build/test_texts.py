"""Drafts that fit, Events, reports that are checked and bounded, frozen admissions, bundles."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.scenes import NOW, UID, Scene, a_policy, a_record
from upgraderun_operator.build.bundles import config_hash
from upgraderun_operator.build.drafts import fitted
from upgraderun_operator.build.events import EventText, event_manifest, event_name
from upgraderun_operator.build.frozen import FrozenAdmission, frozen_bytes, read_frozen
from upgraderun_operator.build.reports import clean_record, empty_record, report_manifest
from upgraderun_operator.model.report import content_of
from upgraderun_protocol.bundle import EarlierProposals
from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.entries import EntryError, EntryState, entry_from_draft
from upgraderun_protocol.ids import Epoch, Sha256
from upgraderun_protocol.limits import REPORT_BYTES_MAX
from upgraderun_protocol.records import RecordError, to_bytes, to_json
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportCheck

DONE = EntryState.DONE


def entry_size(draft: Any) -> int:
    return entry_from_draft(
        draft, seq=99_999, at="2026-01-01T00:00:00Z", attempt="a10", epoch=Epoch(1000)
    ).size


class TestDrafts:
    """An entry is at most 512 bytes, whatever people wrote."""

    @given(
        st.text(max_size=400), st.text(max_size=400), st.text(max_size=300), st.text(max_size=300)
    )
    def test_fit(self, message: str, observed: str, by: str, repository: str) -> None:
        data: dict[str, str | None] = {
            "outcome": "cluster_conflict",
            "message": message.replace("\ud800", ""),
            "observed": observed,
            "by": by,
            "repository": repository,
            "cause": None,
        }
        draft = fitted("outcome", "outcome", DONE, data, {"verdict": Sha256("1" * 64)})
        assert entry_size(draft) <= 512
        assert draft.data["outcome"] == "cluster_conflict"
        assert "cause" not in draft.data

    def test_lose_free_text_before_names(self) -> None:
        draft = fitted("admit", "admit", DONE, {"message": "x" * 500, "branch": "b" * 200})
        assert draft.data["branch"] == "b" * 200

    @pytest.mark.parametrize("length", [257, 500])
    def test_lose_a_name_rather_than_half_of_it(self, length: int) -> None:
        data: dict[str, str | None] = {"repository": "r" * length, "policy": "p"}
        assert dict(fitted("admit", "admit", DONE, data).data) == {"policy": "p"}

    def test_lose_names_one_by_one(self) -> None:
        data: dict[str, str | None] = {
            "repository": "r" * 200,
            "branch": "b" * 100,
            "configHash": "c" * 64,
        }
        kept = fitted("admit", "admit", DONE, data, {"policy": Sha256("1" * 64)}).data
        assert set(kept) == {"branch", "configHash"}

    def test_cut_whole_characters(self) -> None:
        text = "é" * 200 + '"\\\n\t' + "\x01" * 30
        draft = fitted("outcome", "outcome", DONE, {"message": text})
        assert text.startswith(draft.data["message"])
        assert entry_size(draft) <= 512

    def test_refuse_identities_that_are_too_long(self) -> None:
        with pytest.raises(EntryError):
            fitted("outcome", "outcome", DONE, {"outcome": "x" * 300})


class TestEvents:
    """Names are computed: the same transition never makes two."""

    def test_are_named_by_run_reason_and_key(self) -> None:
        run = Scene().view.ref
        event = EventText("Approved", "m", "req/1")
        assert event_name(run, event) == event_name(run, replace(event, message="other"))
        assert event_name(run, event) != event_name(run, replace(event, key="req/2"))
        assert event_name(run, event).startswith("run.")

    @pytest.mark.parametrize(("warning", "kind"), [(True, "Warning"), (False, "Normal")])
    def test_are_redacted(self, warning: bool, kind: str) -> None:
        redactor = Redactor()
        redactor.register("canary-canary")
        event = EventText("X", "token canary-canary" + "y" * 2000, "k", warning)
        at = NOW.isoformat()
        manifest = event_manifest(Scene().view.ref, event, at=at, reporter="op", redactor=redactor)
        assert "canary" not in str(manifest)
        assert len(manifest["note"]) <= 1024
        assert manifest["type"] == kind
        assert manifest["regarding"]["uid"] == UID


class TestReports:
    """A record is taken like a request body."""

    def test_of_the_usual_size_stays_as_it_is(self) -> None:
        record = a_record(checks=(ReportCheck("test", "fail", ("test:a:b",), "tail"),))
        assert clean_record(to_bytes(record), Redactor()) == record

    def test_without_target_is_fine(self) -> None:
        record = a_record(target=None, notes=("n",))
        assert clean_record(to_bytes(record), Redactor()) == record

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"version": 2}, "version"),
            ({"outcome": "great"}, "outcome"),
            ({"checks": (ReportCheck("t", "fine", (), ""),)}, "state"),
            ({"counts": {"x": -1}}, "counts"),
            ({"counts": {"k" * 65: 1}}, "counts"),
            ({"counts": {"\u00e9": 1}}, "counts"),
            ({"counts": {str(n): n for n in range(65)}}, "counts"),
        ],
    )
    def test_of_another_form_is_refused(self, fields: Any, words: str) -> None:
        with pytest.raises(RecordError, match=words):
            clean_record(to_bytes(replace(a_record(), **fields)), Redactor())

    def test_that_is_no_json_is_refused(self) -> None:
        with pytest.raises(RecordError):
            clean_record(b"{", Redactor())

    def test_is_redacted_in_every_text(self) -> None:
        redactor = Redactor()
        redactor.register("canary-canary")
        secret = "canary-canary"
        check = ReportCheck(secret, "pass", (secret,), secret)
        record = a_record(message=secret, patch=secret, checks=(check,), notes=(secret,))
        assert "canary" not in str(to_json(clean_record(to_bytes(record), redactor)))

    @pytest.mark.parametrize("character", ["x", "\u00e9", "\U0001f600", '"'])
    def test_of_the_largest_size_fits_into_an_object(self, character: str) -> None:
        check = ReportCheck("c" * 64, "fail", (character * 512,) * 50, character * 4096)
        record = a_record(
            message=character * 1024,
            patch=character * 131_072,
            checks=(check,) * 16,
            notes=(character * 512,) * 64,
            counts={f"{n:064}": n for n in range(64)},
        )
        cleaned = clean_record(to_bytes(record), Redactor())
        manifest = report_manifest(Scene().view.ref, content_of(cleaned, None))
        assert len(canonical_json(manifest)) <= REPORT_BYTES_MAX

    @pytest.mark.parametrize(("patch", "cut"), [("x" * 131_072, False), ("\u00e9" * 70_000, True)])
    def test_is_cut_at_the_bound_of_the_patch_in_bytes(self, patch: str, cut: bool) -> None:
        cleaned = clean_record(to_bytes(a_record(patch=patch)), Redactor())
        assert len(cleaned.patch.encode()) <= 131_072
        assert cleaned.patch.endswith("[cut]\n") is cut

    def test_of_a_run_without_record_says_its_end(self) -> None:
        record = empty_record("policy_refused", "m" * 2000)
        assert (record.outcome, len(record.message)) == ("policy_refused", 1024)


class TestFrozen:
    """The frozen admission is read back as it was written."""

    def frozen(self) -> FrozenAdmission:
        return FrozenAdmission(Scene().resolved(), "main", EarlierProposals(("a@1",), ()))

    def test_round_trips(self) -> None:
        frozen = self.frozen()
        assert read_frozen(frozen_bytes(frozen), Scene().seen().run.spec) == frozen

    @pytest.mark.parametrize(
        "data",
        [
            b"[]",
            b'{"version":2}',
            b'{"version":1}',
            b'{"branch":"","earlier":{"declined":[],"proposed":[]},"policy":{},"version":1}',
        ],
    )
    def test_refuses_anything_else(self, data: bytes) -> None:
        with pytest.raises(RecordError):
            read_frozen(data, Scene().seen().run.spec)

    def test_refuses_a_policy_that_never_allowed_the_run(self) -> None:
        frozen = self.frozen()
        other = Scene(repository={"url": "https://git.example/others/lib.git"})
        with pytest.raises(RecordError, match=r"spec\.repositories"):
            read_frozen(frozen_bytes(frozen), other.seen().run.spec)


class TestConfigHash:
    """Evidence is bound to what a check depends on, and to nothing else."""

    def hash(self, **policy: Any) -> str:
        scene = Scene()
        scene.policy = a_policy(**policy)
        return config_hash(scene.seen().run.spec, scene.resolved())

    @pytest.mark.parametrize(
        "policy",
        [
            {"validation": {"checkTimeoutSeconds": 60}},
            {"scope": {"hardFiles": 19}},
            {"registries": {"python": ["https://mirror.example/simple"]}},
            {"selection": {"minimumReleaseAgeSeconds": 0}},
            {"protectedPaths": {"add": ["x"]}},
            {"scripted": {"configMapRef": {"name": "l", "key": "k"}, "sha256": "1" * 64}},
        ],
    )
    def test_changes_with(self, policy: Any) -> None:
        assert self.hash() != self.hash(**policy)

    @pytest.mark.parametrize(
        "policy",
        [
            {"approvals": {"approvers": ["anna"]}},
            {"publication": {"author": {"name": "x", "email": "x@y.z"}}},
        ],
    )
    def test_stays_with(self, policy: Any) -> None:
        assert self.hash() == self.hash(**policy)

    def test_knows_codemods(self) -> None:
        codemod = {"dependency": "lib", "versions": ">=2", "old": "a", "new": "b"}
        assert self.hash() != self.hash(codemods=[codemod])
