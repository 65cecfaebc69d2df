"""`UpgradeRun.spec`: what a user may ask for (DESIGN §3). Nothing else than the ask.

A run has no field for an image, a command, an environment variable, a service account, a secret,
a volume or a node: those belong to the policy (security.md H20; a test walks the schema).
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from upgraderun_operator.model.base import (
    ApiModel,
    CommitText,
    Name,
    PackageName,
    PackageVersion,
    RepositoryText,
)
from upgraderun_operator.model.bounds import (
    ACTIVE_DEADLINE_SECONDS,
    RELEASE_AGE_SECONDS,
    RUN_LIMITS,
)
from upgraderun_operator.model.names import DEFAULT_POLICY


class Ecosystem(StrEnum):
    """Which package manager's files are upgraded."""

    AUTO = "Auto"
    PYTHON = "Python"


class Select(StrEnum):
    """Which of the eligible upgrades is ranked first (upgrade-run.md §5.2)."""

    SMALLEST = "Smallest"
    LATEST = "Latest"


class Mode(StrEnum):
    """Who decides the steps (upgrade-run.md §2)."""

    BASELINE = "Baseline"
    RULES = "Rules"
    SCRIPTED = "Scripted"


class Repository(ApiModel):
    """The repository to upgrade."""

    url: RepositoryText
    """HTTPS URL of the repository, as one would clone it. Must be allowed by the policy."""

    branch: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """Branch to start from and to open the pull request against; the forge's default if absent."""

    commit: CommitText | None = None
    """Commit to start from, 40 hex digits, reachable from the branch; its head if absent."""

    directory: Annotated[str, Field(min_length=1, max_length=1024)] = "."
    """Directory of the project inside the repository, relative, `.` for the root."""


class Upgrade(ApiModel):
    """Which upgrade to pick; with nothing set, the smallest eligible one."""

    select: Select = Select.SMALLEST
    """Smallest: the smallest class of change first. Latest: the highest version per dependency."""

    dependency: PackageName | None = None
    """Only this direct dependency; any if absent."""

    version: PackageVersion | None = None
    """Only this version of `dependency`, which must then be set too."""

    allow_major: bool = False
    """Whether a major upgrade is eligible."""

    minimum_release_age_seconds: (
        Annotated[int, Field(ge=RELEASE_AGE_SECONDS.floor, le=RELEASE_AGE_SECONDS.cap)] | None
    ) = None
    """How old a release must be, in seconds. Only raises what the policy asks for."""


class RunLimits(ApiModel):
    """Bounds of the work (upgrade-run.md §9.5). A run only tightens what its policy gives."""

    steps: Annotated[int, Field(ge=1, le=RUN_LIMITS["steps"].cap)] | None = None
    """Steps of the agent loop; reached, the run ends LimitExhausted."""

    consecutive_failures: (
        Annotated[int, Field(ge=1, le=RUN_LIMITS["consecutive_failures"].cap)] | None
    ) = None
    """Failed steps in a row; reached, the run ends LimitExhausted."""

    repeated_calls: Annotated[int, Field(ge=1, le=RUN_LIMITS["repeated_calls"].cap)] | None = None
    """Equal calls with equal observations; reached, the run ends LoopDetected."""

    validation_cycles: (
        Annotated[int, Field(ge=1, le=RUN_LIMITS["validation_cycles"].cap)] | None
    ) = None
    """Completed validations; reached, the run ends RepairBudgetExhausted."""

    unchanged_validations: (
        Annotated[int, Field(ge=1, le=RUN_LIMITS["unchanged_validations"].cap)] | None
    ) = None
    """Validations in a row with the same findings; reached, RepairBudgetExhausted."""

    lost_attempts: Annotated[int, Field(ge=1, le=RUN_LIMITS["lost_attempts"].cap)] | None = None
    """Lost attempts in all; reached, the run ends RunnerLost."""

    consecutive_lost_attempts: (
        Annotated[int, Field(ge=1, le=RUN_LIMITS["consecutive_lost_attempts"].cap)] | None
    ) = None
    """Lost attempts in a row without progress; reached, the run ends RunnerLost."""


class Publication(ApiModel):
    """Whether and how the result is published."""

    enabled: bool = True
    """False: the run ends with a frozen proposal (ProposalPrepared) and publishes nothing."""

    draft: bool = False
    """Whether the pull request is opened as a draft."""

    labels: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=50)], ...], Field(max_length=20)
    ] = ()
    """Labels for the pull request, set once, best effort."""

    reviewers: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=39)], ...], Field(max_length=15)
    ] = ()
    """User names that are asked for a review, once, best effort."""


class PolicyRef(ApiModel):
    """Reference to an `UpgradePolicy` of the run's own namespace."""

    name: Name
    """Name of the policy."""


class UpgradeRunSpec(ApiModel):
    """What is asked for. Immutable, except `suspend` and `cancel`."""

    repository: Repository
    """The repository to upgrade."""

    ecosystem: Ecosystem = Ecosystem.AUTO
    """Auto finds the one supported project in `repository.directory`."""

    upgrade: Upgrade = Upgrade()
    """Which upgrade to pick."""

    mode: Mode = Mode.RULES
    """Baseline: a dry run, repairs and publishes nothing. Rules: the built-in agent. Scripted:
    the recorded decisions that the policy names."""

    limits: RunLimits | None = None
    """Tighter bounds than those of the policy."""

    publication: Publication = Publication()
    """Whether and how the result is published."""

    policy_ref: PolicyRef | None = None
    """The policy to run under; the one named `default` if absent."""

    suspend: bool = False
    """True: the current step ends, the pod goes, and nothing starts until it is false again."""

    cancel: bool = False
    """True: the run ends Cancelled, in whatever state it is; nothing on the remote is removed."""

    active_deadline_seconds: Annotated[
        int, Field(ge=ACTIVE_DEADLINE_SECONDS.floor, le=ACTIVE_DEADLINE_SECONDS.cap)
    ] = ACTIVE_DEADLINE_SECONDS.default
    """Seconds with a live attempt after which the run ends; waiting for people is free."""

    @property
    def policy_name(self) -> str:
        """Name of the policy that this run is under."""
        return self.policy_ref.name if self.policy_ref else DEFAULT_POLICY
