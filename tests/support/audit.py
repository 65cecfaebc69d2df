"""Counts what a whole world writes to its API server while nothing should happen.

Callers: tests of whole runs. The audit log holds one line per write of anybody (docs/cluster.md).
"""

import asyncio
import json
from pathlib import Path
from typing import Any


async def writes_during(seconds: float, audit_log: Path) -> list[str]:
    """Watch for that long; the writes of anybody, other than renewals of Leases, in order.

    The length of the silence is what is tested here: no state of the world ends the wait earlier.
    """
    start = _size(audit_log)
    await asyncio.sleep(seconds)
    lines = _lines(audit_log, start)
    return [_told(line) for line in lines if not _is_renewal(line)]


def _size(file: Path) -> int:
    return file.stat().st_size


def _lines(file: Path, start: int) -> list[dict[str, Any]]:
    with file.open("rb") as log:
        assert log.seek(0, 2) >= start, "the audit log was rotated meanwhile"
        log.seek(start)
        data = log.read()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def _is_renewal(line: dict[str, Any]) -> bool:
    about = line["objectRef"]
    return about["resource"] == "leases" and line["verb"] in {"update", "patch"}


def _told(line: dict[str, Any]) -> str:
    about = line["objectRef"]
    what = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    where = f"{about.get('namespace', '')}/{about.get('name', '')}"
    return f"{line['verb']} {what} {where} by {line['user']['username']} ({line['userAgent']})"
