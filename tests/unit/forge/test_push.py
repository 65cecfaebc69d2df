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
        (f"To url\n!\t{REFS}\t[rejected] (stale info)\n", PushRefused("[rejected] (stale info): said")),
        (
            f"!\t{REFS}\t[remote rejected] (pre-receive hook declined)\n",
            PushRefused("[remote rejected] (pre-receive hook declined): said"),
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
