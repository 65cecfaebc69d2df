"""A Python project on a fixture registry, and the ecosystem with the real uv, for toolchain tests.

`Bench` makes snapshots and asks the ecosystem the runner's questions, each in directories of its own.
Projects have no build system unless they say so: then nothing but pytest is needed from a registry.
"""

import fcntl
import hashlib
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from support.fixtures.launch import Registry
from support.fixtures.packages import Package, Release
from support.realwheels import packages as pytest_packages
from support.toolchain import ROOT, Uv, cache_home, uv_binary
from upgraderun_runner.ecosystems.base import (
    AcquisitionRecord,
    CandidateList,
    CoverageRecord,
    Pair,
    ProfileOptions,
    ProjectProfile,
    Select,
    SelectionOptions,
    StagedPair,
    Target,
    ToolchainImage,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python.ecosystem import PythonEcosystem
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain, UvBinary
from upgraderun_runner.ecosystems.requests import (
    AcquireRequest,
    ApplyRequest,
    CandidatesRequest,
    CoverageRequest,
    NormalizeRequest,
    ValidationRequest,
)
from upgraderun_runner.sandbox.inline import InlineSandbox
from upgraderun_runner.sandbox.recorder import PlannedCommand, StepCommands

NOW = datetime.now(UTC)
HOURS = 3600
TEST = "import aa\n\n\ndef test_value():\n    assert aa.value() == 1\n"
VALUE = {"aa/__init__.py": "def value():\n    return 1\n"}
UV_VERSION, UV_REVISION = "0.13.9", 5


def release(version: str, *requires: str, name: str = "aa", **more: object) -> Release:
    """A release whose module answers `value() == 1`, unless `sources` says otherwise."""
    sources = {f"{name}/__init__.py": "def value():\n    return 1\n"}
    return replace(Release(version, sources, tuple(requires)), **more)  # type: ignore[arg-type]  # fields by name


@dataclass
class Bench:
    """One project: its registry index, its files, the ecosystem, numbered directories."""

    root: Path
    registry: Registry
    sandbox: InlineSandbox
    index: str = "demo"
    plans: list[tuple[PlannedCommand, ...]] = field(default_factory=list)
    steps: list[StepCommands] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def url(self) -> str:
        """The index that the project names."""
        return self.registry.index_url(self.index)

    @property
    def cache(self) -> Path:
        """The run's cache."""
        return self.root / "cache"

    @property
    def ecosystem(self) -> PythonEcosystem:
        """Python with the uv and the interpreter of this machine."""
        return PythonEcosystem(
            PythonToolchain(
                python=str(Path(sys.executable).resolve()),
                git=shutil.which("git") or "git",
                uv=(UvBinary(str(uv_binary()), UV_VERSION, UV_REVISION),),
                coverage_dir=str(image_coverage()),
            )
        )

    def publish(self, *packages: Package) -> None:
        """Put packages and pytest into the index; what was there is replaced."""
        self.registry.control.put_index(self.index, [*packages, *pytest_packages()])

    def manifest(self, *dependencies: str, python: str = ">=3.11", more: str = "") -> str:
        """A manifest of a project without build system, with pytest in the group `dev`."""
        rows = ", ".join(f'"{item}"' for item in dependencies)
        return (
            f'[project]\nname = "demo"\nversion = "1.0"\nrequires-python = "{python}"\n'
            f'dependencies = [{rows}]\n\n[dependency-groups]\ndev = ["pytest"]\n\n{more}\n'
            f'[[tool.uv.index]]\nname = "fixture"\nurl = "{self.url}"\ndefault = true\n'
        )

    def snapshot(
        self, manifest: str, files: Mapping[str, str], *pins: str, lock: bytes | None = None
    ) -> Path:
        """Write a tree with its lock; `pins` are values of `--upgrade-package`."""
        tree = self.root / f"snapshot-{next(self._numbers)}"
        for name, text in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        tree.mkdir(exist_ok=True)
        (tree / "pyproject.toml").write_text(manifest)
        if lock is not None:
            (tree / "uv.lock").write_bytes(lock)
            return tree
        arguments = [part for pin in pins for part in ("--upgrade-package", pin)]
        uv = Uv(self.root / "author")
        uv(tree, "lock", "--quiet", "--python", str(Path(sys.executable).resolve()), *arguments)
        return tree

    def changed(self, tree: Path, pair: Pair, files: Mapping[str, str] | None = None) -> Path:
        """A tree with another pair and other files."""
        texts = {
            str(path.relative_to(tree)): path.read_text()
            for path in sorted(tree.rglob("*"))
            if path.is_file() and path.name not in ("pyproject.toml", "uv.lock")
        }
        texts |= files or {}
        return self.snapshot(pair.manifest.decode(), texts, lock=pair.lock)

    def profile(self, tree: Path) -> ProjectProfile:
        """Phase 3."""
        options = ProfileOptions((ToolchainImage("3.11", "img@sha256:1"),), (self.url,))
        return self.ecosystem.profile(tree, ".", options)

    def step(self) -> StepCommands:
        """The commands of a new step; its plan is kept."""

        async def announce(plan: tuple[PlannedCommand, ...]) -> None:
            self.plans.append(plan)

        self.steps.append(StepCommands(self.sandbox, f"s{next(self._numbers)}", announce))
        return self.steps[-1]

    def folder(self, name: str) -> Path:
        """A directory that was never used."""
        return self.root / f"{name}-{next(self._numbers)}"

    async def acquire(
        self, tree: Path, previous: AcquisitionRecord | None = None
    ) -> AcquisitionRecord:
        """Phase 4."""
        request = AcquireRequest(
            tree, self.profile(tree), self.cache, self.folder("acquire"), "nonce", previous
        )
        return await self.ecosystem.acquire(self.step(), request)

    async def candidates(
        self, tree: Path, acquired: AcquisitionRecord, **options: object
    ) -> CandidateList:
        """Phase 6."""
        chosen = SelectionOptions(Select.SMALLEST, False, "", "", 72 * HOURS, ())
        request = CandidatesRequest(
            self.ecosystem.read_pair(tree, "."),
            self.profile(tree),
            acquired.platform,
            replace(chosen, **options),  # type: ignore[arg-type]  # fields by name
            NOW,
            self.folder("candidates"),
        )
        return await self.ecosystem.candidates(self.step(), request)

    async def apply(
        self,
        tree: Path,
        acquired: AcquisitionRecord,
        target: Target,
        select: Select = Select.SMALLEST,
    ) -> StagedPair:
        """Phase 7, without promotion."""
        request = ApplyRequest(
            pair=self.ecosystem.read_pair(tree, "."),
            profile=self.profile(tree),
            platform=acquired.platform,
            target=target,
            select=select,
            minimum_age_seconds=72 * HOURS,
            plan_time=NOW,
            staging=self.folder("staging"),
            cache=self.cache,
        )
        return await self.ecosystem.stage_apply(self.step(), request)

    async def normalize(
        self, tree: Path, pair: Pair, acquired: AcquisitionRecord, target: Target
    ) -> StagedPair:
        """Phase 9, without promotion."""
        request = NormalizeRequest(
            base=self.ecosystem.read_pair(tree, "."),
            pair=pair,
            profile=self.profile(tree),
            platform=acquired.platform,
            target=target,
            minimum_age_seconds=72 * HOURS,
            plan_time=NOW,
            staging=self.folder("staging"),
            cache=self.cache,
        )
        return await self.ecosystem.stage_normalize(self.step(), request)

    async def validate(
        self,
        tree: Path,
        acquired: AcquisitionRecord,
        baseline: ValidationRecord | None = None,
        base: Path | None = None,
        **changes: object,
    ) -> ValidationRecord:
        """Phases 5 and 10."""
        request = ValidationRequest(
            tree=tree.name,
            config_hash="c",
            snapshot=tree,
            profile=self.profile(tree),
            acquisition=acquired,
            cache=self.cache,
            scratch=self.folder("scratch"),
            base_tag="v1.2.3",
            check_timeout_seconds=120,
            baseline=baseline,
            base_snapshot=base,
        )
        return await self.ecosystem.validate(self.step(), replace(request, **changes))  # type: ignore[arg-type]  # fields by name

    async def coverage(
        self, tree: Path, base: Path, acquired: AcquisitionRecord, *paths: str
    ) -> CoverageRecord:
        """Phase 10 for repairs."""
        request = CoverageRequest(
            tree=tree.name,
            config_hash="c",
            snapshot=tree,
            base_snapshot=base,
            changed_paths=paths,
            profile=self.profile(tree),
            acquisition=acquired,
            cache=self.cache,
            scratch=self.folder("scratch"),
            base_tag="",
            check_timeout_seconds=120,
        )
        return await self.ecosystem.coverage(self.step(), request)


@cache
def image_coverage() -> Path:
    """The coverage.py of the runner's image, installed as its Dockerfile does, once per machine."""
    pinned = (ROOT / "hack" / "images.d" / "toolchain.txt").read_text().partition("\nuv==")[0]
    folder = cache_home() / f"coverage-{hashlib.sha256(pinned.encode()).hexdigest()[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                work = Path(scratch)
                (work / "wanted.txt").write_text(pinned + "\n")
                flags = ("--quiet", "--require-hashes", "--python", sys.executable)
                where = ("--target", str(work / "got"), "-r", str(work / "wanted.txt"))
                Uv(work)(work, "pip", "install", *flags, *where)
                (work / "got").rename(folder)
    return folder


async def open_bench(root: Path, registry: Registry) -> Bench:
    """A bench with a sandbox that knows what isolates it."""
    return Bench(root, registry, await InlineSandbox.start(time.monotonic))
