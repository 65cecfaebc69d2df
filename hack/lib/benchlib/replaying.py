"""Makes the two scripts that a run is measured against: its own commands again, and six bare ones.

Caller: `hack/bench/replay.py`. The records hold argv, profile and working directory of every command;
its environment is made by the runner's own rule (`toolchain.environment`), and what the runner puts
before a command (an empty home, a copy of manifest and lock) the script puts there with `cp`. Commands
of profile `execute` go through the runner's helper for network namespaces, as in a run.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchlib.recorded import Pair, Recorded
from benchlib.script import Script
from upgraderun_runner.ecosystems.python.toolchain import (
    PythonToolchain,
    UvBinary,
    Workroom,
    environment,
)

_ROOM: Final = re.compile(r"^(.*/scratch/.*/run-\d+)(?:/|$)")
_SNAPSHOT: Final = re.compile(r"^(.*/snapshots/[0-9a-f]{40})(?:/|$)")
_UPGRADED: Final = ("upgrade", "nearest", "older")
"""Names of staged copies that have the edited manifest."""
_PLAIN: Final = ("PATH", "LANG", "HOME", "USER", "LOGNAME", "TMPDIR")
"""What a command that isn't uv gets of the environment."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The image's programs, the roots that they trust, the repository with its read token."""

    runner_python: Path
    uv: Path
    python: str
    search_path: str
    ca_bundle: Path
    url: str

    def git_environment(self, home: Path) -> dict[str, str]:
        """Environment of a plain git."""
        return {
            "PATH": self.search_path,
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSL_CAINFO": str(self.ca_bundle),
        }

    def uv_environment(self, room: Path, cache: Path, *, network: bool) -> dict[str, str]:
        """Environment that the runner gives to uv."""
        toolchain = PythonToolchain(
            python=self.python,
            git="/usr/bin/git",
            uv=(UvBinary(str(self.uv), "", 0),),
            search_path=self.search_path,
            ca_bundle=str(self.ca_bundle),
        )
        return environment(toolchain, Workroom(room), cache=cache, network=network)


class Replay:
    """The script of one run's commands, below a root of its own."""

    def __init__(self, tools: Tools, root: Path, pair: Pair, base_tree: str) -> None:
        self._tools = tools
        self._root = root
        self._pair = pair
        self._package = _package(tools.runner_python)
        self.script = Script(root)
        generation = root / "ws-1"
        self._work = generation / "work"
        self._base = generation / "snapshots" / base_tree
        self._cache = generation / "cache"
        self._snapshots = {str(self._base)}

    def write(self, commands: tuple[Recorded, ...]) -> Script:
        """Clone, run the commands step by step, commit; then compare the lock with the run's."""
        self._root.mkdir(parents=True)
        (self._root / "manifest").write_bytes(self._pair.manifest)
        (self._root / "lock").write_bytes(self._pair.lock)
        self._clone()
        for step in dict.fromkeys(command.step for command in commands):
            for command in commands:
                if command.step == step:
                    self._command(self._moved(command, _root_of(commands)))
            self.script.part(step)
        git = self._tools.git_environment(self._root)
        identity = ("-c", "user.name=x", "-c", "user.email=x@localhost")
        self.script.command(("git", *identity, "commit", "-qam", "upgrade"), git, self._work)
        self.script.part("freeze")
        self.script.line("cmp", self._work / self._pair.lock_path, self._root / "lock")
        return self.script

    def _clone(self) -> None:
        git = self._tools.git_environment(self._root)
        argv = ("git", "clone", "-q", "--depth=1", self._tools.url, str(self._work))
        self.script.command(argv, git, self._root)
        export = ("git", "checkout-index", "-a", f"--prefix={self._base}/")
        self.script.command(export, git, self._work)
        self.script.part("clone")

    def _command(self, command: Recorded) -> None:
        env = self._environment(command)
        for directory in (env["HOME"], env["TMPDIR"]):
            self.script.unless_there(directory, ("mkdir", "-p", directory))
        self._inputs(command)
        argv = command.argv
        if command.profile == "execute":
            helper = self._package / "sandbox" / "netns_exec.py"
            argv = (str(self._tools.runner_python), "-I", str(helper), "--", *argv)
        self.script.command(argv, env, command.workdir, command.exit_code)
        if _is_lock(command) and Path(command.workdir).name.startswith(_UPGRADED):
            self._copy_pair(Path(command.workdir), self._work)

    def _inputs(self, command: Recorded) -> None:
        """What the runner itself writes before a command starts."""
        for word in (command.workdir, *command.argv):
            found = _SNAPSHOT.match(word)
            if found and found[1] not in self._snapshots:
                self._snapshots.add(found[1])
                self.script.line("cp", "-a", self._base, found[1])
                self._copy_pair(self._work, Path(found[1]))
        if _is_lock(command) and command.profile == "mutate":
            staged = Path(command.workdir)
            upgraded = staged.name.startswith(_UPGRADED)
            manifest = self._root / "manifest" if upgraded else self._work / "pyproject.toml"
            lock = self._work / self._pair.lock_path
            self.script.unless_there(
                staged,
                ("mkdir", "-p", staged),
                ("cp", manifest, staged / "pyproject.toml"),
                ("cp", lock, staged / "uv.lock"),
            )
        self.script.unless_there(command.workdir, ("mkdir", "-p", command.workdir))
        if command.argv[2:] and command.argv[2].endswith("/probe.py"):
            self.script.write(command.argv[3], "nonce")

    def _copy_pair(self, source: Path, target: Path) -> None:
        for name in ("pyproject.toml", "uv.lock"):
            self.script.line("cp", source / name, target / name)

    def _environment(self, command: Recorded) -> dict[str, str]:
        found = [m[1] for m in map(_ROOM.match, (command.workdir, *command.argv)) if m]
        is_uv = command.argv[0] == str(self._tools.uv)
        if not found:
            room = self._root / "rooms" / command.step.replace("/", "-")
            cache = (
                self._acquired.parent / "lock" if command.profile == "mutate" else self._acquired
            )
            network = command.profile != "execute"
            env = self._tools.uv_environment(room, cache, network=network)
            return {**env, "UV_PROJECT_ENVIRONMENT": str(room / "throwaway")} if is_uv else env
        room = Path(found[0])
        env = self._tools.uv_environment(room, room / "uvcache", network=False)
        if is_uv:
            env["UV_PROJECT_ENVIRONMENT"] = str(room / "env")
        else:
            env = {name: env[name] for name in _PLAIN}
            env["PATH"] = f"{room / 'env' / 'bin'}:{env['PATH']}"
        env["PYTHONPYCACHEPREFIX"] = str(room / "pyc")
        if "ur_report" in command.argv:
            env["PYTHONPATH"] = str(self._package / "ecosystems" / "python" / "plugin")
            env["UR_REPORT"] = str(room / "report.ndjson")
            env["PYTHONHASHSEED"] = "1"
        return env

    @property
    def _acquired(self) -> Path:
        return self._cache / "run" / "uv"

    def _moved(self, command: Recorded, old_root: str) -> Recorded:
        """The same command below the script's own root; its cache has a fixed name there."""

        def moved(word: str) -> str:
            here = word.replace(old_root, str(self._root))
            return re.sub(rf"{re.escape(str(self._cache))}/[0-9a-f]+", f"{self._cache}/run", here)

        argv = tuple(map(moved, command.argv))
        return Recorded(
            command.step,
            argv,
            command.profile,
            moved(command.workdir),
            command.exit_code,
            command.duration_ms,
        )


def bare(tools: Tools, root: Path, pair: Pair, target: tuple[str, str]) -> Script:
    """The six commands that a person would type, with an empty cache and nothing else.

    The edit of the manifest before the fourth is a `cp` here: it is no command, and takes no time.
    """
    script = Script(root)
    root.mkdir(parents=True)
    (root / "manifest").write_bytes(pair.manifest)
    work = root / "work"
    env = {
        **tools.git_environment(root),
        "LANG": "C.UTF-8",
        "UV_CACHE_DIR": str(root / "cache"),
        "UV_PYTHON": tools.python,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
        "SSL_CERT_FILE": str(tools.ca_bundle),
    }
    uv, pin = str(tools.uv), "==".join(target)
    steps = (
        ("git clone", root, ("git", "clone", "-q", tools.url, str(work))),
        ("uv sync", work, (uv, "sync")),
        ("pytest", work, (uv, "run", "pytest")),
        ("uv lock", work, (uv, "lock", "--upgrade-package", pin)),
        ("uv sync again", work, (uv, "sync")),
        ("pytest again", work, (uv, "run", "pytest")),
    )
    for name, workdir, argv in steps:
        if name == "uv lock":
            script.line("cp", root / "manifest", work / pair.manifest_path)
        script.command(argv, env, workdir)
        script.part(name)
    return script


def _is_lock(command: Recorded) -> bool:
    return command.argv[1:2] == ("lock",)


def _root_of(commands: tuple[Recorded, ...]) -> str:
    """The run's own volume: what stands before its first generation."""
    return next(c.workdir.partition("/ws-1/")[0] for c in commands if "/ws-1/" in c.workdir)


def _package(python: Path) -> Path:
    """Where the runner's package is installed beside an interpreter."""
    return next(python.parents[1].glob("lib/python*/site-packages/upgraderun_runner"))
