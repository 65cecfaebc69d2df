"""The command line of runner and publisher; the one place that makes clock, chance and environment.

Callers: the pods that the operator makes, and people who read `--help`. It refuses to run as root:
root may read what nobody may, and the tests of some repositories notice (upgrade-run.md §7.3).
"""

import argparse
import asyncio
import os
import random
import secrets
import shutil
import signal
import ssl
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.ids import RunUid
from upgraderun_protocol.redact import Redactor
from upgraderun_runner import limits
from upgraderun_runner.client.transport import Seams
from upgraderun_runner.image import Offer, python_of_the_image
from upgraderun_runner.process import Machine, Settings

UV_FOLDERS: Final = Path("/opt/uv")
FAULT_GROUP: Final = "upgraderun.fault"
FAULT_VARIABLE: Final = "UPGRADERUN_FAULT"
REFUSED_EXIT: Final = 1
COVERAGE_FOLDER: Final = "coverage"
"""Beside the folder of uv's binary: `<prefix>/bin/uv` and `<prefix>/coverage`."""
_LOG_LINE_MAX: Final = 16 * 1024

DESCRIPTION: Final = """\
Runner and publisher of the UpgradeRun operator. The operator starts both as pods; nobody types this.

  run      clones one repository, proves its baseline, upgrades one dependency, validates again and
           freezes the result as one commit. Resumes from the run's journal; there is no other mode.
  publish  verifies a frozen and approved proposal from artifacts and the base alone, pushes its
           branch (create only) and opens one pull request.
"""
EPILOG: Final = """\
Exit codes: 0-4 and 6 a verdict is recorded (0 proposal, 1 error, 2 unsupported, 3 baseline,
4 explained non-result, 6 acquisition) · 70 internal error · 75 gave up on the operator · 76 yielded ·
77 fenced: another process speaks for the run. The operator reads the journal, never this number.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, refuse root, run the role; returns the exit code."""
    options = _parser().parse_args(arguments)
    if os.geteuid() == 0:
        print(
            "refused: this process runs as root, and checks of a repository must not; start it as "
            "an ordinary user (the operator's pods use uid 65532)",
            file=sys.stderr,
        )
        return REFUSED_EXIT
    with tempfile.TemporaryDirectory(prefix="upgraderun-") as private:
        return asyncio.run(_run(options, Path(private)))


async def _run(options: argparse.Namespace, private: Path) -> int:
    """Run until done, or until SIGTERM: then stop at once and leave recovery to the next pod."""
    machine = _machine(private)
    settings = _settings(options)
    bundle = _trust(settings.trust_bundle, private)
    # Each role loads its own half: the one that holds the token which may push needs no agent.
    if options.role == "run":
        from upgraderun_runner.run import run_role  # noqa: PLC0415 - see above

        work = run_role(settings, machine, _offer(options, bundle))
    else:
        from upgraderun_runner.publish import publish_role  # noqa: PLC0415 - see above

        work = publish_role(settings, machine, bundle)
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        machine.log("stopped by SIGTERM: the next attempt goes on from the journal")
        return limits.SIGTERM_EXIT


def _machine(private: Path) -> Machine:
    redactor = Redactor()
    chance = random.SystemRandom()

    def log(line: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        print(now, redactor.redact(line, _LOG_LINE_MAX), file=sys.stderr, flush=True)

    return Machine(
        seams=Seams(
            monotonic=time.monotonic,
            now=lambda: datetime.now(UTC),
            sleep=asyncio.sleep,
            jitter=chance.random,
            new_id=lambda: secrets.token_hex(16),
        ),
        fault=load_fault(os.environ.get(FAULT_VARIABLE)),
        redactor=redactor,
        log=log,
        private=private,
    )


def load_fault(wanted: str | None) -> FaultPoint:
    """The hook of kill tests, if its distribution is installed: release images lack it (§14)."""
    for point in entry_points(group=FAULT_GROUP):
        if wanted:
            hook: FaultPoint = point.load()(wanted)
            return hook
    return no_fault


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        operator_url=options.operator_url,
        namespace=options.namespace,
        run=options.run,
        run_uid=RunUid(options.run_uid),
        token_file=options.token_file,
        ca_file=options.ca_file,
        termination_log=options.termination_log,
        workspace=options.workspace if options.role == "run" else None,
        credential_file=options.credential_file,
        trust_bundle=options.trust_bundle,
        pod_uid=options.pod_uid,
    )


def _trust(bundle: Path | None, private: Path) -> Path | None:
    """One file with the system's roots and the policy's: tools take one, and it replaces theirs."""
    if bundle is None:
        return None
    paths = ssl.get_default_verify_paths()
    system = next(
        (p for p in (paths.cafile, paths.openssl_cafile) if p and Path(p).is_file()), None
    )
    parts = [Path(system).read_bytes()] if system else []
    combined = private / "trust.pem"
    combined.write_bytes(b"\n".join([*parts, bundle.read_bytes()]))
    combined.chmod(0o644)
    return combined


def _offer(options: argparse.Namespace, bundle: Path | None) -> Offer:
    found = shutil.which("uv")
    # One folder per version in the image: a lock is rewritten only by a uv of its own revision.
    several = sorted(str(path) for path in UV_FOLDERS.glob("*/uv"))
    return Offer(
        python=options.python or python_of_the_image(),
        git=shutil.which("git") or "/usr/bin/git",
        uv=tuple(options.uv or several or ([found] if found else [])),
        search_path=os.environ.get("PATH", os.defpath),
        ca_bundle=bundle,
        coverage_dir=options.coverage_dir or _coverage_beside(found),
    )


def _coverage_beside(uv: str | None) -> str:
    """The image's coverage.py, if it has one."""
    folder = Path(uv).parent.parent / COVERAGE_FOLDER if uv else None
    return str(folder) if folder is not None and folder.is_dir() else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="upgraderun-runner",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    roles = parser.add_subparsers(dest="role", required=True, metavar="run|publish")
    run = roles.add_parser("run", help="prepare one proposal", epilog=EPILOG)
    publish = roles.add_parser("publish", help="publish one approved proposal", epilog=EPILOG)
    for role in (run, publish):
        _add_common(role)
    run.add_argument("--workspace", type=Path, required=True, help="the run's volume")
    run.add_argument(
        "--clone-token-file",
        dest="credential_file",
        type=Path,
        help="file with the token that may read the repository",
    )
    run.add_argument("--python", help="interpreter for repositories; default: the image's own")
    run.add_argument(
        "--uv",
        action="append",
        help="a uv binary; may be repeated; default: the image's, else the one on PATH",
    )
    run.add_argument(
        "--coverage-dir",
        default="",
        help="folder with coverage.py alone; default: `coverage` beside the folder of uv. Without "
        "it no repair counts as exercised",
    )
    publish.add_argument(
        "--push-token-file",
        dest="credential_file",
        type=Path,
        help="file with the token that may push branches and open pull requests",
    )
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--operator-url", required=True, help="root of the operator's runner API")
    parser.add_argument("--namespace", required=True, help="namespace of the run")
    parser.add_argument("--run", required=True, help="name of the run")
    parser.add_argument("--run-uid", required=True, help="UID of the run")
    parser.add_argument(
        "--token-file", type=Path, required=True, help="bound token; read for every request"
    )
    parser.add_argument("--ca-file", type=Path, help="CA that signs the operator's certificate")
    parser.add_argument(
        "--trust-bundle", type=Path, help="further roots for git host, forge and registries"
    )
    parser.add_argument(
        "--termination-log",
        type=Path,
        default=Path("/dev/termination-log"),
        help="where the verdict is left for the kubelet",
    )
    parser.add_argument("--pod-uid", default="", help="UID of this pod; default: as in the token")
