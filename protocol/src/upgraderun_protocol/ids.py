"""Names for identities that must not be mixed up. Used everywhere; creates nothing."""

from typing import NewType

RunUid = NewType("RunUid", str)
"""UID that the API server gave an UpgradeRun."""

PodUid = NewType("PodUid", str)
"""UID of one pod; a name is never an identity."""

Epoch = NewType("Epoch", int)
"""Fencing number: `leaseTransitions` of the run Lease (DESIGN §7). Never falls along a journal."""

CommitId = NewType("CommitId", str)
"""40 lower-case hex digits, SHA-1 object format."""

TreeId = NewType("TreeId", str)
"""40 lower-case hex digits of a git tree."""

Sha256 = NewType("Sha256", str)
"""64 lower-case hex digits: the name of a stored artifact, a content digest, a chain head."""

ProposalDigest = NewType("ProposalDigest", str)
"""SHA-256 of the canonical JSON of a proposal record."""

RequestDigest = NewType("RequestDigest", str)
"""SHA-256 of what an approver is asked (upgrade-run.md §11)."""

ResourceVersion = NewType("ResourceVersion", str)
"""Opaque version of a Kubernetes object; compared for equality only."""

EntryId = NewType("EntryId", str)
"""Computed id of a journal entry, such as `a1`, `baseline/2`, `s12/promotion`."""

WriterTag = NewType("WriterTag", str)
"""`a<attempt>` or `d<delivery>`: which pod an entry speaks for."""
