"""Python behind the interface of `upgrade-run.md` §8.1: one object, one method per phase.

Callers: the runner's prelude, tools and readiness. Each method that runs commands announces its plan
through `StepCommands` first. Nothing here knows the journal, git or `work/`.
"""

from collections.abc import Iterable
from pathlib import Path

from upgraderun_runner.ecosystems.base import (
    AcquisitionRecord,
    CandidateList,
    CoverageRecord,
    GateViolation,
    Pair,
    ProfileOptions,
    ProjectProfile,
    StagedPair,
    Target,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python import (
    acquire,
    candidates,
    exercise,
    gates,
    profile,
    staging,
    validate,
)
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.requests import (
    AcquireRequest,
    ApplyRequest,
    CandidatesRequest,
    CoverageRequest,
    NormalizeRequest,
    ValidationRequest,
)
from upgraderun_runner.sandbox.recorder import StepCommands


class PythonEcosystem:
    """Python with uv. Raises `Unsupported` and `AcquisitionFailed`; everything else is a value."""

    def __init__(self, toolchain: PythonToolchain) -> None:
        self._toolchain = toolchain

    def detect(self, paths: Iterable[str], directory: str) -> bool:
        """Whether a tree holds the complete pair in `directory` ("." is the root)."""
        return profile.detect(paths, directory)

    def profile(self, snapshot: Path, directory: str, options: ProfileOptions) -> ProjectProfile:
        """Read the pair of a snapshot; raises Unsupported with every refusal (§6)."""
        return profile.read_profile(snapshot, directory, options, self._toolchain)

    def read_pair(self, tree: Path, directory: str) -> Pair:
        """Read manifest and lock of a directory; raises Unsupported if one is no regular file."""
        return profile.read_pair(tree, directory)

    async def acquire(self, commands: StepCommands, request: AcquireRequest) -> AcquisitionRecord:
        """Probe the sandbox, fill the cache, and on the base prove that the lock is stable (§8.5).

        Raises AcquisitionFailed, and Unsupported for `lock_not_reproducible`. May be repeated.
        """
        return await acquire.acquire(commands, self._toolchain, request)

    async def candidates(self, commands: StepCommands, request: CandidatesRequest) -> CandidateList:
        """List every newer version of every direct dependency, judged and ranked (§5)."""
        return await candidates.list_candidates(commands, self._toolchain, request)

    async def stage_apply(self, commands: StepCommands, request: ApplyRequest) -> StagedPair:
        """Stage one upgrade and judge it by Gate A (§8.2, §8.3)."""
        return await staging.stage_apply(commands, self._toolchain, request)

    async def stage_normalize(
        self, commands: StepCommands, request: NormalizeRequest
    ) -> StagedPair:
        """Normalise the pair of `work/` in staging and judge it by Gate B (§8.4)."""
        return await staging.stage_normalize(commands, self._toolchain, request)

    def judge_pair(self, base: Pair, candidate: Pair, target: Target) -> tuple[GateViolation, ...]:
        """Repeat what Gate B can judge without a command, for readiness and publisher (§10)."""
        return gates.judge_pair(base, candidate, target)

    async def validate(
        self, commands: StepCommands, request: ValidationRequest
    ) -> ValidationRecord:
        """Run all checks of one tree without network (§7)."""
        return await validate.validate(commands, self._toolchain, request)

    async def coverage(self, commands: StepCommands, request: CoverageRequest) -> CoverageRecord:
        """Run the tests once more with coverage and judge every changed line (§7.4)."""
        return await exercise.measure(commands, self._toolchain, request)
