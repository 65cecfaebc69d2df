"""What a runner finds in a simulated image: commands that take virtual time, an ecosystem without uv.

One dependency, one newer patch release, checks that pass. Each answer is what the real ecosystem gives
for `patch-safe`; how it comes to it is the business of tests/toolchain.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from upgraderun_protocol.canonical import sha256_of
from upgraderun_runner.ecosystems.base import (
    AcquisitionRecord,
    Candidate,
    CandidateList,
    ChangeClass,
    CheckResult,
    CheckSpec,
    CheckState,
    ConstraintEdit,
    DirectDependency,
    GateViolation,
    LockChange,
    Pair,
    Parse,
    PlatformFacts,
    ProfileOptions,
    ProjectProfile,
    StagedPair,
    Target,
    TestOutcome,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python.ecosystem import PythonEcosystem
from upgraderun_runner.ecosystems.python.profile import PROTECTED
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.requests import (
    AcquireRequest,
    ApplyRequest,
    CandidatesRequest,
    NormalizeRequest,
    ValidationRequest,
)
from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile
from upgraderun_runner.sandbox.driver import Isolation
from upgraderun_runner.sandbox.recorder import StepCommands

FROM: Final = "1.0.0"
TO: Final = "1.0.1"
REPOSITORY_FILES: Final[Mapping[str, str | None]] = {
    "README.md": "# storefront\n",
    "pyproject.toml": f'[project]\nname = "storefront"\ndependencies = ["tinylib=={FROM}"]\n',
    "uv.lock": f'version = 1\n[[package]]\nname = "tinylib"\nversion = "{FROM}"\n',
    "src/storefront/prices.py": "from tinylib import round_price\n",
    "tests/test_prices.py": "def test_total():\n    assert True\n",
}
COMMAND_SECONDS: Final = 1.0


class SimSandbox:
    """Every command takes a second and succeeds."""

    @property
    def isolation(self) -> Isolation:
        """As in a pod with its own network namespace."""
        return Isolation.NETWORK_NAMESPACE

    async def run(self, command_id: str, command: Command) -> CommandResult:
        """Run it."""
        del command_id, command
        await asyncio.sleep(COMMAND_SECONDS)
        return CommandResult(0, False, False, b"", b"", False, False, 1000)


async def _commands(commands: StepCommands, *names: str) -> None:
    """Announce the commands of a step, then run them."""
    planned = [Command((name,), Profile.EXECUTE, "/w", (), 60) for name in names]
    await commands.plan(planned)
    for one in planned:
        await commands.run(one)


class SimEcosystem(PythonEcosystem):
    """`patch-safe` without a toolchain."""

    def __init__(self) -> None:
        super().__init__(PythonToolchain(python="python", git="git", uv=(), search_path=""))

    def profile(self, snapshot: object, directory: str, options: ProfileOptions) -> ProjectProfile:
        """Describe the one project."""
        del snapshot
        return ProjectProfile(
            ecosystem="python",
            directory=directory,
            manifest_path="pyproject.toml",
            lock_path="uv.lock",
            project="storefront",
            requires_toolchain=">=3.11",
            image=options.images[0],
            direct=(DirectDependency("tinylib", f"=={FROM}", "dependencies"),),
            checks=(CheckSpec("test", "gate", "pytest"),),
            registries=("https://registry.example/simple",),
            selection=(),
            build_requires=(),
            virtual=True,
            dynamic_version=False,
            tools=(),
            lock_tool_version="0.9",
            protected=PROTECTED,
        )

    async def acquire(self, commands: StepCommands, request: AcquireRequest) -> AcquisitionRecord:
        """Fill the cache."""
        await _commands(commands, "probe", "sync")
        (request.cache / "wheel").write_bytes(b"wheel")
        platform = PlatformFacts("3.11.7", "CPython", "x86_64", "glibc", "2.36")
        return AcquisitionRecord(platform, (), sha256_of(b"wheel"), "0.9")

    async def candidates(self, commands: StepCommands, request: CandidatesRequest) -> CandidateList:
        """One patch release."""
        await _commands(commands, "metadata")
        target = Target("tinylib", FROM, TO)
        published = "2024-06-01T08:00:00Z"
        one = Candidate("tinylib", FROM, TO, ChangeClass.PATCH, published, ())
        return CandidateList(request.plan_time.isoformat(), (one,), (target,))

    async def stage_apply(self, commands: StepCommands, request: ApplyRequest) -> StagedPair:
        """Edit the constraint, lock anew."""
        await _commands(commands, "lock")
        request.staging.mkdir(parents=True, exist_ok=True)
        old, new = FROM.encode(), TO.encode()
        pair = request.pair
        after = Pair(pair.manifest.replace(old, new), pair.lock.replace(old, new))
        return StagedPair(
            before=pair,
            after=after,
            changed=True,
            outcome="",
            violations=(),
            changes=(LockChange("tinylib", "target", (FROM,), (TO,)),),
            edits=(ConstraintEdit("dependencies", f"=={FROM}", f"=={TO}"),),
            notes=(),
        )

    async def stage_normalize(
        self, commands: StepCommands, request: NormalizeRequest
    ) -> StagedPair:
        """The pair is normal already."""
        await _commands(commands, "lock")
        request.staging.mkdir(parents=True, exist_ok=True)
        return StagedPair(request.pair, request.pair, False, "", (), (), (), ())

    def judge_pair(self, base: Pair, candidate: Pair, target: Target) -> tuple[GateViolation, ...]:
        """Nothing is wrong with it."""
        del base, candidate, target
        return ()

    async def validate(
        self, commands: StepCommands, request: ValidationRequest
    ) -> ValidationRecord:
        """All tests pass."""
        await _commands(commands, "sync", "pytest")
        test = CheckResult(
            name="test",
            kind="gate",
            state=CheckState.PASS,
            parse=Parse.COMPLETE,
            conclusive=True,
            exit_code=0,
            duration_ms=1000,
            findings=(),
            reason="",
            stdout_tail="",
            stderr_tail="",
            tests=(TestOutcome("tests/test_prices.py::test_total", "passed"),),
        )
        return ValidationRecord(
            tree=request.tree,
            config_hash=request.config_hash,
            images=(request.profile.image.image,),
            isolation=commands.isolation.value,
            toolchain=("uv 0.9",),
            checks=(test,),
            conclusive=True,
            clean=True,
            introduced=(),
            flaky=(),
            unstable=(),
            tests_exist=True,
            duration_ms=1000,
        )
