"""Pushing one commit to one new branch (upgrade-run.md §12). Creates only, never forces.

Caller: `forge.publication`.
"""

import re
from dataclasses import dataclass
from typing import Final

from upgraderun_protocol.ids import CommitId
from upgraderun_runner.forge import limits
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.workspace.errors import GitFailed, RemoteFailed
from upgraderun_runner.workspace.git import PUSH, Credential, Git


@dataclass(frozen=True, slots=True)
class PushApplied:
    """Created, or up to date."""


@dataclass(frozen=True, slots=True)
class PushRefused:
    """The server answered and refused: stale expectation, rule or hook. Look before judging."""

    text: str


@dataclass(frozen=True, slots=True)
class PushUnknown:
    """No readable answer: it may have happened."""

    text: str


_CODE = re.compile(r"\bGH[0-9]{3}\b")

PushResult = PushApplied | PushRefused | PushUnknown


def push_arguments(url: str, branch: str, commit: CommitId) -> tuple[str, ...]:
    """The argv after the settings. The empty expectation means "must not exist"."""
    return (
        "push",
        "--no-verify",
        "--porcelain",
        "--no-recurse-submodules",
        f"--force-with-lease=refs/heads/{branch}:",
        "--end-of-options",
        url,
        f"{commit}:refs/heads/{branch}",
    )


async def _push_branch(
    git: Git, url: str, branch: str, commit: CommitId, credential: Credential | None
) -> PushResult:
    """Push once. Never repeats by itself."""
    arguments = push_arguments(url, branch, commit)
    try:
        result = await git.remote(*arguments, url=url, credential=credential, bounds=PUSH)
    except (GitFailed, RemoteFailed) as error:
        return PushUnknown(error.text)
    said = result.stderr[-limits.DENIAL_CHARACTERS_MAX :]
    return read_porcelain(result.stdout.decode("utf-8", errors="replace"), branch, said)


PUSH_BRANCH: Final = AsyncEffect("push", _push_branch, lambda: PushUnknown("the answer was lost"))


def read_porcelain(output: str, branch: str, said: str) -> PushResult:
    r"""Read `--porcelain` output: one line per ref, `<flag>\t<from>:<to>\t<summary>`."""
    for line in output.splitlines():
        flag, _, rest = line.partition("\t")
        refs, _, summary = rest.partition("\t")
        if refs.partition(":")[2] != f"refs/heads/{branch}":
            continue
        if flag in {"*", "="}:
            return PushApplied()
        if flag == "!":
            text = f"{_reasons(said) or said}: {summary}"
            return PushRefused(text[: limits.DENIAL_CHARACTERS_MAX])
    return PushUnknown(said)


def _reasons(said: str) -> str:
    """What the remote gave as reasons, short enough for a status.

    https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/troubleshooting-rules:
    a code such as GH013 in the first line, then one `- reason` for each rule. Words for people only.
    """
    lines = [
        line.partition("remote:")[2].strip()
        for line in said.splitlines()
        if line.startswith("remote:")
    ]
    reasons = [line[2:].rstrip(".") for line in lines if line.startswith("- ")]
    errors = [line.partition("error:")[2].strip() for line in lines if line.startswith("error:")]
    code = _CODE.search(said)
    if not reasons or code is None:
        return "; ".join([*errors, *reasons])
    return f"{code[0]} {'; '.join(reasons)}"
