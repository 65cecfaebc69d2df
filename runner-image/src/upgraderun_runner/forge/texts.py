"""Texts that leave (security.md §8, upgrade-run.md §10): title, body, marker, neutralising. Pure.

Callers: `prepare_proposal` (title and body of the proposal), the publisher (body of the pull
request). Whatever isn't ours passes `neutralise` or `code_span` or `fenced`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId


@dataclass(frozen=True, slots=True)
class ProposalFacts:
    """Everything a proposal's body says. Strings from outside are neutralised here, not before."""

    ecosystem: str
    name: str
    from_version: str
    to_version: str
    change_class: str
    age: str
    constraint_edit: str | None
    closure: tuple[str, ...]
    departures: tuple[str, ...]
    files: tuple[tuple[str, int, int], ...]
    checks: tuple[tuple[str, str, str], ...]
    coverage: str | None
    notes: tuple[str, ...]
    mode: str
    model: str | None
    config_hash: str
    images: Mapping[str, str]
    isolated: bool
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """The last line of a pull request's body."""

    run_uid: str
    proposal_digest: str
    target: str


def neutralise(text: str, characters_max: int) -> str:
    """Make untrusted text harmless in Markdown: nothing is linked, closed, notified or hidden."""
    raise NotImplementedError


def one_line(text: str, characters_max: int) -> str:
    """The same on one line."""
    raise NotImplementedError


def code_span(text: str, characters_max: int) -> str:
    """Untrusted text as a code span that it can't leave."""
    raise NotImplementedError


def fenced(text: str, characters_max: int) -> str:
    """Untrusted text in a fence longer than any run of backticks in it."""
    raise NotImplementedError


def proposal_title(name: str, from_version: str, to_version: str, wished: str | None = None) -> str:
    """`Upgrade <name> from <a> to <b>`, or the agent's title neutralised; 1..120 characters."""
    raise NotImplementedError


def proposal_body(facts: ProposalFacts) -> str:
    """The proposal's body, also the commit's; at most 60,000 characters, without the marker."""
    raise NotImplementedError


def marker_line(marker: Marker) -> str:
    """`<!-- upgraderun:v1 run=… proposal=… target=… -->`."""
    raise NotImplementedError


def read_marker(body: str) -> Marker | None:
    """The marker of a body's last line, or None."""
    raise NotImplementedError


def pull_request_body(
    body: str, base: CommitId, base_branch: str, branch_head: CommitId, marker: Marker
) -> str:
    """Proposal body, "validated against base", a sentence if the base moved, the marker last."""
    raise NotImplementedError
