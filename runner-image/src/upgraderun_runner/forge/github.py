"""Typed calls to the part of the GitHub API that publication uses. Decides nothing.

Callers: `forge.publication`. Each read answers with a value, or `Unknown`, or `Denied`; each write
with what the forge said. Links are built from the policy's host and a number, never copied (H22).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from upgraderun_protocol.canonical import is_git_id
from upgraderun_protocol.ids import CommitId
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.http import ForgeHttp, NoAnswer, Reply


@dataclass(frozen=True, slots=True)
class Unknown:
    """The forge couldn't be read; `retry_after_seconds` if it said when to come back."""

    reason: str
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A definite no: 401, 403 without a limit, a rule or hook. Waits for a person."""

    text: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class SeenPullRequest:
    """One pull request as the forge shows it. `state` is open, closed or merged."""

    number: int
    state: str
    head_commit: CommitId
    base_branch: str
    body: str
    author: str


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """What is asked of the forge."""

    title: str
    body: str
    head: str
    base: str
    draft: bool


@dataclass(frozen=True, slots=True)
class Created:
    """201: the pull request as answered."""

    pull_request: SeenPullRequest


@dataclass(frozen=True, slots=True)
class Rejected:
    """422: somebody, perhaps we, was first, or the head isn't visible yet: look."""

    text: str


class GitHub:
    """Calls for one repository, `owner/name`."""

    def __init__(self, http: ForgeHttp, repository: str) -> None:
        self._http = http
        self._repository = repository
        self._root = f"/repos/{quote(repository)}"

    async def pull_requests_from(
        self, branch: str
    ) -> tuple[SeenPullRequest, ...] | Unknown | Denied:
        """Every pull request whose head is that branch of this repository, in all states.

        Filtered here too: the forge ignores a `head` that it doesn't understand.
        """
        owner = self._repository.partition("/")[0]
        size = str(limits.PULL_REQUESTS_PER_PAGE)
        query = {"head": f"{owner}:{branch}", "state": "all", "per_page": size}
        reply = await self._http.get(f"{self._root}/pulls", query)
        rows = _value(reply, list)
        if isinstance(rows, Unknown | Denied):
            return rows
        ours = [row for row in rows if self._is_from(row, branch)]
        seen = [_pull_request(row) for row in ours]
        if any(pull is None for pull in seen):
            return Unknown("a pull request in the list lacks a field")
        return tuple(pull for pull in seen if pull is not None)

    def _is_from(self, row: Any, branch: str) -> bool:
        name = _at(row, "head", "repo", "full_name")
        return (
            _at(row, "head", "ref") == branch
            and isinstance(name, str)
            and name.lower() == self._repository.lower()
        )

    async def create_pull_request(
        self, wish: NewPullRequest
    ) -> Created | Rejected | Unknown | Denied:
        """Create one. Unknown after a lost answer: look before doing it again."""
        reply = await self._http.post(
            f"{self._root}/pulls",
            {
                "title": wish.title,
                "body": wish.body,
                "head": wish.head,
                "base": wish.base,
                "draft": wish.draft,
                "maintainer_can_modify": False,
            },
        )
        if isinstance(reply, Reply) and reply.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return Rejected(_text(reply))
        value = _value(reply, dict, HTTPStatus.CREATED)
        if isinstance(value, Unknown | Denied):
            return value
        made = _pull_request(value)
        return Unknown("the created pull request lacks a field") if made is None else Created(made)

    async def may_push(self) -> bool | Unknown | Denied:
        """Whether this token may push here: tells a denied push from an unreachable host."""
        value = _value(await self._http.get(self._root), dict)
        if isinstance(value, Unknown | Denied):
            return value
        if value.get("archived") is True:
            return Denied("the repository is archived")
        pushes = _at(value, "permissions", "push")
        return pushes if isinstance(pushes, bool) else True

    async def commit_author(self, commit: CommitId) -> str:
        """Author of a commit, for evidence; "unknown" if the forge doesn't say."""
        value = _value(await self._http.get(f"{self._root}/commits/{commit}"), dict)
        name = (
            None if isinstance(value, Unknown | Denied) else _at(value, "commit", "author", "name")
        )
        return name if isinstance(name, str) and name else "unknown"

    async def decorate(
        self, number: int, labels: tuple[str, ...], reviewers: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add missing labels and reviewers, looked up first; returns warnings. Best effort (§12)."""
        found = (
            await self._add_missing(f"issues/{number}/labels", "labels", labels),
            await self._add_missing(f"pulls/{number}/requested_reviewers", "reviewers", reviewers),
        )
        return tuple(warning for warning in found if warning)

    async def _add_missing(self, path: str, what: str, wanted: tuple[str, ...]) -> str:
        if not wanted:
            return ""
        there = _names(await self._http.get(f"{self._root}/{path}"))
        if there is None:
            return f"{what} couldn't be read"
        missing = [name for name in wanted if name.lower() not in there]
        if not missing:
            return ""
        problem = await self._add(path, what, missing)
        if problem is None:
            return ""
        refused = missing
        if problem.is_refusal and len(missing) > 1:
            # One that can't be set refuses all of them: the others are set one by one.
            refused = [name for name in missing if await self._add(path, what, [name]) is not None]
        if not refused:
            return ""
        words = f"{what} {', '.join(refused)} not set: {problem.text}"
        return words[: limits.EVIDENCE_CHARACTERS_MAX]

    async def _add(self, path: str, what: str, names: list[str]) -> "_Problem | None":
        """https://docs.github.com/rest/pulls/review-requests, https://docs.github.com/rest/issues/labels."""
        reply = await self._http.post(f"{self._root}/{path}", {what: names})
        if isinstance(reply, NoAnswer):
            return _Problem(reply.reason, is_refusal=False)
        if reply.status in {HTTPStatus.OK, HTTPStatus.CREATED}:
            return None
        return _Problem(_text(reply), is_refusal=reply.status == HTTPStatus.UNPROCESSABLE_ENTITY)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why labels or reviewers weren't set. A refusal is about what was asked for."""

    text: str
    is_refusal: bool


def _names(reply: Reply | NoAnswer) -> frozenset[str] | None:
    """Lower-case names of a list of labels, or of the users in an answer about reviewers."""
    if isinstance(reply, NoAnswer) or reply.status != HTTPStatus.OK:
        return None
    rows = reply.body.get("users") if isinstance(reply.body, Mapping) else reply.body
    if not isinstance(rows, list):
        return None
    found = (_at(row, "name") or _at(row, "login") for row in rows)
    return frozenset(name.lower() for name in found if isinstance(name, str))


def _value(
    reply: Reply | NoAnswer, kind: type, status: HTTPStatus = HTTPStatus.OK
) -> Any | Unknown | Denied:
    """The body of an expected answer, or why there is none. 404 is lag or blindness: unknown."""
    if isinstance(reply, NoAnswer):
        return Unknown(reply.reason, reply.retry_after_seconds)
    if reply.status == status and isinstance(reply.body, kind):
        return reply.body
    if reply.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return Denied(_text(reply), reply.status)
    if HTTPStatus.MULTIPLE_CHOICES <= reply.status < HTTPStatus.BAD_REQUEST:
        return Denied("the repository was renamed or moved; name its new URL", reply.status)
    return Unknown(f"answer {reply.status}: {_text(reply)}")


def _text(reply: Reply) -> str:
    """What the forge said, for people: its message and the reasons below it."""
    said = _at(reply.body, "message")
    errors = _at(reply.body, "errors")
    more = [_at(row, "message") or _at(row, "code") for row in errors or () if errors]
    parts = [text for text in (said, *more) if isinstance(text, str) and text]
    return "; ".join(parts)[: limits.DENIAL_CHARACTERS_MAX] or f"status {reply.status}"


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _pull_request(row: Any) -> SeenPullRequest | None:
    number, head = _at(row, "number"), _at(row, "head", "sha")
    state, base = _at(row, "state"), _at(row, "base", "ref")
    if not isinstance(number, int) or not isinstance(base, str) or state not in {"open", "closed"}:
        return None
    if not isinstance(head, str) or not is_git_id(head):
        return None
    merged = _at(row, "merged_at") is not None
    return SeenPullRequest(
        number=number,
        state="merged" if merged else state,
        head_commit=CommitId(head),
        base_branch=base,
        body=str(_at(row, "body") or ""),
        author=str(_at(row, "user", "login") or "unknown"),
    )
