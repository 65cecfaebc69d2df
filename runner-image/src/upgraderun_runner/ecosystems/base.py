"""What every ecosystem says about a project, in the same words (upgrade-run.md §5, §7, §8).

Callers: prelude, tools, readiness and report of the runner; `ecosystems/python` fills these values.
Pure values: they become canonical JSON artifacts (no floats, durations in ms). Nothing here runs.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.records import bounded

TESTS_MAX: Final = 200_000
"""How many tests one validation may collect."""


class ChangeClass(StrEnum):
    """How far a version is from the locked one, smallest first (upgrade-run.md §5.1)."""

    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """0 for the smallest class."""
        return (ChangeClass.PATCH, ChangeClass.MINOR, ChangeClass.MAJOR).index(self)


class Select(StrEnum):
    """Which eligible version is ranked first (upgrade-run.md §5.2)."""

    SMALLEST = "Smallest"
    LATEST = "Latest"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a repository can't be upgraded; all of them are listed (§6)."""

    code: str
    file: str
    reason: str
    next_step: str


class Unsupported(Exception):  # noqa: N818 - names an outcome, like the journal's word for it
    """The repository can't be handled. Carries every refusal; ends the run `unsupported`."""

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        super().__init__("; ".join(f"{r.file}: {r.reason}" for r in refusals))
        self.refusals = refusals


class AcquisitionFailed(Exception):  # noqa: N818 - names an outcome
    """A registry gave no usable answer. Ends the run `acquisition_failed` in every mode (§9.1).

    `reason` is one of `unreachable`, `registry_denied`, `not_found`, `integrity`, `incomplete`,
    `timeout`, `cache_changed`, `toolchain_failed`; `text` is the toolchain's own, at most 2,000 characters.
    """

    def __init__(self, reason: str, host: str, text: str) -> None:
        super().__init__(f"{reason} ({host}): {text}")
        self.reason = reason
        self.host = host
        self.text = text[:2000]


class RegistryUnreachable(AcquisitionFailed):
    """DNS, connect, timeout, TLS, HTTP 5xx or 429: worth another try later (§8.1)."""

    def __init__(self, host: str, error_class: str, text: str) -> None:
        super().__init__("unreachable", host, text)
        self.error_class = error_class


@dataclass(frozen=True, slots=True)
class DirectDependency:
    """One declaration of the manifest. `where` is `dependencies`, `extra:<name>` or `group:<name>`."""

    name: str
    constraint: str
    where: str
    marker: str = ""
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One distribution file that the lock names. `upload_time` is RFC 3339 or empty."""

    name: str
    url: str
    sha256: str
    upload_time: str = ""

    @property
    def is_wheel(self) -> bool:
        """Whether installing it builds nothing."""
        return self.name.endswith(".whl")


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One slot of the lock: name, version and source together are its identity (§8.5)."""

    name: str
    version: str
    source: str
    files: tuple[LockedFile, ...] = ()
    markers: tuple[str, ...] = ()

    @property
    def slot(self) -> str:
        """The identity as one string."""
        return f"{self.name} {self.version} {self.source}"


@dataclass(frozen=True, slots=True)
class LockEdge:
    """A slot that needs another; `via` is empty, `extra:<name>` or `group:<name>`."""

    source: str
    target: str
    via: str = ""
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that an upgrade must not change, with its canonical value."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LockModel:
    """Manifest and lock as one value, able to hold several versions of one name."""

    direct: tuple[DirectDependency, ...]
    entries: tuple[LockEntry, ...]
    edges: tuple[LockEdge, ...]
    settings: tuple[Setting, ...]
    project_slot: str

    def named(self, name: str) -> tuple[LockEntry, ...]:
        """Every entry of a name, in lock order."""
        return tuple(entry for entry in self.entries if entry.name == name)


@dataclass(frozen=True, slots=True)
class Pair:
    """The bytes of manifest (M1) and lock (M2); always handled together."""

    manifest: bytes
    lock: bytes


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """One check that this project gets. `kind` is `gate` or `compare` (§7.1)."""

    name: str
    kind: str
    tool: str


@dataclass(frozen=True, slots=True)
class ToolchainImage:
    """One row of the policy's images: a version such as `3.11` and an image by digest."""

    version: str
    image: str


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """What the policy says about profiles: images and allowed registries (empty: the public one)."""

    images: tuple[ToolchainImage, ...]
    registries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectProfile:
    """What phase 3 found: everything later phases need to know about the project, JSON-able.

    `selection` holds the computed `--group` and `--extra` flags; `build_requires` is the build kit
    (empty for a virtual project or a backend inside the toolchain); `tools` are locked plug-ins that
    change how a check is called. `untried` are direct dependencies that no chosen group or extra installs.
    """

    ecosystem: str
    directory: str
    manifest_path: str
    lock_path: str
    project: str
    requires_toolchain: str
    image: ToolchainImage
    direct: tuple[DirectDependency, ...]
    checks: tuple[CheckSpec, ...]
    registries: tuple[str, ...]
    selection: tuple[str, ...]
    build_requires: tuple[str, ...]
    virtual: bool
    dynamic_version: bool
    tools: tuple[str, ...]
    lock_tool_version: str
    protected: tuple[str, ...]
    notes: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The one upgrade of a run."""

    name: str
    from_version: str
    to_version: str


NOT_NAMED: Final = "not_named"
NOT_PINNED: Final = "not_pinned_version"
"""Reasons that say what the run asks for, not what is wrong with a version."""


@dataclass(frozen=True, slots=True)
class Ineligibility:
    """One reason against a version, with the facts a person needs (age, limit, range...)."""

    code: str
    detail: str

    @property
    def is_wish(self) -> bool:
        """Whether the run itself asked for something else."""
        return self.code in {NOT_NAMED, NOT_PINNED}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A newer version of a direct dependency and everything that speaks against it (§5.1)."""

    name: str
    current: str
    version: str
    change_class: ChangeClass
    published: str
    reasons: tuple[Ineligibility, ...]

    @property
    def eligible(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons

    @property
    def target(self) -> Target:
        """The candidate as the run's target."""
        return Target(self.name, self.current, self.version)


@dataclass(frozen=True, slots=True)
class CandidateList:
    """Every newer version; `ranked` holds the eligible ones, best first (§5.2)."""

    plan_time: str
    candidates: tuple[Candidate, ...]
    ranked: tuple[Target, ...]
    notes: tuple[str, ...] = ()

    @property
    def toolchain_alone_blocks(self) -> bool:
        """Whether some version is kept out by `toolchain` and by nothing else (§5.1)."""
        return any({r.code for r in c.reasons} == {"toolchain"} for c in self.candidates)


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """What run and policy say about eligibility and ranking (§5). Ages in seconds, 0 = off.

    `already_proposed` and `declined` hold (name, version) pairs of open and of closed unmerged pull
    requests of this product.
    """

    select: Select
    allow_major: bool
    dependency: str
    version: str
    minimum_age_seconds: int
    deny: tuple[str, ...]
    already_proposed: tuple[tuple[str, str], ...] = ()
    declined: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GateViolation:
    """One rule of Gate A or Gate B that the staged pair breaks (§8.3, §8.4)."""

    code: str
    subject: str
    expected: str
    observed: str


@dataclass(frozen=True, slots=True)
class LockChange:
    """One name whose locked versions differ: `entered`, `left`, `raised`, `lowered` or `target`.

    `held_from` names what the resolver would have taken without the nearest closure (§8.2), or is empty.
    """

    name: str
    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    held_from: str = ""


@dataclass(frozen=True, slots=True)
class ConstraintEdit:
    """One specifier of the manifest before and after."""

    where: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class StagedPair:
    """What staging made: never written to `work/` here (§8.2, §8.6).

    `outcome` is empty, or the outcome that a failed resolution stands for: `admission_refused`,
    `normalization_refused` or `requires_newer_toolchain`.
    """

    before: Pair
    after: Pair
    changed: bool
    outcome: str
    violations: tuple[GateViolation, ...]
    changes: tuple[LockChange, ...]
    edits: tuple[ConstraintEdit, ...]
    notes: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One stable failure key (§7.3). `subject` is what a repetition selects, such as a test id."""

    key: str
    count: int
    detail: str
    subject: str = ""


class CheckState(StrEnum):
    """How a check ended (§7.2)."""

    PASS = "pass"  # noqa: S105 - a state, no secret
    FAIL = "fail"
    ERROR = "error"
    TIMEOUT = "timeout"
    ABSENT = "absent"


class Parse(StrEnum):
    """How much of a check's output was understood (§7.2)."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """The final outcome of one collected test id; the worst one where it has several."""

    id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one validation. Tails are at most 4 KiB each, for the report."""

    name: str
    kind: str
    state: CheckState
    parse: Parse
    conclusive: bool
    exit_code: int
    duration_ms: int
    findings: tuple[Finding, ...]
    reason: str
    stdout_tail: str
    stderr_tail: str
    tests: tuple[TestOutcome, ...] = bounded(items_max=TESTS_MAX, default=())


@dataclass(frozen=True, slots=True)
class LostTest:
    """A test that passed in the baseline and is `skipped`, `xfailed` or `gone` now (§7.2)."""

    id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """All checks of one tree. It counts only through its step's `done` entry (§7.3).

    `introduced` and `lost_tests` are empty for a baseline. `flaky` are keys that count for nothing.
    """

    tree: str
    config_hash: str
    images: tuple[str, ...]
    isolation: str
    toolchain: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    conclusive: bool
    clean: bool
    introduced: tuple[Finding, ...]
    flaky: tuple[str, ...]
    unstable: tuple[str, ...]
    tests_exist: bool
    duration_ms: int
    lost_tests: tuple[LostTest, ...] = bounded(items_max=TESTS_MAX, default=())

    @property
    def regressed(self) -> bool:
        """Whether something fails that the accepted baseline lacks."""
        return bool(self.introduced)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it isn't conclusive: one sentence per check or unstable key."""
        checks = tuple(f"{c.name}: {c.reason}" for c in self.checks if not c.conclusive)
        return checks + tuple(f"sometimes fails after the upgrade: {key}" for key in self.unstable)


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """The toolchain as it really is inside the sandbox, from the probe of phase 4."""

    version: str
    implementation: str
    machine: str
    libc: str
    libc_version: str


@dataclass(frozen=True, slots=True)
class AcquisitionRecord:
    """What phase 4 put into the cache (§3, §8.5). `cache` is relative to the workspace directory."""

    platform: PlatformFacts
    kit: tuple[str, ...]
    cache_digest: Sha256
    lock_tool: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LineJudgement:
    """A range of changed lines and whether a test ran it, with the reason if not (§7.4)."""

    file: str
    first_line: int
    last_line: int
    exercised: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CoverageRecord:
    """Every judged range of one candidate tree. `problem` says why nothing could be shown."""

    tree: str
    config_hash: str
    judgements: tuple[LineJudgement, ...]
    problem: str
    duration_ms: int

    @property
    def unexercised(self) -> tuple[LineJudgement, ...]:
        """The ranges that no test is known to have run."""
        return tuple(judgement for judgement in self.judgements if not judgement.exercised)
