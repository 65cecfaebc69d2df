"""The artifact store on a volume: content-addressed, write-once (DESIGN §4a, runner-protocol §1.2).

    <root>/<run uid>/sha256/<hex>      one artifact; its name is the SHA-256 of its bytes
    <root>/<run uid>/incoming/<random> being received; a crash leaves it, `delete` takes it along

Verbs, final: `put_if_absent, get, head, list, delete`. Only operator pods mount the volume. Blocking
file work runs in threads. Callers: `main` makes one; API, writer and reconcile use it by protocol.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterable
from pathlib import Path
from typing import BinaryIO, Final

from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.answers import (
    Absent,
    GetArtifactAnswer,
    HeadArtifactAnswer,
    Mismatch,
    PutArtifactAnswer,
    Stored,
    StoreDown,
    TooLarge,
)
from upgraderun_protocol.canonical import is_sha256, sha256_of
from upgraderun_protocol.ids import RunUid, Sha256
from upgraderun_protocol.limits import ARTIFACT_BYTES_MAX, ARTIFACTS_PER_RUN_BYTES_MAX, MIB

_UID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
_CHUNK: Final = MIB


class StoreRefused(Exception):  # noqa: N818  the store is refused; named as in the specs
    """The volume can't hold artifacts safely; the message says which property is missing."""


class VolumeStore:
    """Artifacts below one folder. Every answer is a value; a file error is StoreDown."""

    def __init__(
        self,
        root: Path,
        clock: Clock,
        artifact_bytes_max: int = ARTIFACT_BYTES_MAX,
        run_bytes_max: int = ARTIFACTS_PER_RUN_BYTES_MAX,
    ) -> None:
        self._root = root
        self._clock = clock
        self._artifact_bytes_max = artifact_bytes_max
        self._run_bytes_max = run_bytes_max

    async def probe(self) -> None:
        """Try hard links, fsync and a second put that must fail; raises StoreRefused."""
        await asyncio.to_thread(_probe, self._root, self._clock.new_id())

    async def put_if_absent(
        self, run_uid: RunUid, sha256: Sha256, chunks: AsyncIterable[bytes]
    ) -> PutArtifactAnswer:
        """Receive bytes; they get their name only if they hash to it, and are read back first."""
        try:
            return await self._receive(run_uid, sha256, chunks)
        except OSError as error:
            return StoreDown(f"put {sha256[:12]}: {error}")

    async def put_bytes(self, run_uid: RunUid, data: bytes) -> PutArtifactAnswer:
        """Store bytes that are in memory under their own digest."""
        sha256 = sha256_of(data)
        try:
            # One trip to a thread: these are small, and each trip waits for a turn of its own.
            return await asyncio.to_thread(self._put, run_uid, sha256, data)
        except OSError as error:
            return StoreDown(f"put {sha256[:12]}: {error}")

    async def head(self, run_uid: RunUid, sha256: Sha256) -> HeadArtifactAnswer:
        """Size of an artifact."""
        try:
            size = (await asyncio.to_thread(self._path(run_uid, sha256).stat)).st_size
        except FileNotFoundError:
            return Absent()
        except OSError as error:
            return StoreDown(f"head {sha256[:12]}: {error}")
        return Stored(sha256, size, existed=True)

    async def get(self, run_uid: RunUid, sha256: Sha256) -> GetArtifactAnswer:
        """Bytes of an artifact, checked against its name."""
        try:
            data = await asyncio.to_thread(self._path(run_uid, sha256).read_bytes)
        except FileNotFoundError:
            return Absent()
        except OSError as error:
            return StoreDown(f"get {sha256[:12]}: {error}")
        if sha256_of(data) != sha256:
            return StoreDown(f"get {sha256[:12]}: the stored bytes are damaged")
        return data

    async def list(self, run_uid: RunUid) -> tuple[Stored, ...] | StoreDown:
        """All artifacts of a run, by name."""
        try:
            sizes = await asyncio.to_thread(_sizes, self._folder(run_uid))
        except OSError as error:
            return StoreDown(f"list: {error}")
        return tuple(Stored(name, size, existed=True) for name, size in sorted(sizes.items()))

    async def space(self) -> tuple[int, int] | StoreDown:
        """Free bytes and size of the volume."""
        try:
            usage = await asyncio.to_thread(shutil.disk_usage, self._root)
        except OSError as error:
            return StoreDown(f"space: {error}")
        return usage.free, usage.total

    async def list_runs(self) -> tuple[RunUid, ...] | StoreDown:
        """Runs that have anything here, for the sweep."""
        try:
            names = await asyncio.to_thread(os.listdir, self._root)
        except OSError as error:
            return StoreDown(f"list: {error}")
        return tuple(RunUid(name) for name in sorted(names) if not name.startswith("."))

    async def delete(self, run_uid: RunUid) -> StoreDown | None:
        """Delete everything of a run; absent is done."""
        try:
            await asyncio.to_thread(_remove, self._run_folder(run_uid))
        except OSError as error:
            return StoreDown(f"delete: {error}")
        return None

    def _run_folder(self, run_uid: RunUid) -> Path:
        assert _UID.fullmatch(run_uid), "a run UID is a path component here"
        return self._root / run_uid

    def _folder(self, run_uid: RunUid) -> Path:
        return self._run_folder(run_uid) / "sha256"

    def _path(self, run_uid: RunUid, sha256: Sha256) -> Path:
        assert is_sha256(sha256), "an artifact's name is its digest"
        return self._folder(run_uid) / sha256

    async def _receive(
        self, run_uid: RunUid, sha256: Sha256, chunks: AsyncIterable[bytes]
    ) -> PutArtifactAnswer:
        final = self._path(run_uid, sha256)
        incoming = self._run_folder(run_uid) / "incoming" / self._clock.new_id()
        used = await asyncio.to_thread(_prepare, final.parent, incoming.parent)
        room = min(self._artifact_bytes_max, self._run_bytes_max - used)
        digest = hashlib.sha256()
        size = 0
        try:
            with incoming.open("xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > room and not final.exists():
                        return TooLarge(room)
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
                if digest.hexdigest() != sha256:
                    return Mismatch(digest.hexdigest())
                existed = await asyncio.to_thread(_publish, file, incoming, final)
        finally:
            incoming.unlink(missing_ok=True)
        return await asyncio.to_thread(_read_back, final, Stored(sha256, size, existed))

    def _put(self, run_uid: RunUid, sha256: Sha256, data: bytes) -> PutArtifactAnswer:
        """Receive bytes that are here already."""
        final = self._path(run_uid, sha256)
        incoming = self._run_folder(run_uid) / "incoming" / self._clock.new_id()
        used = _prepare(final.parent, incoming.parent)
        room = min(self._artifact_bytes_max, self._run_bytes_max - used)
        if len(data) > room and not final.exists():
            return TooLarge(room)
        try:
            with incoming.open("xb") as file:
                file.write(data)
                existed = _publish(file, incoming, final)
        finally:
            incoming.unlink(missing_ok=True)
        return _read_back(final, Stored(sha256, len(data), existed))


def _prepare(folder: Path, incoming: Path) -> int:
    """Make the folders durable; give back the bytes that the run has stored."""
    if not folder.is_dir() or not incoming.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        incoming.mkdir(exist_ok=True)
        for path in (folder.parent, folder.parent.parent):
            _sync_folder(path)
    return sum(_sizes(folder).values())


def _publish(file: BinaryIO, incoming: Path, final: Path) -> bool:
    """Give received bytes their name; tell whether somebody was faster.

    Any error once the link was tried is settled by looking: the reply may have been lost.
    """
    file.flush()
    os.fsync(file.fileno())
    existed = False
    try:
        os.link(incoming, final)
    except FileExistsError:
        existed = True
    except OSError:
        if not final.exists():
            raise
    _sync_folder(final.parent)
    return existed


def _read_back(path: Path, stored: Stored) -> Stored | StoreDown:
    """Believe in what was stored only after reading it."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != stored.sha256:
        return StoreDown(f"put {stored.sha256[:12]}: the stored bytes are damaged")
    return stored


def _sizes(folder: Path) -> dict[str, int]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        return {item.name: item.stat().st_size for item in found}
    return {}


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _probe(root: Path, name: str) -> None:
    first, second = root / f".probe-{name}-1", root / f".probe-{name}-2"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for path in (first, second):
            with path.open("xb") as file:
                file.write(b"probe")
                file.flush()
                os.fsync(file.fileno())
        _sync_folder(root)
        target = root / f".probe-{name}"
        try:
            os.link(first, target)
            _second_put_must_fail(second, target)
        finally:
            target.unlink(missing_ok=True)
    except OSError as error:
        what = "hard links" if error.errno in {errno.EPERM, errno.EOPNOTSUPP} else "files"
        raise StoreRefused(f"the artifact volume at {root} gives no {what}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            first.unlink(missing_ok=True)
            second.unlink(missing_ok=True)


def _second_put_must_fail(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        return
    raise StoreRefused(f"the artifact volume at {target.parent} replaced a file by a second put")
