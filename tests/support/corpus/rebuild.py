"""Rebuilds a case: sdist by hash, pin commands, two commits in a bare repository.

Talks to the package registry through pip and uv. The result is cached by what makes it; the lock's
transitive packages are those of the day on which it was made.
"""

import fcntl
import hashlib
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.corpus.declared import Case, Remove, Replace, Sdist, Tag
from support.gitclient import git
from support.realwheels import PIP
from support.scenarios.objects import bare_repository
from support.toolchain import Uv, cache_home

IGNORED = ".venv/\n__pycache__/\n.pytest_cache/\n"
FORMAT = "1"


@dataclass(frozen=True, slots=True)
class BuiltCase:
    """A bare repository whose `main` is the base commit of the run."""

    case: Case
    repository: Path
    base_commit: str


def build_case(case: Case) -> BuiltCase:
    """Build a case, or take it from the cache; minutes on an empty cache, then nothing."""
    home = cache_home() / "corpus"
    home.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(f"{FORMAT}{case.sdist}{case.pin}".encode()).hexdigest()[:16]
    repository = home / f"{case.sdist.name}-{key}.git"
    with (home / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not repository.exists():
            with tempfile.TemporaryDirectory(dir=home) as scratch:
                _build(case, Path(scratch), Uv(home / "uv")).rename(repository)
    return BuiltCase(case, repository, git(repository, "rev-parse", "refs/heads/main"))


def _build(case: Case, scratch: Path, uv: Uv) -> Path:
    project = _unpacked(_fetch(case.sdist, scratch, uv), scratch / "sdist")
    (project / ".gitignore").write_text(IGNORED)
    git(project, "init", "-q", "--initial-branch=main")
    _commit(project, "sdist")
    for step in case.pin:
        match step:
            case Replace():
                _replace(project, step)
            case Tag():
                git(project, "tag", step.name)
            case Remove():
                (project / step.path).unlink()
            case _:
                uv(project, *step.arguments)
    _commit(project, "base")
    bare = bare_repository(scratch / "bare.git")
    git(project, "push", "-q", str(bare), "HEAD:refs/heads/main", "--tags")
    return bare


def _fetch(sdist: Sdist, scratch: Path, uv: Uv) -> Path:
    """Download the sdist by hash; the client verifies it."""
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{sdist.name}=={sdist.version} --hash=sha256:{sdist.sha256}\n")
    got = scratch / "got"
    uv(
        scratch,
        *("tool", "run", PIP, "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--no-binary", sdist.name, "--require-hashes", "--dest", str(got), "-r", str(wanted)),
    )
    return next(got.iterdir())


def _unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    roots = list(folder.iterdir())
    if len(roots) != 1:
        raise ValueError(f"{archive.name} has {len(roots)} folders at its top")
    shutil.rmtree(roots[0] / ".git", ignore_errors=True)
    return roots[0]


def _replace(project: Path, step: Replace) -> None:
    manifest = project / "pyproject.toml"
    text = manifest.read_text()
    if text.count(step.old) != 1:
        raise ValueError(f"{step.old!r} occurs {text.count(step.old)} times in the manifest")
    manifest.write_text(text.replace(step.old, step.new))


def _commit(project: Path, message: str) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", message)
