"""The four CustomResourceDefinitions, computed from the models (DESIGN §3).

Caller: `hack/generate.py`, which writes `crds/`, and tests. Rules sit at the root of a kind, where
`oldSelf` is whole; no rule iterates over journal entries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_operator.model.approval import UpgradeApprovalSpec
from upgraderun_operator.model.names import (
    APPROVAL_KIND,
    APPROVAL_PLURAL,
    GROUP,
    POLICY_KIND,
    POLICY_PLURAL,
    REPORT_KIND,
    REPORT_PLURAL,
    RUN_KIND,
    RUN_PLURAL,
    VERSION,
)
from upgraderun_operator.model.policy_spec import UpgradePolicySpec
from upgraderun_operator.model.report import ReportContent
from upgraderun_operator.model.rules import (
    APPROVAL_RULES,
    POLICY_RULES,
    REPORT_RULES,
    RUN_RULES,
    Rule,
)
from upgraderun_operator.model.run_spec import UpgradeRunSpec
from upgraderun_operator.model.run_status import UpgradeRunStatus
from upgraderun_operator.model.schema import structural


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column; `wide` ones show with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def to_json(self) -> dict[str, Any]:
        """Write it as the CRD has it."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": 1} if self.wide else column


@dataclass(frozen=True, slots=True)
class KindText:
    """Names of a kind and what `kubectl explain` says of it."""

    kind: str
    plural: str
    short_names: tuple[str, ...]
    description: str


_RUN_COLUMNS: Final = (
    Column("Phase", ".status.phase"),
    Column("Dependency", ".status.target.name"),
    Column("From", ".status.target.from"),
    Column("To", ".status.target.to"),
    Column("Approved", '.status.conditions[?(@.type=="Approved")].status'),
    Column("PR", ".status.publication.pullRequest.number", "integer"),
    Column("Age", ".metadata.creationTimestamp", "date"),
    Column("Repository", ".spec.repository.url", wide=True),
    Column("Attempt", ".status.attempt.number", "integer", wide=True),
    Column("Outcome", ".status.outcome", wide=True),
    Column("Duration", ".status.durationSeconds", "integer", wide=True),
)
_UNSEEN: Final = {"observedGeneration": 0}
"""Status of a run that no operator has seen: else kstatus takes a new run for a settled one."""

_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


_API_VERSION_TEXT: Final = "Group and version of this kind."
_KIND_TEXT: Final = "Name of this kind."


def _definition(
    text: KindText,
    properties: Mapping[str, Any],
    required: Sequence[str],
    rules: Sequence[Rule],
    columns: Sequence[Column],
    selectable: Sequence[str] = (),
) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "description": text.description,
        "properties": {
            "apiVersion": {"type": "string", "description": _API_VERSION_TEXT},
            "kind": {"type": "string", "description": _KIND_TEXT},
            "metadata": {"type": "object"},
            **properties,
        },
    }
    if required:
        schema["required"] = list(required)
    schema["x-kubernetes-validations"] = [rule.to_json() for rule in rules]
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [column.to_json() for column in columns],
    }
    if "status" in properties:
        version["subresources"] = {"status": {}}
    if selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{text.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "upgraderun-operator"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": text.kind,
                "listKind": f"{text.kind}List",
                "plural": text.plural,
                "singular": text.kind.lower(),
                "shortNames": list(text.short_names),
                "categories": ["upgrades"],
            },
            "versions": [version],
        },
    }


def run_definition() -> dict[str, Any]:
    """CRD of UpgradeRun."""
    return _definition(
        KindText(
            RUN_KIND,
            RUN_PLURAL,
            ("run", "runs"),
            "One upgrade of one dependency in one repository.",
        ),
        {
            "spec": structural(UpgradeRunSpec),
            "status": {**structural(UpgradeRunStatus), "default": _UNSEEN},
        },
        ("spec",),
        RUN_RULES,
        _RUN_COLUMNS,
        (".status.finished", ".status.conflict.kind"),
    )


def policy_definition() -> dict[str, Any]:
    """CRD of UpgradePolicy."""
    return _definition(
        KindText(
            POLICY_KIND,
            POLICY_PLURAL,
            ("upp",),
            "What runs of this namespace may do, and with what. Grant writing it like creating "
            "pods: it can mount any Secret of its namespace.",
        ),
        {"spec": structural(UpgradePolicySpec)},
        ("spec",),
        POLICY_RULES,
        (
            Column("Sandbox", ".spec.sandbox.type"),
            Column("Cooldown", ".spec.selection.minimumReleaseAgeSeconds", "integer"),
            Column("Self-approval", ".spec.approvals.selfApproval"),
            _AGE,
        ),
    )


def approval_definition() -> dict[str, Any]:
    """CRD of UpgradeApproval."""
    return _definition(
        KindText(
            APPROVAL_KIND,
            APPROVAL_PLURAL,
            ("upa",),
            "One answer to one digest of one run.",
        ),
        {"spec": structural(UpgradeApprovalSpec)},
        ("spec",),
        APPROVAL_RULES,
        (
            Column("Run", ".spec.runRef.name"),
            Column("Decision", ".spec.decision"),
            Column("Approver", ".spec.approver"),
            _AGE,
            Column("Digest", ".spec.digest", wide=True),
        ),
        (".spec.runRef.uid",),
    )


def report_definition() -> dict[str, Any]:
    """CRD of UpgradeReport."""
    content = structural(ReportContent)
    return _definition(
        KindText(
            REPORT_KIND,
            REPORT_PLURAL,
            ("upr",),
            "What people read of a run; same name as the run, written by the operator.",
        ),
        content["properties"],
        content["required"],
        REPORT_RULES,
        (
            Column("Outcome", ".outcome"),
            Column("Dependency", ".target.name"),
            Column("From", ".target.from"),
            Column("To", ".target.to"),
            _AGE,
        ),
    )


def definitions() -> dict[str, dict[str, Any]]:
    """All CRDs by plural name."""
    return {
        RUN_PLURAL: run_definition(),
        POLICY_PLURAL: policy_definition(),
        APPROVAL_PLURAL: approval_definition(),
        REPORT_PLURAL: report_definition(),
    }
