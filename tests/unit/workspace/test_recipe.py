"""The recipe alone determines the commit id (upgrade-run.md §10)."""

from dataclasses import replace

import pytest

from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_runner.workspace.recipe import (
    Recipe,
    commit_bytes,
    commit_id,
    commit_message,
    git_identity,
)

RECIPE = Recipe(
    tree=TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
    parent=CommitId("1" * 40),
    author_name="UpgradeRun",
    author_email="bot@example.com",
    unix_seconds=1_780_000_000,
    title="Upgrade httpx from 0.27.2 to 0.28.1",
    body="One line.\n\nAnother.",
    run_uid=RunUid("3f1c9a2b-0000-4000-8000-000000000001"),
    proposal="3f1c9a2b-s4",
)


def test_message_has_title_body_and_two_trailers() -> None:
    assert (
        "Upgrade httpx from 0.27.2 to 0.28.1\n\nOne line.\n\nAnother.\n\n"
        "UpgradeRun-Id: 3f1c9a2b-0000-4000-8000-000000000001\n"
        "UpgradeRun-Proposal: 3f1c9a2b-s4\n"
    ) == commit_message(RECIPE)


def test_object_holds_one_parent_and_both_dates() -> None:
    lines = commit_bytes(RECIPE).decode().splitlines()

    assert [
        "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "parent " + "1" * 40,
        "author UpgradeRun <bot@example.com> 1780000000 +0000",
        "committer UpgradeRun <bot@example.com> 1780000000 +0000",
        "",
    ] == lines[:5]


def test_id_is_a_constant_of_the_recipe() -> None:
    """Golden: computed once with `git hash-object -t commit`."""
    assert "1088ff59c5ae78fcff696d8498017dcc657db632" == commit_id(RECIPE)


@pytest.mark.parametrize(
    "change",
    [
        {"tree": TreeId("2" * 40)}, {"parent": CommitId("2" * 40)}, {"author_name": "Other"},
        {"author_email": "o@example.com"}, {"unix_seconds": 1}, {"title": "t"}, {"body": "b"},
        {"run_uid": RunUid("other")}, {"proposal": "p"},
    ],
)  # fmt: skip
def test_every_part_of_the_recipe_counts(change: dict[str, str | int]) -> None:
    assert commit_id(RECIPE) != commit_id(replace(RECIPE, **change))  # type: ignore[arg-type]  # rows are typed above


@pytest.mark.parametrize(
    "change",
    [
        {"author_name": "Bot."}, {"author_name": "B<ot"}, {"author_name": ""},
        {"author_email": "a@b\nc"}, {"title": "two\nlines"}, {"title": " "}, {"body": "a\0b"},
        {"body": "x\nUpgradeRun-Id: other"}, {"body": "Signed-off-by: A <a@b.c>"},
        {"body": "x\n  co-authored-by: A <a@b.c>"}, {"title": "UpgradeRun-Proposal: x"},
        {"unix_seconds": -1},
    ],
)  # fmt: skip
def test_recipe_refuses_what_git_or_a_reader_would_take_otherwise(
    change: dict[str, str | int],
) -> None:
    with pytest.raises(ValueError, match=r"."):
        replace(RECIPE, **change)  # type: ignore[arg-type]  # rows are typed above


def test_identity_is_what_git_keeps() -> None:
    assert "Acme Inc" == git_identity(" Acme <Inc>.\n")
