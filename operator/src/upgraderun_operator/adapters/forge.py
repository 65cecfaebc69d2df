"""Reads a GitHub-compatible forge over aiohttp: destination, earlier proposals, our branch.

Read only, one repository of the policy's API host; what refusals mean is `forge_http`'s. A rule that
the asking account may bypass forbids nothing: the runbook recommends exactly such a rule.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from upgraderun_operator.adapters.forge_http import Caller, ForgeCalls, Reply, Stop
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
from upgraderun_protocol.slugs import BRANCH_PREFIX, read_marker
from upgraderun_protocol.urls import is_repository_path

PAGE: Final = 100
PAGES_MAX: Final = 10
PROBE_BRANCH: Final = f"{BRANCH_PREFIX}probe"
FORBIDDING: Final = {
    "creation": "forbids to create branches",
    "required_signatures": "wants signed commits, and this product's aren't",
}
"""Rules that surely refuse the push that creates our branch; others are met by the push itself.

https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/available-rules-for-rulesets
"""
BYPASSED: Final = frozenset({"always", "exempt"})


class GitHubReader:
    """Questions to forges, over calls that somebody else opens and closes."""

    def __init__(self, calls: ForgeCalls) -> None:
        self._calls = calls

    async def destination(
        self, target: ForgeTarget, branch: str | None, commit: CommitId | None
    ) -> DestinationView | DestinationRefused | Unreadable:
        """Look at repository, base branch, rules and earlier proposals (upgrade-run.md §12)."""
        try:
            return await self._destination(target, branch, commit)
        except Stop as stop:
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
        except Stop as stop:
            return stop.reading
        pulls = (
            _found_pull(pull, marker)
            for pull in _items(reply.body)
            if _source(pull) == target.repository.lower()
        )
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
        view = DestinationView(
            exists=True,
            archived=body.get("archived") is True,
            disabled=body.get("disabled") is True,
            branch=name,
            head=head,
            commit_on_branch=on_branch,
        )
        if not target.publishes:
            return view
        permissions = body.get("permissions")
        may_push = permissions.get("push") if isinstance(permissions, Mapping) else None
        if target.minted:
            may_push = None  # a minted token only reads; what pushes was judged when it was minted
        return replace(
            view,
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
            raise Stop(Unreadable("forge", f"branch {branch[:64]} has no commit id"))
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
        reply = await self._get(target, f"/rules/branches/{quote(PROBE_BRANCH)}?per_page={PAGE}")
        for rule in _items(reply.body):
            words = FORBIDDING.get(str(rule.get("type", "")))
            ruleset = str(rule.get("ruleset_id", "?"))[:32]
            if words is not None and not await self._bypasses(target, ruleset):
                return f"ruleset {ruleset} {words}"
        return None

    async def _bypasses(self, target: ForgeTarget, ruleset: str) -> bool:
        """Whether a ruleset doesn't bind the account that asks; a silent forge binds it.

        https://docs.github.com/rest/repos/rules#get-a-repository-ruleset
        """
        if not ruleset.isdigit():
            return False
        reply = await self._get(target, f"/rulesets/{ruleset}?includes_parents=true")
        body = reply.body if isinstance(reply.body, Mapping) else {}
        return reply.status == HTTPStatus.OK and body.get("current_user_can_bypass") in BYPASSED

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

    async def _get(self, target: ForgeTarget, path: str) -> Reply:
        """One read of the repository; raises Stop with the reading that ends the look."""
        caller = Caller(
            target.api_url,
            target.account or target.repository,
            f"Bearer {target.token}" if target.token else None,
        )
        try:
            return await self._calls.call(caller, "GET", f"/repos/{quote(target.repository)}{path}")
        except Stop as stop:
            if not stop.moved_to:
                raise
            raise Stop(await self._moved(caller, stop)) from stop

    async def _moved(self, caller: Caller, stop: Stop) -> DestinationRefused | Unreadable:
        """Name where a repository went: asked by its number, from the host of the policy (H22)."""
        reply = await self._calls.call(caller, "GET", f"/repositories/{stop.moved_to}")
        name = str(reply.body.get("full_name", "")) if isinstance(reply.body, Mapping) else ""
        known = name if is_repository_path(name) else "a name that this token may not see"
        return DestinationRefused(
            f"the repository is called {known} now (the forge redirects to number "
            f"{stop.moved_to}); name that in spec.repository.url and in the policy"
        )


def _items(body: Any) -> list[Mapping[str, Any]]:
    return [item for item in body if isinstance(item, Mapping)] if isinstance(body, list) else []


def _target(pull: Mapping[str, Any], repository: str) -> str | None:
    """Target `name@version` of a pull request that is this product's own, from this repository."""
    head = pull.get("head") or {}
    if not str(head.get("ref", "")).startswith(BRANCH_PREFIX):
        return None
    if _source(pull) != repository.lower():
        return None
    marker = read_marker(str(pull.get("body") or ""))
    return None if marker is None else marker[2].partition(":")[2]


def _source(pull: Mapping[str, Any]) -> str:
    """Repository that a pull request comes from; a fork may have branches with our names."""
    head = pull.get("head") or {}
    return str((head.get("repo") or {}).get("full_name", "")).lower()


def _found_pull(pull: Mapping[str, Any], ours: tuple[str, str]) -> FoundPull | None:
    head = str((pull.get("head") or {}).get("sha", ""))
    number = pull.get("number")
    if not isinstance(number, int) or not is_git_id(head):
        return None
    marker = read_marker(str(pull.get("body") or ""))
    state = "merged" if pull.get("merged_at") else str(pull.get("state", ""))[:16]
    return FoundPull(number, state, CommitId(head), marker is not None and marker[:2] == ours)
