"""Names of the repositories of `tests/pods`: the operator may read their Secrets by exact name only."""

from typing import Final

IN_PODS: Final = {
    "moved-package-codemod": "Rules",
    "moved-package": "Scripted",
    "soft-scope": "Scripted",
    "closure-regression": "Scripted",
    "unexercised-asked": "Scripted",
    "protected-change": "Scripted",
    "injected": "Rules",
    "cooldown-young-transitive": "Rules",
    "dynamic-version": "Rules",
    "no-tests": "Rules",
    "registry-down-apply": "Rules",
    "newer-toolchain": "Rules",
    "unsupported-workspace": "Rules",
}
"""Rows of the scenario table and the mode in which each runs in pods."""
NEWER_PYTHON: Final = "newer-python"
STORM: Final = tuple(f"storm-{number}" for number in range(10))
SCENES: Final = (*IN_PODS, NEWER_PYTHON, *STORM)
