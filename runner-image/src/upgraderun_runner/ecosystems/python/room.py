"""The writable room of one run of the checks, and the commands in it (uv-facts §8, "execute").

Callers: validate and exercise. Pure but for making directories. Everything here has profile `execute`:
no network, no token, and nothing that it writes is read by a later validation.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from upgraderun_runner.ecosystems.base import ProjectProfile
from upgraderun_runner.ecosystems.python.toolchain import (
    PLUGIN_DIR,
    SCRIPTS_DIR,
    PythonToolchain,
    Workroom,
    environment,
)
from upgraderun_runner.ecosystems.python.uvcommands import acquired
from upgraderun_runner.sandbox.commands import Command, Profile

_SEED: Final = "1"


@dataclass(frozen=True, slots=True)
class CheckRoom:
    """Paths and commands of one run of the checks. `root` must not exist before."""

    root: Path
    toolchain: PythonToolchain
    profile: ProjectProfile
    uv: str
    seconds: int

    @property
    def source(self) -> Path:
        """The writable copy of the snapshot: the same path for sync and tests."""
        return self.root / "src"

    @property
    def project(self) -> Path:
        """The project's directory in it."""
        return self.source / self.profile.directory

    @property
    def python(self) -> str:
        """The interpreter of the environment under test."""
        return str(self.root / "env" / "bin" / "python")

    @property
    def report(self) -> Path:
        """Where the pytest plug-in writes."""
        return self.root / "report.ndjson"

    @property
    def wheels(self) -> Path:
        """Where the project's own wheel goes."""
        return self.root / "whl"

    @property
    def only(self) -> Path:
        """The list of ids that a repetition runs."""
        return self.root / "only.json"

    def create(self) -> None:
        """Make the room; a used one is refused, since nothing of it may be seen again."""
        self.root.mkdir(parents=True)
        Workroom(self.root).create()

    def prepare(self, snapshot: Path, cache: Path, tag: str) -> Command:
        """Copy snapshot and cache, make the synthetic git."""
        script = str(SCRIPTS_DIR / "prepare.py")
        places = (str(snapshot), str(self.source), str(acquired(cache)), str(self._cache))
        argv = (self.toolchain.python, "-I", script, *places, self.toolchain.git, tag)
        command = self._command(argv, self.root, {})
        return replace(command, reads=(*command.reads, str(snapshot), str(acquired(cache))))

    def lock_check(self) -> Command:
        """Prove on the real pair that the lock follows from the manifest."""
        return self._uv_command(("lock", "--check", "--offline"))

    def sync(self) -> Command:
        """Make the environment from the lock and build the project itself."""
        flags = ("--locked", "--offline", "--no-build", *self.profile.selection)
        return self._uv_command(("sync", *flags))

    def wheel(self) -> Command:
        """Build the project's wheel, for the list of its files."""
        return self._uv_command(("build", "--wheel", "--offline", "-o", str(self.wheels)))

    def build_check(self) -> Command:
        """Compile and import what the wheel holds."""
        script = str(SCRIPTS_DIR / "build_check.py")
        home = Workroom(self.root).home
        return self._command((self.python, script, str(self.wheels), self.python), home, {})

    def pytest(self, config_text: str, *, only: bool = False, coverage: str = "") -> Command:
        """Run the tests with the report plug-in; `coverage` names an rc file."""
        runner: tuple[str, ...] = ("-m", "pytest")
        path = str(PLUGIN_DIR)
        if coverage:
            runner = ("-m", "coverage", "run", f"--rcfile={coverage}", "-m", "pytest")
            path = f"{path}:{self.toolchain.coverage_dir}"
        variables = {"PYTHONPATH": path, "UR_REPORT": str(self.report), "PYTHONHASHSEED": _SEED}
        if only:
            variables["UR_ONLY"] = str(self.only)
        argv = (self.python, *runner, "-p", "ur_report", *self._pytest_flags(config_text))
        return self._command(argv, self.project, variables)

    def _pytest_flags(self, config_text: str) -> tuple[str, ...]:
        """Neutralise options that would hide ids or write outside scratch (uv-facts §5)."""
        flags = ["--continue-on-collection-errors", "--maxfail=0"]
        if "no:cacheprovider" not in config_text:
            flags += ["-o", f"cache_dir={self.root / 'pytest-cache'}"]
        if "no:junitxml" not in config_text:
            flags.append(f"--junitxml={self.root / 'junit.xml'}")
        if "pytest-cov" in self.profile.tools and "no:cov" not in config_text:
            flags.append("--no-cov")
        if "pytest-randomly" in self.profile.tools and "no:randomly" not in config_text:
            flags.append(f"--randomly-seed={_SEED}")
        if "hypothesis" in self.profile.tools and "no:hypothesispytest" not in config_text:
            flags.append(f"--hypothesis-seed={_SEED}")
        return tuple(flags)

    def mypy(self, targets: tuple[str, ...]) -> Command:
        """Type-check what the configuration names, or the sources."""
        flags = ("--no-error-summary", "--no-color-output", "--no-pretty", "--show-error-codes")
        cache = ("--cache-dir", str(self.root / "mypy"))
        argv = (self.python, "-m", "mypy", *flags, "--hide-error-context", *cache, *targets)
        return self._command(argv, self.project, {})

    def pyright(self) -> Command:
        """Type-check with the locked node."""
        argv = (self.python, "-m", "pyright", "--outputjson")
        return self._command(argv, self.project, {})

    def ruff(self) -> Command:
        """Lint without fixing."""
        flags = ("--output-format", "json", "--no-cache", "--no-fix")
        return self._command((self.python, "-m", "ruff", "check", *flags, "."), self.project, {})

    def coverage(self, *arguments: str) -> Command:
        """Run the image's coverage.py on collected data."""
        variables = {"PYTHONPATH": self.toolchain.coverage_dir}
        return self._command((self.python, "-m", "coverage", *arguments), self.project, variables)

    @property
    def _cache(self) -> Path:
        return self.root / "uvcache"

    def _uv_command(self, arguments: tuple[str, ...]) -> Command:
        room = Workroom(self.root)
        variables = environment(self.toolchain, room, cache=self._cache, network=False)
        variables["UV_PROJECT_ENVIRONMENT"] = str(self.root / "env")
        return self._execute((self.uv, *arguments), self.project, variables)

    def _command(self, argv: tuple[str, ...], workdir: Path, extra: dict[str, str]) -> Command:
        """A command that isn't uv: nothing of uv in its environment, the environment's programs first."""
        everything = environment(
            self.toolchain, Workroom(self.root), cache=self._cache, network=False
        )
        kept = ("PATH", "LANG", "HOME", "USER", "LOGNAME", "TMPDIR")
        variables = {name: everything[name] for name in kept}
        variables["PATH"] = f"{self.root / 'env' / 'bin'}:{variables['PATH']}"
        return self._execute(argv, workdir, {**variables, **extra})

    def _execute(self, argv: tuple[str, ...], workdir: Path, variables: dict[str, str]) -> Command:
        variables["PYTHONPYCACHEPREFIX"] = str(self.root / "pyc")
        return Command(
            argv=argv,
            profile=Profile.EXECUTE,
            workdir=str(workdir),
            env=tuple(sorted(variables.items())),
            timeout_seconds=self.seconds,
            reads=(str(SCRIPTS_DIR), str(PLUGIN_DIR)),
            writes=(str(self.root),),
        )
