"""Names that stand in the cluster: API group, labels, annotations, finalizer. No logic.

Callers: everything that reads or writes Kubernetes objects; the admission policies of the chart
repeat these texts and a test compares them.
"""

from typing import Final

GROUP: Final = "upgraderun.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

RUN_KIND: Final = "UpgradeRun"
POLICY_KIND: Final = "UpgradePolicy"
APPROVAL_KIND: Final = "UpgradeApproval"
REPORT_KIND: Final = "UpgradeReport"

RUN_PLURAL: Final = "upgraderuns"
POLICY_PLURAL: Final = "upgradepolicies"
APPROVAL_PLURAL: Final = "upgradeapprovals"
REPORT_PLURAL: Final = "upgradereports"

DEFAULT_POLICY: Final = "default"
"""Name of the policy of runs that name none (DESIGN §3)."""

FINALIZER: Final = f"{GROUP}/world"
"""Stands on a run from its first `push` intent until it is finalized (DESIGN §3)."""

REQUESTED_BY: Final = f"{GROUP}/requested-by"
"""Annotation of a run: who created it, checked or stamped at admission (security.md §11)."""

REQUESTER: Final = f"{GROUP}/requester"
"""Annotation of an approval: whom the approver believes to be the requester (security.md §11)."""

RUN_LABEL: Final = f"{GROUP}/run"
"""Label of everything made for a run: the name of the run, cut to a label's length."""

RUN_UID_LABEL: Final = f"{GROUP}/run-uid"
"""Label of everything made for a run: its UID."""

ROLE_LABEL: Final = f"{GROUP}/role"
"""Label of our pods: `runner` or `publisher`."""

ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
"""Label of our pods: number of the attempt or delivery."""
