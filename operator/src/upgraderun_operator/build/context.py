"""What manifests and texts need to know of the installation: fixed for one process.

Callers: `main` makes it once from the settings, everything in `build` and `decide` reads it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """`operator_url`: base of the runner API as pods reach it. `authority`: its CA in PEM form.

    `runner_account`, `publisher_account`: service accounts of the pods, without any binding.
    `allow_inline`: the chart's gate for policies with sandbox Inline (security.md H7).
    """

    operator_namespace: str
    operator_url: str
    authority: str
    runner_account: str
    publisher_account: str
    allow_inline: bool
