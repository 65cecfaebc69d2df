"""Title, body and marker (upgrade-run.md §10, §12; security.md §8, H33)."""

from dataclasses import replace

from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_protocol.limits import BODY_MAX
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.slugs import marker, read_marker
from upgraderun_runner.forge.texts import (
    CheckFact,
    FileFact,
    ProposalFacts,
    proposal_body,
    proposal_title,
    pull_request_body,
)
from upgraderun_runner.workspace.recipe import Recipe

UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
MARKER = marker(UID, "d" * 64, "python", "httpx", "0.28.1")
BASE = CommitId("1" * 40)
FACTS = ProposalFacts(
    ecosystem="python",
    name="httpx",
    from_version="0.27.2",
    to_version="0.28.1",
    change_class="minor",
    age="published 2024-12-06, 100 days ago",
    mode="Rules",
    config_hash="c" * 64,
    isolation="network-namespace",
    constraint_edit=">=0.27 → >=0.28",
    closure=("httpcore 1.0.5 → 1.0.7",),
    departures=("sniffio 1.3.1",),
    files=(FileFact("pyproject.toml", 1, 1), FileFact("uv.lock", 12, 10)),
    checks=(CheckFact("tests", "passed (851)", "passed (851)"),),
    notes=("build requirements aren't locked",),
    images={"python": "registry.example/python@sha256:" + "e" * 64},
    summary="I renamed the call.",
)

GOLDEN = """\
## In the agent's words

> I renamed the call.

## Upgrade

- Dependency: `httpx`
- Version: `0.27.2` → `0.28.1`
- Class: minor
- Published: published 2024-12-06, 100 days ago
- Constraint: `>=0.27 → >=0.28`

## Changed in the lock

- `httpcore 1.0.5 → 1.0.7`

## No longer in the lock

- `sniffio 1.3.1`

## Files

- `pyproject.toml` +1 -1
- `uv.lock` +12 -10

## Checks

- `tests`: passed (851) before, passed (851) after

## Notes

- `build requirements aren't locked`

## Evidence

- mode `Rules`
- isolation `network-namespace`
- configuration `cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc`
- image `python` `registry.example/python@ sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee`"""


def test_body_says_everything_in_order() -> None:
    assert GOLDEN == proposal_body(FACTS, Redactor())


def test_missing_isolation_is_said_plainly() -> None:
    body = proposal_body(replace(FACTS, isolation="none"), Redactor())

    assert "nothing was isolated" in body


def test_unexercised_repair_opens_with_a_warning() -> None:
    facts = replace(FACTS, unexercised=("src/a.py:10-12",), approvers=("ann",))

    body = proposal_body(facts, Redactor())

    assert body.startswith("**Warning: parts of this repair are run by no test.**")
    assert "`ann`" in body
    assert "src/a.py:10-12" in body


def test_body_is_bounded_whatever_comes() -> None:
    many = tuple(f"package-{i} " + "x" * 500 for i in range(500))
    facts = replace(
        FACTS, closure=many, departures=many, notes=many, held=many, summary="y" * 100_000,
        files=tuple(FileFact(f"f{i}" * 200, 1, 1) for i in range(500)),
    )  # fmt: skip

    body = proposal_body(facts, Redactor())

    assert len(body) <= 62_000
    text = pull_request_body(body, base=BASE, base_branch="main", branch_head=BASE, marker=MARKER)
    assert len(text) <= BODY_MAX


def test_secrets_are_redacted_before_they_could_be_broken_up() -> None:
    redactor = Redactor()
    redactor.register("deadbeefcafe0123")
    facts = replace(FACTS, summary="token deadbeef\u200bcafe0123 here", notes=("deadbeefcafe0123",))

    body = proposal_body(facts, redactor)

    assert "[redacted]" in body
    assert "deadbe" not in body
    assert "deadbe" not in proposal_title("a", "1", "2", redactor, "use deadbeefcafe0123")


def test_title_is_the_default_or_the_agents() -> None:
    redactor = Redactor()

    assert "Upgrade a from 1 to 2" == proposal_title("a", "1", "2", redactor)
    assert "Upgrade a from 1 to 2" == proposal_title("a", "1", "2", redactor, "\u200b \n")
    assert "Fix # 12 for @ bob" == proposal_title("a", "1", "2", redactor, "Fix #12\nfor @bob")
    assert len(proposal_title("a", "1", "2", redactor, "x" * 500)) <= 120


def test_every_title_and_body_makes_a_recipe() -> None:
    hostile = "x\nUpgradeRun-Id: other\nSigned-off-by: Eve\n\0"
    facts = replace(FACTS, summary=hostile, notes=(hostile,), name=hostile)

    made = Recipe(
        TreeId("2" * 40), BASE, "Bot", "bot@example.com", 1,
        proposal_title(hostile, hostile, hostile, Redactor(), hostile),
        proposal_body(facts, Redactor()), UID, "3f1c9a2b-s4",
    )  # fmt: skip

    assert "UpgradeRun-Id" in made.body


class TestPullRequestBody:
    def test_marker_is_the_last_line(self) -> None:
        text = pull_request_body(
            "Body.\n", base=BASE, base_branch="main", branch_head=BASE, marker=MARKER
        )

        assert f"Body.\n\nValidated against base {BASE} of `main`.\n\n{MARKER}" == text
        assert (UID, "d" * 64, "python:httpx@0.28.1") == read_marker(text)

    def test_moved_base_is_one_sentence_with_both_commits(self) -> None:
        head = CommitId("2" * 40)

        text = pull_request_body(
            "Body.", base=BASE, base_branch="main", branch_head=head, marker=MARKER
        )

        assert f"Since then `main` has moved to {head}" in text
        assert BASE in text

    def test_look_alike_in_the_summary_is_no_marker(self) -> None:
        other = marker(RunUid("other-run"), "f" * 64, "python", "a", "1")
        body = proposal_body(replace(FACTS, summary=other), Redactor())

        text = pull_request_body(
            body, base=BASE, base_branch="main", branch_head=BASE, marker=MARKER
        )

        assert "<!-- upgraderun:v1 run=other-run" not in text
        found = read_marker(text)
        assert found is not None
        assert UID == found[0]
