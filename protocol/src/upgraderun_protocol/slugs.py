"""Names that other systems must accept: branches and children of a run. Pure and deterministic."""

import re
from typing import Final

from upgraderun_protocol.ids import RunUid
from upgraderun_protocol.limits import BRANCH_NAME_MAX

BRANCH_PREFIX: Final = "upgraderun/"
_NAME_MAX: Final = 48
_VERSION_MAX: Final = 24


def uid8(uid: RunUid) -> str:
    """First eight hex digits of a UID."""
    return uid.replace("-", "")[:8]


def slug(text: str, longest: int) -> str:
    """Fold a text to `[a-z0-9._-]`, no dots or dashes at the ends, none doubled; `x` for nothing."""
    folded = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    folded = re.sub(r"([._-])[._-]+", r"\1", folded)[:longest].strip("._-")
    return (folded.removesuffix(".lock").strip("._-")) or "x"


def branch_name(uid: RunUid, name: str, version: str) -> str:
    """Our branch: bound to the run, a valid ref by construction, ≤ 100 characters (§12).

    Example: `upgraderun/markupsafe-2.1.5-3f1c9a2b`.
    """
    branch = f"{BRANCH_PREFIX}{slug(name, _NAME_MAX)}-{slug(version, _VERSION_MAX)}-{uid8(uid)}"
    assert len(branch) <= BRANCH_NAME_MAX
    return branch


def child_name(run_name: str, uid: RunUid, suffix: str = "") -> str:
    """Name of an object made for a run (DESIGN §3): `<name cut to 40>-<uid8>[-a1]`."""
    stem = run_name.replace(".", "-")[:40].rstrip("-")
    return f"{stem}-{uid8(uid)}" + (f"-{suffix}" if suffix else "")


def marker(uid: RunUid, proposal: str, ecosystem: str, name: str, version: str) -> str:
    """Last line of a pull request's body: how it is recognised as ours (upgrade-run.md §12)."""
    target = f"{ecosystem}:{name}@{version}"
    return f"<!-- upgraderun:v1 run={uid} proposal={proposal} target={target} -->"


_MARKER: Final = re.compile(
    r"<!-- upgraderun:v1 run=(?P<run>[0-9a-f-]{1,64}) proposal=(?P<proposal>[0-9a-f]{64})"
    r" target=(?P<target>[A-Za-z0-9:@._+!~-]{1,400}) -->"
)


def read_marker(body: str) -> tuple[str, str, str] | None:
    """Find our marker as the last line: (run UID, proposal digest, target), or None."""
    lines = body.rstrip().splitlines()
    match = _MARKER.fullmatch(lines[-1].strip()) if lines else None
    return (match["run"], match["proposal"], match["target"]) if match else None
