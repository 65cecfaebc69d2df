"""pytest and what it needs, as real wheels: the fixture registry serves them to the scenarios.

Fetched once from the package registry by its ordinary client, by hash, into a cache outside the
checkout; no third-party code is committed.
"""

import fcntl
import hashlib
import tempfile
from pathlib import Path

from support.fixtures.control import RegistryControl
from support.fixtures.packages import Package, Release
from support.toolchain import Uv, cache_home

UPLOADED = "2025-09-04T14:34:20Z"
WHEELS = {
    "colorama-0.4.6-py2.py3-none-any.whl": (
        "4f1d9991f5acc0ca119f9d443620b77f9d6b33703e51011c16baf57afb285fc6"
    ),
    "iniconfig-2.1.0-py3-none-any.whl": (
        "9deba5723312380e77435581c6bf4935c94cbfab9b1ed33ef8d238ea168eb760"
    ),
    "packaging-25.0-py3-none-any.whl": (
        "29572ef2b1f17581046b3a2227d5c611fb25ec70ca1ba8554b24b0e69331a484"
    ),
    "pluggy-1.6.0-py3-none-any.whl": (
        "e920276dd6813095e9377c0bc5566d94c932c33b27a3e3945d8389c374dd4746"
    ),
    "pygments-2.19.2-py3-none-any.whl": (
        "86540386c03d588bb81d44bc3928634ff26449851e99741617ecb9037ee5ec0b"
    ),
    "pytest-8.4.2-py3-none-any.whl": (
        "872f880de3fc3a5bdc88a11b39c9710c3497a547cfa9320bc3c5e62fbf272e79"
    ),
}
PIP = "pip@25.3"


def packages() -> tuple[Package, ...]:
    """One release each, so that none of them is ever a candidate."""
    found = []
    for filename in WHEELS:
        name, version = filename.split("-")[:2]
        found.append(Package(name, (Release(version, uploaded=UPLOADED, shelf=filename),)))
    return tuple(found)


def shelve(registry: RegistryControl) -> None:
    """Put the wheels on a registry's shelf."""
    for path in wheels():
        registry.put_wheel(path.name, path.read_bytes())


def wheels() -> tuple[Path, ...]:
    """The wheels, fetched if they aren't there; a wrong hash is never used."""
    folder = cache_home() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(_intact(folder / name, digest) for name, digest in WHEELS.items()):
            _fetch(folder)
    return tuple(folder / name for name in WHEELS)


def _intact(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        lines = []
        for filename, digest in WHEELS.items():
            name, version = filename.split("-")[:2]
            lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
        (work / "wanted.txt").write_text("".join(lines))
        got = work / "got"
        Uv(work)(
            work,
            *("tool", "run", PIP, "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary", ":all:", "--require-hashes"),
            *("--dest", str(got), "-r", str(work / "wanted.txt")),
        )
        for filename in WHEELS:
            (got / filename).replace(folder / filename)
