"""The Go programs of a cluster: built once from the package registry, kept outside the checkout.

Callers: everything that starts a program. A set of binaries is stored under a key over its module
files and flags, so a changed version is another folder and an old one is never overwritten.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from clusterlib.errors import ClusterError
from clusterlib.paths import HACK, cache_home

KUBERNETES = "v1.34.4"
PROGRESS_SECONDS = 30
API_SERVER = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One Go module under `hack/go` and what is built from it: binary name to package."""

    module: str
    packages: Mapping[str, str]
    ldflags: str = "-s -w"

    @property
    def key(self) -> str:
        """Digest of everything that decides what comes out."""
        digest = hashlib.sha256(self.ldflags.encode())
        for path in sorted((HACK / "go" / self.module).glob("*.*")):
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
        return digest.hexdigest()[:16]

    @property
    def folder(self) -> Path:
        """Where its binaries are kept."""
        return cache_home() / "bin" / f"{self.module}-{self.key}"


def _kubernetes_ldflags() -> str:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    stamps = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    package = "k8s.io/component-base/version"
    return " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in stamps.items())])


KUBERNETES_PROGRAMS = (
    *("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler"),
    *("kubelet", "kube-proxy"),
)
RECIPES = (
    Recipe("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Recipe(
        "kubernetes",
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES_PROGRAMS},
        _kubernetes_ldflags(),
    ),
    Recipe("pause", {"pause": "."}),
    Recipe("coredns", {"coredns": "."}),
    Recipe(
        "kube-router", {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}
    ),
    Recipe("helm", {"helm": "helm.sh/helm/v3/cmd/helm"}),
)
ALL = tuple(name for recipe in RECIPES for name in recipe.packages)


def path_of(name: str) -> Path:
    """Where a binary is, built or not."""
    return _recipe_of(name).folder / name


def ensure(names: Iterable[str] = ALL) -> None:
    """Build what is missing of these; instant when nothing is. Safe to call from many processes."""
    for group in _groups(_missing(names)):
        with _exclusive(group) as locked:
            if locked and (left := _missing(group)):
                _build(left)
                if not _missing(ALL):
                    _drop_go_caches()


def _groups(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """One `go build` per module, but the API server first, so that API mode is ready early."""
    first = [name for name in names if name in API_SERVER]
    for part in (first, [name for name in names if name not in first]):
        for recipe in RECIPES:
            if group := [name for name in part if name in recipe.packages]:
                yield group


def _build(names: Sequence[str]) -> None:
    recipe = _recipe_of(names[0])
    recipe.folder.mkdir(parents=True, exist_ok=True)
    staging = cache_home() / "go" / "out"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    argv = ["go", "build", "-trimpath", "-mod=readonly", "-buildvcs=false"]
    argv += ["-ldflags", recipe.ldflags, "-o", f"{staging}/"]
    began = time.monotonic()
    say(f"building {', '.join(names)} (module {recipe.module})")
    _run_go([*argv, *(recipe.packages[name] for name in names)], HACK / "go" / recipe.module, began)
    for name in names:
        built = staging / _built_name(recipe, name)
        built.rename(recipe.folder / name)
    say(f"built {', '.join(names)} in {time.monotonic() - began:.0f} s")


def _run_go(argv: Sequence[str], module: Path, began: float) -> None:
    if shutil.which("go") is None:
        raise ClusterError("the Go toolchain isn't installed; install Go 1.26 or newer")
    environment = {**os.environ, **_go_environment()}
    log = cache_home() / "go" / "build.log"
    with log.open("w") as output:
        child = subprocess.Popen(
            ["nice", *argv], cwd=module, env=environment, stdout=output, stderr=output
        )
        while True:
            try:
                code = child.wait(PROGRESS_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"  still building after {time.monotonic() - began:.0f} s")
                continue
            break
    if code:
        tail = "\n".join(log.read_text().splitlines()[-20:])
        raise ClusterError(f"building in {module} failed; whole log: {log}\n{tail}")


def _built_name(recipe: Recipe, name: str) -> str:
    """What `go build` calls it: the last element of the package, a version suffix apart."""
    package = recipe.packages[name]
    if package == ".":
        first_line = (HACK / "go" / recipe.module / "go.mod").read_text().splitlines()[0]
        package = first_line.split()[1]
    parts = package.split("/")
    return parts[-2] if parts[-1].removeprefix("v").isdigit() else parts[-1]


def _go_environment() -> dict[str, str]:
    home = cache_home() / "go"
    return {
        "CGO_ENABLED": "0",
        "GOCACHE": str(home / "build"),
        "GOMODCACHE": str(home / "mod"),
        "GOFLAGS": "",
    }


def _drop_go_caches() -> None:
    """Free the 14 GB that only a build needs. Go makes its module cache read-only."""
    environment = {**os.environ, **_go_environment()}
    subprocess.run(["go", "clean", "-modcache"], env=environment, check=False)
    shutil.rmtree(cache_home() / "go", ignore_errors=True)


@contextmanager
def _exclusive(names: Sequence[str]) -> Iterator[bool]:
    """Hold the build lock, or say False once another process has built these binaries."""
    cache_home().mkdir(parents=True, exist_ok=True)
    with (cache_home() / "build.lock").open("w") as lock:
        announced = False
        while _missing(names):
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield True
                return
            if not announced:
                say(f"waiting for {', '.join(names)}: another process builds")
                announced = True
            time.sleep(1)
        yield False


def _missing(names: Iterable[str]) -> list[str]:
    return [name for name in names if not path_of(name).exists()]


def _recipe_of(name: str) -> Recipe:
    return next(recipe for recipe in RECIPES if name in recipe.packages)


def say(text: str) -> None:
    """Progress goes to stderr, so that stdout carries only what was asked for."""
    print(text, file=sys.stderr, flush=True)
