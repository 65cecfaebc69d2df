"""Whole objects of our kinds: from the API server's JSON to frozen values and back.

Callers: `observe`, the engine, the API. Nothing here talks to anybody. Unknown fields are
tolerated (another version of the CRD may know more); `strict` is for manifests that we ship.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from upgraderun_operator.model.approval import UpgradeApprovalSpec
from upgraderun_operator.model.base import ApiModel
from upgraderun_operator.model.names import (
    API_VERSION,
    APPROVAL_KIND,
    FINALIZER,
    POLICY_KIND,
    REPORT_KIND,
    REQUESTED_BY,
    REQUESTER,
    RUN_KIND,
)
from upgraderun_operator.model.policy_spec import UpgradePolicySpec
from upgraderun_operator.model.report import ReportContent
from upgraderun_operator.model.run_spec import UpgradeRunSpec
from upgraderun_operator.model.run_status import UpgradeRunStatus
from upgraderun_protocol.ids import ResourceVersion, RunUid


class NotReadableError(ValueError):
    """An object isn't of the kind it was read as; the message names the field and the problem."""


class OwnerReference(ApiModel):
    """Whose child an object is."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(ApiModel):
    """The part of an object's metadata that is used here."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def is_being_deleted(self) -> bool:
        """Whether somebody deleted the object; finalizers may still hold it."""
        return self.deletion_timestamp is not None


class UpgradeRun(ApiModel):
    """One upgrade of one dependency in one repository."""

    metadata: Metadata
    spec: UpgradeRunSpec
    status: UpgradeRunStatus = UpgradeRunStatus()

    @property
    def uid(self) -> RunUid:
        """The identity of the run; its name may be used again."""
        return RunUid(self.metadata.uid)

    @property
    def resource_version(self) -> ResourceVersion:
        """Version that was read."""
        return ResourceVersion(self.metadata.resource_version)

    @property
    def requester(self) -> str | None:
        """User who asked for the run, as admission checked it; None if unknown."""
        return self.metadata.annotations.get(REQUESTED_BY) or None

    @property
    def has_finalizer(self) -> bool:
        """Whether our finalizer holds the object."""
        return FINALIZER in self.metadata.finalizers


class UpgradePolicy(ApiModel):
    """What runs of a namespace may do, and with what."""

    metadata: Metadata
    spec: UpgradePolicySpec


class UpgradeApproval(ApiModel):
    """One answer to one digest of one run."""

    metadata: Metadata
    spec: UpgradeApprovalSpec

    @property
    def claimed_requester(self) -> str | None:
        """Whom the approver believes to be the requester; a claim (security.md §11, Honesty)."""
        return self.metadata.annotations.get(REQUESTER) or None


class UpgradeReport(ReportContent):
    """What people read of a run."""

    metadata: Annotated[Metadata, Field(exclude=True)]


_Kind = TypeVar("_Kind", UpgradeRun, UpgradePolicy, UpgradeApproval, UpgradeReport)


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}"


def _parse(model: type[_Kind], obj: Mapping[str, Any]) -> _Kind:
    try:
        return model.model_validate(obj)
    except ValidationError as error:
        raise NotReadableError(_explain(error)) from error


def parse_run(obj: Mapping[str, Any]) -> UpgradeRun:
    """Read an UpgradeRun. Raises NotReadableError."""
    return _parse(UpgradeRun, obj)


def parse_policy(obj: Mapping[str, Any]) -> UpgradePolicy:
    """Read an UpgradePolicy. Raises NotReadableError."""
    return _parse(UpgradePolicy, obj)


def parse_approval(obj: Mapping[str, Any]) -> UpgradeApproval:
    """Read an UpgradeApproval. Raises NotReadableError."""
    return _parse(UpgradeApproval, obj)


def parse_report(obj: Mapping[str, Any]) -> UpgradeReport:
    """Read an UpgradeReport. Raises NotReadableError."""
    return _parse(UpgradeReport, obj)


MODELS: Mapping[str, type[ApiModel]] = {
    RUN_KIND: UpgradeRun,
    POLICY_KIND: UpgradePolicy,
    APPROVAL_KIND: UpgradeApproval,
    REPORT_KIND: UpgradeReport,
}
"""Model of each kind."""


def strict(obj: Mapping[str, Any]) -> ApiModel:
    """Read a manifest of ours and refuse what the kind doesn't know. Raises NotReadableError."""
    kind = obj.get("kind")
    model = MODELS.get(str(kind))
    if obj.get("apiVersion") != API_VERSION or model is None:
        raise NotReadableError(f"{obj.get('apiVersion')} {kind} is no kind of {API_VERSION}")
    body = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}
    try:
        return model.model_validate(body, extra="forbid")
    except ValidationError as error:
        raise NotReadableError(_explain(error)) from error
