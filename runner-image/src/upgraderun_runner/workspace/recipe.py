"""The recipe of the one commit and the id it gives (upgrade-run.md §10). Pure.

Callers: `proposal` (freeze), `verify` (rebuild). Two computations of one recipe give one id, with
or without git.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from upgraderun_protocol.ids import CommitId, RunUid, TreeId

RUN_TRAILER: Final = "UpgradeRun-Id"
PROPOSAL_TRAILER: Final = "UpgradeRun-Proposal"
_TRAILER_LINE: Final = re.compile(
    r"(?im)^\s*(?:UpgradeRun-[A-Za-z]+|Signed-off-by|Co-authored-by)\s*:"
)
_IDENTITY_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f<>]")
_IDENTITY_CRUD: Final = " .,:;\"\\'"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that determines a commit id. Artifact `recipe` of the proposal's intent.

    Raises ValueError for an identity that git would alter, and for texts that could forge a
    trailer: whoever fills `title` and `body` neutralises them first.
    """

    tree: TreeId
    parent: CommitId
    author_name: str
    author_email: str
    unix_seconds: int
    title: str
    body: str
    run_uid: RunUid
    proposal: str

    def __post_init__(self) -> None:
        for text in (self.author_name, self.author_email):
            if not text or _IDENTITY_REFUSED.search(text) or text != text.strip(_IDENTITY_CRUD):
                raise ValueError(f"git wouldn't keep the identity {text!r}; see git_identity")
        if not self.title.strip() or "\n" in self.title or "\r" in self.title:
            raise ValueError("the title is one line of text")
        if "\0" in self.title + self.body or _TRAILER_LINE.search(f"{self.title}\n{self.body}"):
            raise ValueError("title and body hold no NUL and no line that reads as a trailer")
        if self.unix_seconds < 0:
            raise ValueError("time starts at 0")


def git_identity(text: str) -> str:
    """What git keeps of a name or address: no angle brackets, control characters or outer marks."""
    return _IDENTITY_REFUSED.sub("", text).strip(_IDENTITY_CRUD)


def commit_message(recipe: Recipe) -> str:
    """Title, blank line, body, blank line, the two trailers, one newline."""
    body = recipe.body.strip("\n")
    trailers = f"{RUN_TRAILER}: {recipe.run_uid}\n{PROPOSAL_TRAILER}: {recipe.proposal}\n"
    return f"{recipe.title}\n\n{body}\n\n{trailers}" if body else f"{recipe.title}\n\n{trailers}"


def commit_bytes(recipe: Recipe) -> bytes:
    """The object that git stores, without its header."""
    who = f"{recipe.author_name} <{recipe.author_email}> {recipe.unix_seconds} +0000"
    head = f"tree {recipe.tree}\nparent {recipe.parent}\nauthor {who}\ncommitter {who}\n\n"
    return (head + commit_message(recipe)).encode("utf-8")


def commit_id(recipe: Recipe) -> CommitId:
    """The id that git will give, computed from the object's bytes. Pure."""
    content = commit_bytes(recipe)
    header = f"commit {len(content)}\0".encode("ascii")
    return CommitId(hashlib.sha1(header + content, usedforsecurity=False).hexdigest())
