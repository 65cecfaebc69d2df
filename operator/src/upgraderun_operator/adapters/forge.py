"""Reads a GitHub-compatible forge over aiohttp: destination, earlier proposals, our branch.

Read only; the token goes to the policy's API host and nowhere else, redirects aren't followed (H22).
A forge that doesn't answer, limits or breaks is Unreadable; only a definite no is a refusal.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import aiohttp

from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import (
    DestinationRefused,
    DestinationView,
    FoundPull,
    RemoteView,
)
from upgraderun_operator.observe.ports import ForgeTarget
from upgraderun_protocol.bundle import EarlierProposals
from upgraderun_protocol.canonical import is_git_id
from upgraderun_protocol.ids import CommitId
from upgraderun_protocol.limits import MIB
from upgraderun_protocol.slugs import BRANCH_PREFIX, read_marker

CALL_SECONDS: Final = 15.0
ANSWER_BYTES_MAX: Final = 8 * MIB
PAGE: Final = 100
PAGES_MAX: Final = 10
PROBE_BRANCH: Final = f"{BRANCH_PREFIX}probe"


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: Any


class GitHubReader:
    """Questions to forges. Async context manager around one connection pool."""

    def __init__(self, tls: ssl.SSLContext | bool = True) -> None:
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=16),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=5),
            headers={
                "Accept": "application/vnd.github+json",
                "User-Agent": "upgraderun-operator",
                "X-GitHub-Api-Version": "2022-11-28",
            },
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def destination(
        self, target: ForgeTarget, branch: str | None, commit: CommitId | None
    ) -> DestinationView | DestinationRefused | Unreadable:
        """Look at repository, base branch, rules and earlier proposals (upgrade-run.md §12)."""
        try:
            return await self._destination(target, branch, commit)
        except _Stop as stop:
            return stop.reading

    async def remote(
        self, target: ForgeTarget, branch: str, marker: tuple[str, str]
    ) -> RemoteView | DestinationRefused | Unreadable:
        """Look at our branch and its pull requests; `marker` is (run UID, proposal digest)."""
        owner = target.repository.partition("/")[0]
        try:
            commit = await self._head(target, branch)
            query = f"?state=all&per_page={PAGE}&head={quote(f'{owner}:{branch}', safe='')}"
            reply = await self._get(target, f"/pulls{query}")
        except _Stop as stop:
            return stop.reading
        pulls = (_found_pull(pull, marker) for pull in _items(reply.body))
        return RemoteView(commit, tuple(pull for pull in pulls if pull is not None))

    async def _destination(
        self, target: ForgeTarget, branch: str | None, commit: CommitId | None
    ) -> DestinationView:
        repository = await self._get(target, "")
        if repository.status == HTTPStatus.NOT_FOUND:
            return DestinationView(exists=False)
        body = repository.body
        name = branch or str(body.get("default_branch", ""))
        head = await self._head(target, name) if name else None
        on_branch = await self._is_on_branch(target, commit, head)
        permissions = body.get("permissions")
        may_push = permissions.get("push") if isinstance(permissions, Mapping) else None
        return DestinationView(
            exists=True,
            archived=body.get("archived") is True,
            branch=name,
            head=head,
            commit_on_branch=on_branch,
            may_push=may_push if isinstance(may_push, bool) else None,
            creation_forbidden=await self._creation_rule(target),
            earlier=await self._earlier(target),
        )

    async def _head(self, target: ForgeTarget, branch: str) -> CommitId | None:
        reply = await self._get(target, f"/branches/{quote(branch)}")
        if reply.status == HTTPStatus.NOT_FOUND:
            return None
        commit = str((reply.body.get("commit") or {}).get("sha", ""))
        if not is_git_id(commit):
            raise _Stop(Unreadable("forge", f"branch {branch[:64]} has no commit id"))
        return CommitId(commit)

    async def _is_on_branch(
        self, target: ForgeTarget, commit: CommitId | None, head: CommitId | None
    ) -> bool | None:
        """Whether the commit is the head or an ancestor of it; None if none was asked for."""
        if commit is None:
            return None
        if head is None or commit == head:
            return head is not None
        reply = await self._get(target, f"/compare/{commit}...{head}")
        if reply.status == HTTPStatus.NOT_FOUND:
            return False
        return reply.body.get("status") in {"ahead", "identical"}

    async def _creation_rule(self, target: ForgeTarget) -> str | None:
        """Name the rule that forbids to create a branch of ours; forges without rules have none."""
        reply = await self._get(target, f"/rules/branches/{quote(PROBE_BRANCH)}")
        for rule in _items(reply.body):
            if rule.get("type") == "creation":
                return f"ruleset {str(rule.get('ruleset_id', '?'))[:32]}"
        return None

    async def _earlier(self, target: ForgeTarget) -> EarlierProposals:
        """Read targets of this product's open and declined pull requests (§5.1)."""
        proposed: set[str] = set()
        declined: set[str] = set()
        query = f"state=all&sort=created&direction=desc&per_page={PAGE}"
        for page in range(1, PAGES_MAX + 1):
            reply = await self._get(target, f"/pulls?{query}&page={page}")
            pulls = _items(reply.body)
            for pull in pulls:
                name = _target(pull, target.repository)
                if name is None:
                    continue
                if pull.get("state") == "open":
                    proposed.add(name)
                elif not pull.get("merged_at"):
                    declined.add(name)
            if len(pulls) < PAGE:
                break
        return EarlierProposals(tuple(sorted(proposed)), tuple(sorted(declined)))

    async def _get(self, target: ForgeTarget, path: str) -> _Reply:
        """One read of the repository; raises _Stop with the reading that ends the look."""
        assert self._session is not None, "GitHubReader is used inside `async with` only"
        url = f"{target.api_url.rstrip('/')}/repos/{quote(target.repository)}{path}"
        headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
        where = f"GET {path.partition('?')[0] or '/'}"
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
                data = await answer.content.read(ANSWER_BYTES_MAX + 1)
                while not answer.content.at_eof() and len(data) <= ANSWER_BYTES_MAX:
                    data += await answer.content.read(ANSWER_BYTES_MAX + 1)
                _refuse(answer, where)
                return _Reply(answer.status, _decoded(data, where))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Stop(Unreadable("forge", f"{where}: {type(error).__name__}")) from error


class _Stop(Exception):  # noqa: N818 - carries an answer, not an error
    """Ends a look with what is to be answered; never leaves this module."""

    def __init__(self, reading: DestinationRefused | Unreadable) -> None:
        super().__init__(str(reading))
        self.reading = reading


def _refuse(answer: aiohttp.ClientResponse, where: str) -> None:
    """Sort the statuses: limits and 5xx tell nothing, 401, 403 and redirects are definite."""
    status, headers = answer.status, answer.headers
    limited = headers.get("X-RateLimit-Remaining") == "0" or "Retry-After" in headers
    after = headers.get("Retry-After", "")
    seconds = float(after) if after.isascii() and after.isdigit() else None
    forbidden = status == HTTPStatus.FORBIDDEN
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise _Stop(Unreadable("forge", f"{where}: {status}", seconds))
    if forbidden and limited:
        raise _Stop(Unreadable("forge", f"{where}: limited", seconds))
    if forbidden or status == HTTPStatus.UNAUTHORIZED:
        raise _Stop(
            DestinationRefused(
                f"the forge refuses the push token ({status}); give it contents and pull "
                "requests, write, of this repository"
            )
        )
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        words = f"the forge redirects ({status}): the repository was renamed or moved; name the new"
        raise _Stop(DestinationRefused(f"{words} URL in spec.repository.url"))
    if status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
        raise _Stop(Unreadable("forge", f"{where}: {status}"))


def _decoded(data: bytes, where: str) -> Any:
    if len(data) > ANSWER_BYTES_MAX:
        raise _Stop(Unreadable("forge", f"{where}: more than {ANSWER_BYTES_MAX} bytes"))
    try:
        body = json.loads(data)
    except ValueError as error:
        raise _Stop(Unreadable("forge", f"{where}: the answer is no JSON")) from error
    if not isinstance(body, dict | list):
        raise _Stop(Unreadable("forge", f"{where}: the answer is no object"))
    return body


def _items(body: Any) -> list[Mapping[str, Any]]:
    return [item for item in body if isinstance(item, Mapping)] if isinstance(body, list) else []


def _target(pull: Mapping[str, Any], repository: str) -> str | None:
    """Target `name@version` of a pull request that is this product's own, from this repository."""
    head = pull.get("head") or {}
    source = str((head.get("repo") or {}).get("full_name", ""))
    if not str(head.get("ref", "")).startswith(BRANCH_PREFIX):
        return None
    if source.lower() != repository.lower():
        return None
    marker = read_marker(str(pull.get("body") or ""))
    return None if marker is None else marker[2].partition(":")[2]


def _found_pull(pull: Mapping[str, Any], ours: tuple[str, str]) -> FoundPull | None:
    head = str((pull.get("head") or {}).get("sha", ""))
    number = pull.get("number")
    if not isinstance(number, int) or not is_git_id(head):
        return None
    marker = read_marker(str(pull.get("body") or ""))
    state = "merged" if pull.get("merged_at") else str(pull.get("state", ""))[:16]
    return FoundPull(number, state, CommitId(head), marker is not None and marker[:2] == ours)
