"""URLs, names, approval digests, redaction: what both sides must spell alike."""

import base64
import pickle
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upgraderun_protocol.approvals import presentation_digest, request_digest
from upgraderun_protocol.canonical import NotCanonicalError
from upgraderun_protocol.ids import RunUid, Sha256
from upgraderun_protocol.messages import MintedToken
from upgraderun_protocol.records import to_bytes
from upgraderun_protocol.redact import MASK, Redactor, SafeText, SecretText
from upgraderun_protocol.slugs import branch_name, child_name, marker, read_marker, slug, uid8
from upgraderun_protocol.urls import (
    RepositoryUrl,
    UrlError,
    belongs_to,
    is_repository_path,
    normalise,
)

UID = RunUid("0f8fad5b-d9cb-469f-a165-70867728950e")


class TestUrls:
    """Two spellings of one repository are one; anything odd is refused (H21, H22)."""

    @pytest.mark.parametrize(
        "text",
        [
            "https://git.example/team/app",
            "https://git.example/team/app.git",
            "https://GIT.example:443/team/app/",
            "HTTPS://git.example/team/app",
        ],
    )
    def test_spellings_of_one_repository(self, text: str) -> None:
        assert str(normalise(text)) == "https://git.example/team/app.git"

    def test_parts(self) -> None:
        url = normalise("http://git.example:3000/Team/App")

        assert url == RepositoryUrl("http", "git.example", 3000, "Team/App")
        assert url.origin == "http://git.example:3000"
        assert url.host_port == "git.example:3000"
        assert url.identity == "git.example:3000/team/app"
        assert len(url.lease_hash) == 40
        assert url.lease_hash == normalise("https://git.example:3000/team/app").lease_hash

    @pytest.mark.parametrize(
        "text",
        [
            "x" * 513,
            "https://git.example/team/äpp",
            "https://git.example/team/a pp",
            "https://git.example\\team/app",
            "git@git.example:team/app",
            "https://git.example:port/team/app",
            "https://[::1/team/app",
            "ssh://git.example/team/app",
            "file:///team/app",
            "https://user@git.example/team/app",
            "https://git.example/team/app?x=1",
            "https://git.example/team/app?",
            "https://git.example/team/app#x",
            "https://git.example/team/a%70p",
            "https://127.0.0.1/team/app",
            "https://[::1]/team/app",
            "https://2130706433/team/app",
            "https://git.example./team/app",
            "https:///team/app",
            "https://git.example/app",
            "https://git.example/../app",
            "https://git.example/team/-app",
            "https://git.example/team/app.",
            "https://git.example//app",
        ],
    )
    def test_odd_ones_are_refused(self, text: str) -> None:
        with pytest.raises(UrlError):
            normalise(text)


class TestForges:
    """What a forge answers, and which host is whose (H22)."""

    @pytest.mark.parametrize("text", ["acme/shop", "A.c-me/shop_2"])
    def test_names_of_repositories(self, text: str) -> None:
        assert is_repository_path(text)

    @pytest.mark.parametrize("text", ["", "shop", "a/b/c", "acme/", "ac me/shop", "acme/<b>"])
    def test_anything_else_isn_t_shown(self, text: str) -> None:
        assert not is_repository_path(text)

    @pytest.mark.parametrize(
        ("api", "url"),
        [
            ("https://api.github.com", "https://github.com/acme/shop"),
            ("https://ghe.example/api/v3", "https://ghe.example/acme/shop"),
            ("https://api.acme.ghe.com", "https://acme.ghe.com/acme/shop"),
        ],
    )
    def test_an_api_belongs_to_its_host(self, api: str, url: str) -> None:
        assert belongs_to(api, normalise(url))

    @pytest.mark.parametrize("api", ["https://api.github.com", "https://[x", "", "ghe.example"])
    def test_and_to_no_other(self, api: str) -> None:
        assert not belongs_to(api, normalise("https://ghe.example/acme/shop"))


class TestNames:
    """Names that other systems must accept."""

    def test_child_names(self) -> None:
        assert child_name("my.app", UID) == "my-app-0f8fad5b"
        assert child_name("a" * 39 + "-b", UID, "a1") == f"{'a' * 39}-0f8fad5b-a1"
        assert len(child_name("a" * 63, UID, "d12")) <= 63

    def test_branches_are_bound_to_the_run(self) -> None:
        assert branch_name(UID, "MarkupSafe", "2.1.5") == "upgraderun/markupsafe-2.1.5-0f8fad5b"

    @given(st.text(max_size=80), st.integers(1, 50))
    @settings(max_examples=100, deadline=None)
    def test_a_slug_is_always_a_ref_component(self, text: str, longest: int) -> None:
        found = slug(text, longest)

        assert 1 <= len(found) <= longest
        assert not found.startswith((".", "-"))
        assert not found.endswith((".", ".lock"))
        assert ".." not in found

    def test_uid8(self) -> None:
        assert uid8(RunUid("01-23-456789")) == "01234567"

    def test_the_marker_is_the_last_line(self) -> None:
        line = marker(UID, "a" * 64, "python", "requests", "2.32.0")

        assert read_marker(f"text\n\n{line}\n") == (UID, "a" * 64, "python:requests@2.32.0")
        assert read_marker(f"{line}\ntext") is None
        assert read_marker("") is None


class TestApprovals:
    """An approval binds exactly what was asked and shown (upgrade-run.md §11)."""

    def digest(self, **changes: object) -> str:
        known: dict[str, object] = {
            "kind": "publication",
            "run_uid": UID,
            "nonce": "n",
            "capability": {"commit": "a"},
            "presentation": Sha256("b" * 64),
            "config_hash": "c",
        }
        return request_digest(**{**known, **changes})  # type: ignore[arg-type]  # a table

    def test_every_part_changes_the_digest(self) -> None:
        changes: list[dict[str, object]] = [
            {"kind": "scope_expansion"},
            {"run_uid": "other"},
            {"nonce": "m"},
            {"capability": {}},
            {"presentation": "d" * 64},
            {"config_hash": "d"},
        ]
        digests = {self.digest(), *(self.digest(**change) for change in changes)}

        assert len(digests) == len(changes) + 1

    def test_presentation_is_what_the_report_shows(self) -> None:
        shown = {"target": {"name": "x"}, "patch": "p"}

        assert presentation_digest(shown) == presentation_digest({**shown, "outcome": "Published"})
        assert presentation_digest(shown) == presentation_digest({**shown, "checks": None})
        assert presentation_digest(shown) != presentation_digest({**shown, "patch": "q"})

    def test_an_encoding_failure_raises(self) -> None:
        with pytest.raises(NotCanonicalError):
            presentation_digest({"patch": 1.5})


class TestRedaction:
    """Redact first, cut second; every spelling of a secret goes (security.md §5)."""

    secret = "s3cr3t/value+with=odd chars"

    def redactor(self) -> Redactor:
        redactor = Redactor()
        redactor.register(self.secret)
        redactor.register(self.secret)
        redactor.register("short")
        return redactor

    @pytest.mark.parametrize("shift", [0, 1, 2])
    def test_base64_at_every_alignment(self, shift: int) -> None:
        encoded = base64.b64encode(b"x" * shift + self.secret.encode() + b"tail").decode()

        assert MASK in self.redactor().redact(encoded)

    @pytest.mark.parametrize("spell", [str, lambda text: quote(text, safe="")])
    def test_plain_and_quoted(self, spell: object) -> None:
        text = spell(self.secret)  # type: ignore[operator]  # a function

        assert text not in self.redactor().redact(f"a {text} b")

    def test_line_breaks_inside_don_t_help(self) -> None:
        broken = self.secret[:5] + "\\n" + self.secret[5:9] + "\r\n" + self.secret[9:]

        assert MASK in self.redactor().redact(broken)

    @given(
        st.text(st.sampled_from("naB3/+="), min_size=8, max_size=30),
        st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["\n", "\r\n", "\\n"]))),
    )
    @settings(max_examples=300, deadline=None)
    def test_line_breaks_anywhere(self, secret: str, breaks: list[tuple[int, str]]) -> None:
        """Also an escaped break that another was put into.

        The secret begins with another letter than such a break ends with: one that doesn't can
        stand whole behind the backslash.
        """
        redactor = Redactor()
        redactor.register(f"a{secret}")
        broken = f"a{secret}"
        for wanted, what in breaks:
            place = min(wanted, len(broken) - 1)
            broken = broken[:place] + what + broken[place:]

        assert f"<{MASK}>" == redactor.redact(f"<{broken}>")

    def test_texts_around_stay(self) -> None:
        middle = f"{self.secret[:7]}\n{self.secret[7:]}"

        found = self.redactor().redact(f"one\n{middle}\ntwo {self.secret}\\n three {middle}")

        assert f"one\n{MASK}\ntwo {MASK}\\n three {MASK}" == found

    def test_spellings_that_overlap_are_one(self) -> None:
        redactor = Redactor()
        redactor.register("abcdefghij")
        redactor.register("fghijklmno")

        assert f"x{MASK}y" == redactor.redact("xabc\ndefghijkl\nmnoy")

    def test_a_secret_of_line_breaks_goes_as_it_stands(self) -> None:
        redactor = Redactor()
        redactor.register("a\\nb\\nc\\nd")

        assert f"{MASK} abcd" == redactor.redact("a\\nb\\nc\\nd abcd")

    @pytest.mark.parametrize(
        "text",
        [
            "ghp_abcdefgh1234",
            "eyJabcdefghijk.abcdefghijkl.xyz",
            "Authorization: Basic abc",
            "bearer abcdefgh1234",
            "https://user:pass@host/x",
            "https://host/x?token=abc",
            "-----BEGIN PRIVATE KEY-----\nabc",
        ],
    )
    def test_well_known_forms(self, text: str) -> None:
        assert MASK in Redactor().redact(text)

    def test_ordinary_words_stay(self) -> None:
        found = self.redactor().redact("a short text")

        assert found == "a short text"
        assert isinstance(found, SafeText)

    def test_control_characters_and_length(self) -> None:
        assert self.redactor().redact("a\x00b\u202ec") == "a\ufffdb\ufffdc"
        assert self.redactor().redact("x" * 100, 20) == "x" * 14 + " [cut]"
        assert self.secret[:10] not in self.redactor().redact("x" * 10 + self.secret, 18)

    def test_a_short_secret_has_no_base64_form(self) -> None:
        redactor = Redactor()
        redactor.register("12345678")

        assert redactor.redact("12345678") == MASK

    @pytest.mark.parametrize(
        "token", ["ghs_16C7e42F292c6912E7", "ghs_12_eyJhbGci.eyJpc3Mi.Sig-na_t"]
    )
    def test_tokens_of_an_app_are_known_in_both_forms(self, token: str) -> None:
        assert f"push with {MASK} failed" == Redactor().redact(f"push with {token} failed")


class TestSecretText:
    """A secret that is printed, formatted or pickled by accident stays one (security.md H17)."""

    def test_it_shows_a_mask(self) -> None:
        secret = SecretText("a-canary-0001")

        assert MASK == str(secret) == repr(secret) == f"{secret}"
        assert "a-canary-0001" == secret.reveal()
        assert secret == SecretText("a-canary-0001")
        assert secret != "a-canary-0001"
        assert 1 == len({secret, SecretText("a-canary-0001")})

    def test_it_isn_t_stored(self) -> None:
        with pytest.raises(TypeError, match="isn't stored"):
            pickle.dumps(SecretText("a-canary-0001"))

    def test_a_message_doesn_t_show_its_token(self) -> None:
        minted = MintedToken("ghs_canary", "2026-01-01T01:00:00Z", "team/app", "https://x/api/v3")

        assert "canary" not in repr(minted)
        assert b"ghs_canary" in to_bytes(minted)
