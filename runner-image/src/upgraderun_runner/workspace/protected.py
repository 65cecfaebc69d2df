"""Protected paths (upgrade-run.md §9.4, security.md H31). Pure.

Callers: policy and tools (writes), readiness and publisher (final diff, the pair exempt).
"""

from collections.abc import Iterable

HOUSE_GLOBS: tuple[str, ...] = ()
"""Ours, for every ecosystem: CI, git and hook files, rules of the house, agents, registries."""


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
        raise NotImplementedError

    @property
    def globs(self) -> tuple[str, ...]:
        """The globs in force, sorted: what `get_repository_profile` shows and configHash covers."""
        raise NotImplementedError

    def match(self, path: str) -> str | None:
        """The first glob that protects a path, or None. After NFC and case folding; a leading
        `**/` also matches at the root, a trailing `/**` everything below.
        """
        raise NotImplementedError
