"""Read-only questions of the operator to a forge that speaks GitHub's REST API.

Only `main` makes it; satisfies `observe.ports.ForgeReader`. It writes nothing, follows no redirect
and sends a token to the API of the policy only (security.md H22). An answer that tells nothing
(timeout, 5xx, 429, rate limit) is Unreadable, never a verdict.

Endpoints: https://docs.github.com/rest - repositories, branches, commits (compare), rules, pulls.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

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
from upgraderun_protocol.ids import CommitId
from upgraderun_protocol.limits import MIB
from upgraderun_protocol.slugs import BRANCH_PREFIX, read_marker

CALL_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 5.0
ANSWER_BYTES_MAX: Final = 16 * MIB
PAGE: Final = 100
PAGES_MAX: Final = 20
"""The newest 2,000 pull requests are searched for earlier proposals."""

_VERSION: Final = "2022-11-28"
_PROBE: Final = f"{BRANCH_PREFIX}probe"


@dataclass(frozen=True, slots=True)
class _Answer:
    """A whole answer: status and decoded body."""

    status: int
    body: Any

    @property
    def message(self) -> str:
        text = self.body.get("message") if isinstance(self.body, Mapping) else None
        return str(text or f"HTTP {self.status}")[:300]


class GitHubReader:
    """Async context manager around one connection pool; `tls` trusts the forge's authority."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=16),
            headers={
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": _VERSION,
                "User-Agent": "upgraderun-operator",
            },
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=CONNECT_SECONDS),
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
        found = await self._get(target, "")
        if isinstance(found, Unreadable | DestinationRefused):
            return found
        if found is None:
            return DestinationView(exists=False)
        name = branch or str(found.get("default_branch", ""))
        view = DestinationView(
            exists=True,
            archived=bool(found.get("archived")),
            branch=name,
            may_push=_may_push(found),
        )
        return await self._look_closer(target, view, commit)

    async def remote(
        self, target: ForgeTarget, branch: str, marker: tuple[str, str]
    ) -> RemoteView | DestinationRefused | Unreadable:
        """Look at our branch and its pull requests in any state."""
        head = await self._head(target, branch)
        if isinstance(head, Unreadable | DestinationRefused):
            return head
        owner = target.repository.partition("/")[0]
        pulls = await self._pulls(target, {"head": f"{owner}:{branch}"})
        if isinstance(pulls, Unreadable | DestinationRefused):
            return pulls
        return RemoteView(head, tuple(_found_pull(pull, marker) for pull in pulls))

    async def _look_closer(
        self, target: ForgeTarget, view: DestinationView, commit: CommitId | None
    ) -> DestinationView | DestinationRefused | Unreadable:
        """Ask for the branch, the commit on it, the rules of our prefix, earlier proposals."""
        head = await self._head(target, view.branch)
        if isinstance(head, Unreadable | DestinationRefused):
            return head
        on_branch = await self._is_on_branch(target, commit, head)
        if isinstance(on_branch, Unreadable | DestinationRefused):
            return on_branch
        forbidden = await self._creation_forbidden(target)
        if isinstance(forbidden, Unreadable | DestinationRefused):
            return forbidden
        pulls = await self._pulls(target, {})
        if isinstance(pulls, Unreadable | DestinationRefused):
            return pulls
        return DestinationView(
            exists=True,
            archived=view.archived,
            branch=view.branch,
            head=head,
            commit_on_branch=on_branch,
            may_push=view.may_push,
            creation_forbidden=forbidden or None,
            earlier=_earlier(pulls),
        )

    async def _head(
        self, target: ForgeTarget, branch: str
    ) -> CommitId | DestinationRefused | Unreadable | None:
        found = await self._get(target, f"/branches/{quote(branch, safe='/')}")
        if found is None or isinstance(found, Unreadable | DestinationRefused):
            return found
        return CommitId(str(found["commit"]["sha"]))

    async def _is_on_branch(
        self, target: ForgeTarget, commit: CommitId | None, head: CommitId | None
    ) -> bool | DestinationRefused | Unreadable | None:
        """A commit is on a branch if the branch's head is ahead of it or is it."""
        if commit is None or head is None or commit == head:
            return None if commit is None else commit == head
        found = await self._get(target, f"/compare/{commit}...{head}")
        if isinstance(found, Unreadable | DestinationRefused):
            return found
        return found is not None and found.get("status") in {"ahead", "identical"}

    async def _creation_forbidden(
        self, target: ForgeTarget
    ) -> str | DestinationRefused | Unreadable:
        """Name the rule that forbids creating our branches; empty if there is none.

        An older forge without rulesets answers 404, which is none.
        """
        found = await self._get(target, f"/rules/branches/{quote(_PROBE, safe='/')}")
        if found is None or isinstance(found, Unreadable | DestinationRefused):
            return found or ""
        types = {str(rule.get("type")) for rule in found}
        return "creation" if "creation" in types else ""

    async def _pulls(
        self, target: ForgeTarget, query: Mapping[str, str]
    ) -> list[Mapping[str, Any]] | DestinationRefused | Unreadable:
        """List pull requests in any state, newest first, those of our branches only."""
        ours: list[Mapping[str, Any]] = []
        for page in range(1, PAGES_MAX + 1):
            words = {"state": "all", "sort": "created", "direction": "desc", **query}
            text = urlencode({**words, "per_page": str(PAGE), "page": str(page)})
            found = await self._get(target, f"/pulls?{text}")
            if isinstance(found, Unreadable | DestinationRefused):
                return found
            rows = found or []
            ours += [row for row in rows if str(row["head"]["ref"]).startswith(BRANCH_PREFIX)]
            if len(rows) < PAGE:
                break
        return ours

    async def _get(self, target: ForgeTarget, rest: str) -> Any:
        """Ask once. None: 404. DestinationRefused: 401, 403 or a redirect. Else Unreadable."""
        path = f"/repos/{target.repository}{rest}"
        answer = await self._send(target, path)
        if isinstance(answer, Unreadable):
            return answer
        match answer.status:
            case HTTPStatus.OK:
                return answer.body
            case HTTPStatus.NOT_FOUND:
                return None
            case HTTPStatus.MOVED_PERMANENTLY | HTTPStatus.TEMPORARY_REDIRECT:
                return DestinationRefused(
                    f"the forge says that {target.repository} was renamed: use its present name"
                )
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN if not _is_rate_limit(answer):
                return DestinationRefused(
                    f"the forge refuses the token for {target.repository}: {answer.message}; "
                    "check the Secret that the policy names"
                )
            case _:
                return Unreadable("forge", f"GET {path.partition('?')[0]}: {answer.message}")

    async def _send(self, target: ForgeTarget, path: str) -> _Answer | Unreadable:
        assert self._session is not None, "GitHubReader is used inside `async with` only"
        headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
        url = target.api_url.rstrip("/") + path
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
                data = await answer.content.read(ANSWER_BYTES_MAX + 1)
                while len(data) <= ANSWER_BYTES_MAX and not answer.content.at_eof():
                    data += await answer.content.read(ANSWER_BYTES_MAX + 1 - len(data))
                if len(data) > ANSWER_BYTES_MAX:
                    return Unreadable("forge", f"an answer of more than {ANSWER_BYTES_MAX} bytes")
                return _Answer(answer.status, json.loads(data or b"null"))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Unreadable("forge", f"{type(error).__name__} from {target.api_url}")


def _is_rate_limit(answer: _Answer) -> bool:
    """403 is also the answer of rate limits, which are waits and no verdict.

    https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    return answer.status == HTTPStatus.FORBIDDEN and "rate limit" in answer.message.lower()


def _may_push(repository: Mapping[str, Any]) -> bool | None:
    permissions = repository.get("permissions")
    return bool(permissions.get("push")) if isinstance(permissions, Mapping) else None


def _found_pull(pull: Mapping[str, Any], marker: tuple[str, str]) -> FoundPull:
    read = read_marker(str(pull.get("body") or ""))
    state = "merged" if pull.get("merged_at") else str(pull.get("state"))
    return FoundPull(
        number=int(pull["number"]),
        state=state,
        head=CommitId(str(pull["head"]["sha"])),
        ours=read is not None and read[:2] == marker,
    )


def _earlier(pulls: list[Mapping[str, Any]]) -> EarlierProposals:
    """Sort targets of our pull requests: open ones are proposed, closed unmerged ones declined."""
    proposed: set[str] = set()
    declined: set[str] = set()
    for pull in pulls:
        read = read_marker(str(pull.get("body") or ""))
        if read is None or pull.get("merged_at"):
            continue
        target = read[2].partition(":")[2]
        (proposed if pull.get("state") == "open" else declined).add(target)
    return EarlierProposals(tuple(sorted(proposed)), tuple(sorted(declined)))
