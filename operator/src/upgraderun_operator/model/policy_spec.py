"""`UpgradePolicy.spec`: what the platform team allows and provides (DESIGN §3).

Callers: `objects`, `policy.resolve`, `build`. Defaults and ranges of numbers come from `bounds`.
"""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from upgraderun_operator.model.base import (
    ApiModel,
    Name,
    PackageName,
    RepositoryText,
    Sha256Text,
    Url,
    UserName,
)
from upgraderun_operator.model.bounds import (
    CHECK_TIMEOUT_SECONDS,
    GRANT_TTL_SECONDS,
    HARD_FILES,
    HARD_LINES,
    LOSS_GRACE_SECONDS,
    RELEASE_AGE_SECONDS,
    REQUEST_TTL_SECONDS,
    SOFT_FILES,
    SOFT_LINES,
)
from upgraderun_operator.model.run_spec import RunLimits

PUBLIC_PYTHON_INDEX: Final = "https://pypi.org/simple"
"""The index that is used if a policy names none."""

PUBLIC_FORGE_API: Final = "https://api.github.com"
"""The API of the forge that is used if a policy names none."""

IMAGE_PATTERN: Final = "^[^@[:space:]]+@sha256:[0-9a-f]{64}$"
"""An image by digest (security.md H6): a tag could be moved under our feet."""

APP_ID_PATTERN: Final = "^[A-Za-z0-9._-]+$"
QUANTITY_PATTERN: Final = "^[1-9][0-9]{0,8}(Mi|Gi|Ti)$"


class ForgeType(StrEnum):
    """Which API a forge speaks."""

    GITHUB = "GitHub"


class SandboxType(StrEnum):
    """Where the toolchain and the repository's code run."""

    INLINE = "Inline"


class SelfApproval(StrEnum):
    """Whether the requester of a run may approve it."""

    DENY = "Deny"
    ALLOW = "Allow"


class UnexercisedRepairs(StrEnum):
    """What happens to a repair with lines that no test runs."""

    REFUSE = "Refuse"
    ASK = "Ask"


class OnBaseMoved(StrEnum):
    """What a base branch that moved since the freeze means for publication."""

    NOTE = "Note"
    INVALIDATE = "Invalidate"


class KeyRef(ApiModel):
    """One key of a Secret or ConfigMap in the policy's own namespace."""

    name: Name
    """Name of the object."""

    key: Annotated[str, Field(min_length=1, max_length=253)]
    """Key inside it."""


class Forge(ApiModel):
    """The forge that holds the repositories."""

    type: ForgeType = ForgeType.GITHUB
    """Which API it speaks; compatible forges count as GitHub."""

    api_url: Url = PUBLIC_FORGE_API
    """Base URL of its API: `https://HOST/api/v3` for GitHub Enterprise Server. Tokens are sent to
    this host and to the repository's only."""


class Credential(ApiModel):
    """A token in a Secret of the policy's namespace."""

    secret_ref: KeyRef
    """The Secret and the key that holds the token."""


class App(ApiModel):
    """A GitHub App whose installation tokens are minted for one repository and one purpose."""

    id: Annotated[str, Field(min_length=1, max_length=64, pattern=APP_ID_PATTERN)]
    """Its client id (recommended), such as `Iv23liABCDEF`, or its App id, in quotation marks."""

    private_key_ref: KeyRef
    """The Secret and key that hold its private key in PEM form. Only the operator reads it; its
    name must stand in the chart's `credentials.secretNames`."""


class Credentials(ApiModel):
    """Either an App, or tokens, one per purpose. All absent: none is needed (a dry run)."""

    app: App | None = None
    """Serves clone and push: a token for one repository, at most an hour old, never stored."""

    clone: Credential | None = None
    """Read access to the repository; mounted into runner pods."""

    push: Credential | None = None
    """Contents and pull requests, write; mounted into publisher pods only. Needed to publish."""


ImageReference = Annotated[str, Field(min_length=1, max_length=512, pattern=IMAGE_PATTERN)]


class PythonImage(ApiModel):
    """One Python that is offered."""

    version: Annotated[str, Field(max_length=16, pattern=r"^3\.[0-9]{1,2}(\.[0-9]{1,2})?$")]
    """Its version, such as `3.11.7`."""

    image: ImageReference
    """The image that holds it."""


class Images(ApiModel):
    """Images of our pods, by digest."""

    runner: ImageReference
    """Image of runner and publisher pods, as `name@sha256:...`."""

    python: Annotated[tuple[PythonImage, ...], Field(min_length=1, max_length=16)]
    """Pythons that repositories may ask for by `requires-python`; the newest that fits is taken.
    With sandbox Inline each image is a build of the runner image on that Python, and a run that
    needs another one than the runner image's starts its second pod from it."""


class Sandbox(ApiModel):
    """Where the toolchain runs."""

    type: SandboxType
    """Inline: as child processes of the runner, beside its clone token. Needs the chart's
    `sandbox.allowInline` too."""


class Workspace(ApiModel):
    """The volume of a run."""

    storage_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Storage class of the volume; the cluster's default if absent."""

    size: Annotated[str, Field(max_length=16, pattern=QUANTITY_PATTERN)] = "10Gi"
    """Size of the volume: clone, snapshots, caches."""


class Registries(ApiModel):
    """Package indexes that may be used; what a repository configures doesn't count."""

    python: Annotated[tuple[Url, ...], Field(min_length=1, max_length=16)] = (PUBLIC_PYTHON_INDEX,)
    """Simple-API index URLs, the first one is the default index."""


class CaBundle(ApiModel):
    """A bundle of certificate authorities."""

    config_map_ref: KeyRef
    """ConfigMap and key that hold the bundle in PEM form."""


class Trust(ApiModel):
    """Whom pods trust beside what their image brings."""

    ca_bundle: CaBundle | None = None
    """Mounted into our pods and set for git, uv and Python; replaces the image's bundle."""


class Selection(ApiModel):
    """What may be picked."""

    minimum_release_age_seconds: Annotated[
        int, Field(ge=RELEASE_AGE_SECONDS.floor, le=RELEASE_AGE_SECONDS.cap)
    ] = RELEASE_AGE_SECONDS.default
    """How old a release must be, in seconds, its closure included; 0 turns the cooldown off."""

    deny: Annotated[tuple[PackageName, ...], Field(max_length=256)] = ()
    """Dependencies that are never upgraded."""


class Validation(ApiModel):
    """How a tree is judged."""

    require_tests: bool = False
    """Whether a repository without tests is refused."""

    check_timeout_seconds: Annotated[
        int, Field(ge=CHECK_TIMEOUT_SECONDS.floor, le=CHECK_TIMEOUT_SECONDS.cap)
    ] = CHECK_TIMEOUT_SECONDS.default
    """Seconds that one check may take."""


class Scope(ApiModel):
    """How far a repair may reach; manifest and lock are not counted (upgrade-run.md §9.4)."""

    soft_files: Annotated[int, Field(ge=SOFT_FILES.floor, le=SOFT_FILES.cap)] = SOFT_FILES.default
    """Changed files; a repair beyond it asks the approvers first, by kind ScopeExpansion."""

    soft_lines: Annotated[int, Field(ge=SOFT_LINES.floor, le=SOFT_LINES.cap)] = SOFT_LINES.default
    """Added and removed lines; as `softFiles`."""

    hard_files: Annotated[int, Field(ge=HARD_FILES.floor, le=HARD_FILES.cap)] = HARD_FILES.default
    """Changed files; more ends the run ScopeExceeded."""

    hard_lines: Annotated[int, Field(ge=HARD_LINES.floor, le=HARD_LINES.cap)] = HARD_LINES.default
    """Added and removed lines; more ends the run ScopeExceeded."""


Glob = Annotated[str, Field(min_length=1, max_length=256)]


class ProtectedPaths(ApiModel):
    """Paths that no repair may change (upgrade-run.md §9.4)."""

    add: Annotated[tuple[Glob, ...], Field(max_length=64)] = ()
    """Further globs, beside the built-in ones."""

    release: Annotated[tuple[Glob, ...], Field(max_length=64)] = ()
    """Built-in globs that don't hold, each by its exact text."""


class Codemod(ApiModel):
    """One import path that moved: the repair of the built-in agent (upgrade-run.md §2)."""

    dependency: PackageName
    """Dependency whose upgrade needs it."""

    versions: Annotated[str, Field(min_length=1, max_length=128)]
    """Versions after the upgrade that need it, as a version specifier such as `>=2,<3`."""

    old: Annotated[str, Field(min_length=1, max_length=256)]
    """Import path before."""

    new: Annotated[str, Field(min_length=1, max_length=256)]
    """Import path after."""


class Scripted(ApiModel):
    """The decision list of mode Scripted."""

    config_map_ref: KeyRef
    """ConfigMap and key that hold the list."""

    sha256: Sha256Text
    """SHA-256 of exactly these bytes; others are refused."""


class Approvals(ApiModel):
    """Who answers, and for how long an answer holds (upgrade-run.md §11)."""

    approvers: Annotated[tuple[UserName, ...], Field(max_length=64)] = ()
    """User names whose approvals count; everybody whom RBAC lets create approvals if empty."""

    self_approval: SelfApproval = SelfApproval.DENY
    """Whether the requester of a run may approve it."""

    unexercised_repair: UnexercisedRepairs = UnexercisedRepairs.REFUSE
    """What happens to a repair with lines that no test runs. Refuse: the run ends
    RepairNotExercised. Ask: approvers decide, and the pull request opens with a warning."""

    request_ttl_seconds: Annotated[
        int, Field(ge=REQUEST_TTL_SECONDS.floor, le=REQUEST_TTL_SECONDS.cap)
    ] = REQUEST_TTL_SECONDS.default
    """Seconds after which an unanswered request ends the run ApprovalExpired."""

    grant_ttl_seconds: Annotated[
        int, Field(ge=GRANT_TTL_SECONDS.floor, le=GRANT_TTL_SECONDS.cap)
    ] = GRANT_TTL_SECONDS.default
    """Seconds after which an unused grant is void and asked for again."""


class Author(ApiModel):
    """Author and committer of the commits."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^<>\r\n]+$")] = (
        "UpgradeRun"
    )
    """Name."""

    email: Annotated[str, Field(min_length=3, max_length=254, pattern=r"^[^<>\s@]+@[^<>\s@]+$")] = (
        "upgraderun@users.noreply.invalid"
    )
    """Address."""


class PolicyPublication(ApiModel):
    """How results are published."""

    author: Author = Author()
    """Author and committer of the commits."""

    on_base_moved: OnBaseMoved = OnBaseMoved.NOTE
    """Note: the pull request says so. Invalidate: the run ends ProposalInvalidated."""


class Recovery(ApiModel):
    """How loss is judged."""

    loss_grace_seconds: Annotated[
        int, Field(ge=LOSS_GRACE_SECONDS.floor, le=LOSS_GRACE_SECONDS.cap)
    ] = LOSS_GRACE_SECONDS.default
    """Seconds between the two observations that declare a pod lost."""


class UpgradePolicySpec(ApiModel):
    """What runs of this namespace may do, and with what."""

    repositories: Annotated[tuple[RepositoryText, ...], Field(min_length=1, max_length=256)]
    """Allowed repositories: HTTPS URLs; a last segment `*` allows all of that parent."""

    forge: Forge = Forge()
    """The forge that holds the repositories."""

    credentials: Credentials = Credentials()
    """Tokens, one per purpose."""

    images: Images
    """Images of our pods, by digest."""

    sandbox: Sandbox
    """Where the toolchain runs."""

    workspace: Workspace = Workspace()
    """The volume of a run."""

    registries: Registries = Registries()
    """Package indexes that may be used."""

    trust: Trust = Trust()
    """Whom pods trust."""

    selection: Selection = Selection()
    """What may be picked."""

    validation: Validation = Validation()
    """How a tree is judged."""

    scope: Scope = Scope()
    """How far a repair may reach."""

    protected_paths: ProtectedPaths = ProtectedPaths()
    """Paths that no repair may change."""

    codemods: Annotated[tuple[Codemod, ...], Field(max_length=64)] = ()
    """Repairs that the built-in agent knows."""

    scripted: Scripted | None = None
    """The decision list of mode Scripted; without it that mode is refused."""

    approvals: Approvals = Approvals()
    """Who answers, and for how long an answer holds."""

    publication: PolicyPublication = PolicyPublication()
    """How results are published."""

    recovery: Recovery = Recovery()
    """How loss is judged."""

    limits: RunLimits = RunLimits()
    """Bounds of the work of a run; the built-in defaults where absent."""
