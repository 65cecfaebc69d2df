"""Runner and publisher as processes of an ordinary user, beside a bookkeeper: for tests of whole runs.

The bundle is made from a row of the scenario table with a policy's defaults.
"""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from support.bookkeeper import Bookkeeper
from support.ordinary_user import RunnerEnvironment, as_ordinary_user, owned_by_ordinary_user
from support.scenarios import BuiltScenario
from upgraderun_protocol.bundle import (
    Bundle,
    Codemod,
    Delivery,
    Destination,
    EarlierProposals,
    LimitOptions,
    PolicyOptions,
    PublicationOptions,
    PythonImage,
    RepositoryOptions,
    RunRef,
    ScopeOptions,
    UpgradeOptions,
)
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import CommitId, RunUid, Sha256, TreeId
from upgraderun_protocol.slugs import branch_name

UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
IMAGE = "runner@sha256:" + "1" * 64
LIMITS = LimitOptions(50, 3, 3, 8, 3)


def bundle_of(built: BuiltScenario, mode: str) -> Bundle:
    """What the operator would tell an attempt of this row."""
    row = built.row
    upgrade: Mapping[str, Any] = row.run.get("upgrade", {})
    policy: Mapping[str, Any] = row.policy
    scope: Mapping[str, Any] = policy.get("scope", {})
    return Bundle(
        version=1,
        role="run",
        writer="a1",
        run=RunRef("tests", built.name, UID),
        mode=mode,
        ecosystem=row.run.get("ecosystem", "Auto"),
        config_hash=sha256_of(b"configuration"),
        repository=RepositoryOptions(
            built.repository_url,
            built.branch,
            row.run.get("repository", {}).get("directory", "."),
            CommitId(built.base_commit),
        ),
        upgrade=UpgradeOptions(
            select=upgrade.get("select", "Smallest"),
            allow_major=upgrade.get("allowMajor", False),
            minimum_release_age_seconds=upgrade.get(
                "minimumReleaseAgeSeconds",
                policy.get("selection", {}).get("minimumReleaseAgeSeconds", 259_200),
            ),
            dependency=upgrade.get("dependency"),
            version=upgrade.get("version"),
        ),
        policy=PolicyOptions(
            name="default",
            python_images=(PythonImage("3.11", IMAGE),),
            python_registries=(built.registry_url,),
            sandbox="Inline",
            require_tests=policy.get("validation", {}).get("requireTests", False),
            check_timeout_seconds=120,
            scope=ScopeOptions(
                scope.get("softFiles", 10),
                scope.get("softLines", 200),
                scope.get("hardFiles", 20),
                scope.get("hardLines", 400),
            ),
            protected_add=tuple(policy.get("protectedPaths", {}).get("add", ())),
            protected_release=tuple(policy.get("protectedPaths", {}).get("release", ())),
            deny=tuple(policy.get("selection", {}).get("deny", ())),
            codemods=tuple(
                Codemod(c["dependency"], c["versions"], c["old"], c["new"])
                for c in policy.get("codemods", ())
            ),
            author_name="UpgradeRun",
            author_email="upgraderun@example.org",
            on_base_moved="Note",
            decisions=sha256_of(row.decision_lines()) if mode == "Scripted" else None,
        ),
        limits=LIMITS,
        publication=PublicationOptions(mode != "Baseline", False, (), ()),
        earlier=EarlierProposals((), ()),
        active_deadline_seconds=21_600,
        destination=Destination(
            "GitHub", "localhost", built.api_url, f"fixtures/{built.name}", built.branch
        ),
    )


def delivery_of(bundle: Bundle, keeper: Bookkeeper) -> Bundle:
    """What the operator would tell the first publisher after the approval."""
    done = keeper.fold.last("proposal", EntryState.DONE)
    intent = keeper.fold.last("proposal", EntryState.INTENT)
    base = keeper.fold.done("base")
    assert done is not None
    assert intent is not None
    assert base is not None
    record = Sha256(done.artifacts["record"])
    return replace(
        bundle,
        role="publish",
        writer="d1",
        delivery=Delivery(
            proposal_digest=record,
            record=record,
            commit=CommitId(intent.data["commit"]),
            tree=TreeId(intent.data["tree"]),
            base_commit=CommitId(base.data["commit"]),
            branch=branch_name(UID, done.data["name"], done.data["to"]),
            approvers=("somebody",),
        ),
    )


@dataclass(slots=True)
class Ended:
    """How a process ended; `log` is its stderr."""

    code: int
    log: str
    message: str


@dataclass(slots=True)
class PodStandIn:
    """One pod's files on this machine: token, volume, termination log."""

    runner: RunnerEnvironment
    directory: Path
    built: BuiltScenario
    bundle_file: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)
    process: asyncio.subprocess.Process | None = None

    @property
    def workspace(self) -> Path:
        """The run's volume; every attempt gets the same."""
        return self.directory / "workspace"

    async def start(self, keeper: Bookkeeper) -> Self:
        """Start the process that the bundle's role asks for."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        owned_by_ordinary_user(self.workspace)
        token = self._file("token", "token-of-a-pod")
        self._file("termination-log", "").chmod(0o666)
        role = keeper.bundle.role
        secret = self.built.clone_token if role == "run" else self.built.push_token
        credential = self._file("credential", secret)
        kind = "clone" if role == "run" else "push"
        argv = [
            *(str(self.runner.python), "-I", "-m", "upgraderun_runner", role),
            *("--operator-url", keeper.url, "--namespace", "tests", "--run", self.built.name),
            *("--run-uid", UID, "--token-file", str(token), "--pod-uid", "pod-1"),
            *("--termination-log", str(self.directory / "termination-log")),
            *(f"--{kind}-token-file", str(credential)),
            *(("--trust-bundle", str(self.bundle_file)) if self.bundle_file else ()),
            *(("--workspace", str(self.workspace)) if role == "run" else ()),
        ]
        path = f"{self.runner.directory / 'bin'}:/usr/bin:/bin"
        # A container's own /tmp goes with it, also when it was killed.
        temporary = str(owned_by_ordinary_user(self.directory / "tmp"))
        variables = {"PATH": path, "LANG": "C.UTF-8", "HOME": "/tmp", "TMPDIR": temporary}
        self.process = await asyncio.create_subprocess_exec(
            *as_ordinary_user(argv),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
            env={**variables, **self.environment},
        )
        return self

    async def end(self) -> Ended:
        """Wait for its end."""
        assert self.process is not None
        out, _ = await self.process.communicate()
        code = self.process.returncode
        assert code is not None
        message = (self.directory / "termination-log").read_text()
        return Ended(code, out.decode("utf-8", "replace"), message)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process itself."""
        assert self.process is not None
        self.process.send_signal(number)

    def _file(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o644)
        return path
