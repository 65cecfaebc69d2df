"""Texts that leave: title and body of proposal, commit and pull request (upgrade-run.md §10, §12).

Callers: `prepare_proposal` (title and body of the proposal, which is also the commit's), the
publisher (body of the pull request). Pure. Whatever isn't ours passes `forge.neutral`, and all of
it passes the redactor before and after (security.md H33).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from upgraderun_protocol.ids import CommitId
from upgraderun_protocol.limits import BODY_MAX, SUMMARY_MAX, TITLE_MAX
from upgraderun_protocol.redact import Redactor, SafeText
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.neutral import code_span, fenced, one_line, quoted, visible

_ITEM: Final = limits.ITEM_CHARACTERS_MAX


@dataclass(frozen=True, slots=True)
class FileFact:
    """One changed file with its lines."""

    path: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class CheckFact:
    """One check before and after, in words such as `passed (851)`."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ProposalFacts:
    """Everything a proposal's body says. Strings from outside are made harmless here, not before.

    `isolation` is what the sandbox reported; "none" becomes a warning. `unexercised` names ranges
    that people approved although no test runs them, `approvers` those people.
    """

    ecosystem: str
    name: str
    from_version: str
    to_version: str
    change_class: str
    age: str
    mode: str
    config_hash: str
    isolation: str
    constraint_edit: str | None = None
    closure: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    files: tuple[FileFact, ...] = ()
    checks: tuple[CheckFact, ...] = ()
    coverage: str | None = None
    notes: tuple[str, ...] = ()
    images: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    summary: str | None = None
    unexercised: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()


def proposal_title(
    name: str, from_version: str, to_version: str, redactor: Redactor, wished: str | None = None
) -> SafeText:
    """`Upgrade <name> from <a> to <b>`, or the agent's title made harmless; 1..120 characters."""
    writer = _Writer(redactor)
    title = writer.line(wished, TITLE_MAX) if wished else ""
    default = f"Upgrade {name} from {from_version} to {to_version}"
    return redactor.redact(title or writer.line(default, TITLE_MAX), TITLE_MAX)


def proposal_body(facts: ProposalFacts, redactor: Redactor) -> SafeText:
    """The proposal's body, without the marker; at most 62,000 characters."""
    writer = _Writer(redactor)
    sections = (
        _warning(facts, writer),
        _summary(facts, writer),
        _target(facts, writer),
        _list("Changed in the lock", facts.closure, writer),
        _list("No longer in the lock", facts.departures, writer),
        _list("Held at the nearest version", facts.held, writer),
        _files(facts, writer),
        _checks(facts, writer),
        _list("Notes", facts.notes, writer),
        _evidence(facts, writer),
    )
    text = "\n\n".join(section for section in sections if section)
    return redactor.redact(text, limits.PROPOSAL_BODY_MAX)


def pull_request_body(
    body: str, *, base: CommitId, base_branch: str, branch_head: CommitId, marker: str
) -> str:
    """Proposal body, "validated against base", a sentence if the base moved, the marker last.

    `body` is the record's, made by `proposal_body`; `marker` is `slugs.marker`'s line.
    """
    branch = code_span(base_branch, _ITEM)
    lines = [f"Validated against base {base} of {branch}."]
    if branch_head != base:
        lines.append(
            f"Since then {branch} has moved to {branch_head}; nothing was rebased or run again."
        )
    text = "\n\n".join((body.rstrip(), "\n".join(lines), marker))
    assert len(text) <= BODY_MAX, "a proposal's body leaves room for these lines"
    return text


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes visible, redacts, makes harmless: any other order could break a secret's spelling."""

    redactor: Redactor

    def clean(self, text: str, characters_max: int) -> SafeText:
        return self.redactor.redact(visible(text), characters_max)

    def code(self, text: str, characters_max: int = _ITEM) -> str:
        return code_span(self.clean(text, characters_max), characters_max)

    def line(self, text: str, characters_max: int = _ITEM) -> str:
        return one_line(self.clean(text, characters_max), characters_max)

    def quote(self, text: str, characters_max: int) -> str:
        return quoted(self.clean(text, characters_max), characters_max)

    def fence(self, text: str, characters_max: int) -> str:
        return fenced(self.clean(text, characters_max), characters_max)


def _warning(facts: ProposalFacts, writer: _Writer) -> str:
    if not facts.unexercised:
        return ""
    names = ", ".join(writer.code(name) for name in facts.approvers)
    ranges = "\n".join(facts.unexercised[: limits.LIST_ITEMS_MAX])
    return (
        "**Warning: parts of this repair are run by no test.** "
        f"Approved all the same by {names}.\n\n{writer.fence(ranges, 4_000)}"
    )


def _summary(facts: ProposalFacts, writer: _Writer) -> str:
    if not facts.summary:
        return ""
    return f"## In the agent's words\n\n{writer.quote(facts.summary, SUMMARY_MAX)}"


def _target(facts: ProposalFacts, writer: _Writer) -> str:
    rows = [
        ("Dependency", writer.code(facts.name)),
        ("Version", f"{writer.code(facts.from_version)} → {writer.code(facts.to_version)}"),
        ("Class", writer.line(facts.change_class)),
        ("Published", writer.line(facts.age)),
    ]
    if facts.constraint_edit:
        rows.append(("Constraint", writer.code(facts.constraint_edit)))
    return "## Upgrade\n\n" + "\n".join(f"- {key}: {value}" for key, value in rows)


def _list(heading: str, items: tuple[str, ...], writer: _Writer) -> str:
    if not items:
        return ""
    return f"## {heading}\n\n" + _bullets(writer.code(item) for item in items)


def _bullets(items: Iterable[str]) -> str:
    rows = [f"- {item}" for item in items]
    more = len(rows) - limits.LIST_ITEMS_MAX
    kept = rows[: limits.LIST_ITEMS_MAX]
    return "\n".join([*kept, f"- and {more} more"] if more > 0 else kept)


def _files(facts: ProposalFacts, writer: _Writer) -> str:
    if not facts.files:
        return ""
    rows = (f"{writer.code(f.path)} +{f.added} -{f.removed}" for f in facts.files)
    return "## Files\n\n" + _bullets(rows)


def _checks(facts: ProposalFacts, writer: _Writer) -> str:
    if not facts.checks:
        return ""
    rows = (
        f"{writer.code(check.name)}: {writer.line(check.before)} before, "
        f"{writer.line(check.after)} after"
        for check in facts.checks
    )
    coverage = f"\n\n{writer.line(facts.coverage)}" if facts.coverage else ""
    return "## Checks\n\n" + _bullets(rows) + coverage


def _evidence(facts: ProposalFacts, writer: _Writer) -> str:
    model = f", model {writer.code(facts.model)}" if facts.model else ""
    rows = [f"mode {writer.code(facts.mode)}{model}"]
    if facts.isolation == "none":
        rows.append("nothing was isolated: commands ran beside the runner")
    else:
        rows.append(f"isolation {writer.code(facts.isolation)}")
    rows.append(f"configuration {writer.code(facts.config_hash)}")
    rows += [f"image {writer.code(k)} {writer.code(v)}" for k, v in sorted(facts.images.items())]
    return "## Evidence\n\n" + _bullets(rows)
