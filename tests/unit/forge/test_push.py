"""The push: argv and the reading of `--porcelain` (upgrade-run.md §12)."""

import pytest

from upgraderun_protocol.ids import CommitId
from upgraderun_runner.forge.push import (
    PushApplied,
    PushRefused,
    PushResult,
    PushUnknown,
    push_arguments,
    read_porcelain,
)

COMMIT = CommitId("1" * 40)
BRANCH = "upgraderun/httpx-0.28.1-3f1c9a2b"
REFS = f"{COMMIT}:refs/heads/{BRANCH}"


def test_argv_creates_only_and_names_one_ref() -> None:
    assert (
        "push",
        "--no-verify",
        "--porcelain",
        "--no-recurse-submodules",
        f"--force-with-lease=refs/heads/{BRANCH}:",
        "--end-of-options",
        "https://git.example/acme/shop.git",
        REFS,
    ) == push_arguments("https://git.example/acme/shop.git", BRANCH, COMMIT)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (f"To url\n*\t{REFS}\t[new branch]\nDone\n", PushApplied()),
        (f"To url\n=\t{REFS}\t[up to date]\nDone\n", PushApplied()),
        (f"To url\n!\t{REFS}\t[rejected] (stale info)\n", PushRefused("said: [rejected] (stale info)")),
        (
            f"!\t{REFS}\t[remote rejected] (pre-receive hook declined)\n",
            PushRefused("said: [remote rejected] (pre-receive hook declined)"),
        ),
        ("", PushUnknown("said")),
        ("To url\nDone\n", PushUnknown("said")),
        (f"*\t{COMMIT}:refs/heads/other\t[new branch]\n", PushUnknown("said")),
        (f" \t{REFS}\tfast forward\n", PushUnknown("said")),
        (f"+\t{REFS}\tforced update\n", PushUnknown("said")),
    ],
)  # fmt: skip
def test_porcelain_is_read_by_its_flags(output: str, expected: PushResult) -> None:
    assert expected == read_porcelain(output, BRANCH, "said")


GH013 = """\
remote: error: GH013: Repository rule violations found for refs/heads/upgraderun/x.
remote: Review all repository rules at https://github.com/acme/shop/rules?ref=refs%2Fheads%2Fx
remote:
remote: - Cannot create ref due to creations being restricted.
remote:
remote: - Commits must have verified signatures.
To https://github.com/acme/shop.git
"""
GH006 = "remote: error: GH006: Protected branch update failed for refs/heads/x.\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            GH013,
            "GH013 Cannot create ref due to creations being restricted; Commits must have verified",
        ),
        (GH006, "GH006: Protected branch update failed for refs/heads/x.: (push declined due"),
        ("remote: error: no robots here\n", "no robots here: (push declined"),
        ("remote: - a list without a code\n", "a list without a code: (push declined"),
    ],
)
def test_a_rule_s_own_words_come_first(said: str, expected: str) -> None:
    """https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/troubleshooting-rules."""
    output = f"!\t{REFS}\t(push declined due to repository rule violations)\n"

    answer = read_porcelain(output, BRANCH, said)

    assert isinstance(answer, PushRefused)
    assert answer.text.startswith(expected)
