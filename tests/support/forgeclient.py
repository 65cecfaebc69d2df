"""The forge's REST API as the contract tests call it: one token, one method per sentence."""

from typing import Any

import httpx

from support.shop import BRANCH, FORGE, REPOSITORY, Clone

REPO = f"/repos/{REPOSITORY}"
PULLS = f"{REPO}/pulls"
WANTED = {"title": "Upgrade tinylib", "head": BRANCH, "base": "main", "body": "marker"}


class Api:
    """The REST API with one token."""

    def __init__(self, clone: Clone, token: str = FORGE) -> None:
        self._url = clone.host.api_url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __call__(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        with httpx.Client(headers=self._headers, trust_env=False, timeout=30) as client:
            return client.request(method, self._url + path, **arguments)

    def create(self, **more: Any) -> httpx.Response:
        """Open our pull request."""
        return self("POST", PULLS, json={**WANTED, **more})

    def listed(self, **query: Any) -> list[dict[str, Any]]:
        """Pull requests from our branch, in all states unless said."""
        parameters = {"head": f"acme:{BRANCH}", "state": "all", **query}
        answer = self("GET", PULLS, params=parameters)
        assert answer.status_code == 200, answer.text
        rows: list[dict[str, Any]] = answer.json()
        return rows
