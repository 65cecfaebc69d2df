"""Protected paths (upgrade-run.md §9.4, security.md H31). Pure.

Callers: policy and tools (writes), readiness and publisher (final diff, the pair exempt).
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Final

from upgraderun_runner.workspace.paths import folded

HOUSE_GLOBS: Final = (
    # CI
    ".github/**", ".gitlab-ci.yml", ".gitlab/**", ".circleci/**", ".buildkite/**", ".tekton/**",
    ".woodpecker*", ".woodpecker/**", ".drone.yml", ".travis.yml", "azure-pipelines.yml",
    "bitbucket-pipelines.yml", "Jenkinsfile",
    # git and hooks
    ".gitignore", ".gitattributes", ".gitmodules", ".githooks/**", ".husky/**",
    ".pre-commit-config.yaml", "lefthook.yml",
    # rules of the house
    "**/CODEOWNERS", "SECURITY.md", "LICENSE*", "renovate.json*", ".renovaterc*", ".upgraderun/**",
    # agent files
    "**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md", ".claude/**", ".cursor/**", ".cursorrules",
    ".windsurf/**", ".aider*", ".mcp.json", ".vscode/**", ".idea/**", ".devcontainer/**",
    # registry configuration
    "**/.npmrc", ".yarnrc*", "**/pip.conf", ".pypirc", "uv.toml", ".netrc",
)  # fmt: skip
"""Ours, for every ecosystem, as upgrade-run.md §9.4 lists them."""


class ProtectedPaths:
    """Globs that no proposal may touch.

    `globs` are ours and the ecosystem's; a policy adds some and releases ours by exact text.
    `directory` is the project's directory: each glob is also tried beneath it.
    """

    def __init__(
        self,
        globs: Iterable[str],
        *,
        add: Iterable[str] = (),
        release: Iterable[str] = (),
        directory: str = "",
    ) -> None:
        kept = set(globs) - set(release)
        self._globs = tuple(sorted(kept | set(add)))
        self._patterns = tuple((glob, tuple(folded(glob).split("/"))) for glob in self._globs)
        self._beneath = f"{folded(directory.strip('/'))}/" if directory.strip("/") else ""

    @property
    def globs(self) -> tuple[str, ...]:
        """The globs in force, sorted: what `get_repository_profile` shows and configHash covers."""
        return self._globs

    def match(self, path: str) -> str | None:
        """The first glob that protects a path, or None.

        After NFC and case folding; a leading `**/` also matches at the root, a trailing `/**`
        everything below, `*` within one segment.
        """
        whole = folded(path)
        forms = [tuple(whole.split("/"))]
        if self._beneath and whole.startswith(self._beneath):
            forms.append(tuple(whole.removeprefix(self._beneath).split("/")))
        for glob, pattern in self._patterns:
            if any(_matches(pattern, form) for form in forms):
                return glob
        return None


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Match segment by segment; `reachable` holds the path positions after each pattern segment."""
    reachable = {0}
    for number, segment in enumerate(pattern):
        if segment == "**":
            least = 1 if number == len(pattern) - 1 else 0  # a trailing one means "below"
            low = min(reachable, default=len(path) + 1) + least
            reachable = set(range(low, len(path) + 1))
        else:
            matcher = _segment(segment)
            reachable = {i + 1 for i in reachable if i < len(path) and matcher.match(path[i])}
        if not reachable:
            return False
    return len(path) in reachable


@lru_cache(maxsize=1024)
def _segment(glob: str) -> "re.Pattern[str]":
    return re.compile(translate(glob))
