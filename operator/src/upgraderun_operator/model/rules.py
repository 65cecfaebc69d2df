"""CEL rules of the kinds, with messages that say what, where and what to do next (DESIGN §3).

Caller: `crds`. Rules stand at the root of a kind; each is constant in cost but for the size of the
compared spec. What needs the caller's identity is an admission policy of the chart instead.
"""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `message_expression` gives a better text where values help."""

    rule: str
    message: str
    message_expression: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Write it as the CRD has it."""
        value = {"rule": self.rule, "message": self.message}
        if self.message_expression is not None:
            value["messageExpression"] = self.message_expression
        return value


_NAME: Final = Rule(
    "self.metadata.name.size() <= 63",
    "metadata.name: at most 63 characters, because pods and labels are named after it; choose a "
    "shorter name",
)

IMMUTABLE_RUN_FIELDS: Final = (
    "repository",
    "ecosystem",
    "upgrade",
    "mode",
    "limits",
    "publication",
    "policyRef",
    "activeDeadlineSeconds",
)
"""Fields of a run's spec that never change; the others are suspend and cancel."""


def _is_equal(field: str) -> str:
    """Compare one field, present or not. Optional syntax would have no bound on its cost."""
    path = f"self.spec.{field}"
    old = f"oldSelf.spec.{field}"
    return f"(has({path}) == has({old}) && (!has({path}) || {path} == {old}))"


def _changed_field() -> str:
    """Build the expression that names the first changed field."""
    expression = "'a field'"
    for field in reversed(IMMUTABLE_RUN_FIELDS):
        expression = f"!{_is_equal(field)} ? '{field}' : {expression}"
    return expression


def _never_falls(guard: str, path: str, what: str) -> Rule:
    """Build the rule of a number in status that may rise only; `guard` is the optional part."""
    return Rule(
        f"!has(oldSelf.status) || !has(oldSelf.{guard}) || "
        f"(has(self.status) && has(self.{guard}) && self.{path} >= oldSelf.{path})",
        f"{path}: {what} never falls and never vanishes; read the run again and decide anew",
    )


RUN_RULES: Final = (
    _NAME,
    Rule(
        "!has(self.spec.upgrade.version) || has(self.spec.upgrade.dependency)",
        "spec.upgrade.version: a version without a dependency says nothing; set "
        "spec.upgrade.dependency too",
    ),
    Rule(
        " && ".join(_is_equal(field) for field in IMMUTABLE_RUN_FIELDS),
        "spec: only suspend and cancel can change; create a new UpgradeRun for another wish",
        f"'spec.' + ({_changed_field()}) + ' can\\'t change once the run is created: only suspend "
        "and cancel can; create a new UpgradeRun for another wish'",
    ),
    Rule(
        "!has(oldSelf.status) || has(self.status)",
        "status: it never vanishes, it holds the journal; read the run again",
    ),
    _never_falls("status.journal", "status.journal.head.seq", "the end of the journal"),
    _never_falls("status.journal", "status.journal.head.epoch", "the epoch of the journal"),
    _never_falls("status.leaderEpoch", "status.leaderEpoch", "the leader's epoch"),
)

POLICY_RULES: Final = (
    Rule(
        "self.spec.scope.softFiles <= self.spec.scope.hardFiles && "
        "self.spec.scope.softLines <= self.spec.scope.hardLines",
        "spec.scope: softFiles and softLines are at most hardFiles and hardLines; raise the hard "
        "bounds or lower the soft ones",
    ),
    Rule(
        "!has(self.spec.credentials.app) || "
        "(!has(self.spec.credentials.clone) && !has(self.spec.credentials.push))",
        "spec.credentials: app serves clone and push; remove clone and push, or remove app",
    ),
    Rule(
        "!self.spec.forge.apiURL.matches('^https?://(www[.])?github[.]com(/|$)')",
        "spec.forge.apiURL: the API of github.com is https://api.github.com; a GitHub Enterprise "
        "Server's is https://HOST/api/v3",
    ),
)

APPROVAL_RULES: Final = (
    Rule(
        "self.spec == oldSelf.spec",
        "spec: an approval never changes; delete it to take it back, then create another one",
    ),
)

REPORT_RULES: Final = (_NAME,)
