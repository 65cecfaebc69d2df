"""The artifact store on a real folder: write-once, verified, bounded (runner-protocol.md §1.2)."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.store import StoreRefused, VolumeStore
from upgraderun_operator.answers import Absent, Mismatch, Stored, StoreDown, TooLarge
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import RunUid, Sha256

RUN, OTHER = RunUid("0f8fad5b-d9cb-469f-a165-70867728950e"), RunUid("another")
DATA = b"observation"
NAME = sha256_of(DATA)


@pytest.fixture
def store(tmp_path: Path) -> VolumeStore:
    return VolumeStore(tmp_path, SystemClock(), artifact_bytes_max=100, run_bytes_max=150)


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def left_over(root: Path) -> list[Path]:
    return [path for path in root.rglob("incoming/*") if path.is_file()]


class TestPut:
    """A name only for matching bytes; a second put changes nothing."""

    async def test_bytes_get_their_name_once(self, store: VolumeStore, tmp_path: Path) -> None:
        first = await store.put_bytes(RUN, DATA)
        inode = (tmp_path / RUN / "sha256" / NAME).stat().st_ino
        second = await store.put_if_absent(RUN, NAME, chunks(b"obser", b"vation"))

        assert first == Stored(NAME, 11)
        assert second == Stored(NAME, 11, existed=True)
        assert (tmp_path / RUN / "sha256" / NAME).stat().st_ino == inode
        assert left_over(tmp_path) == []

    async def test_its_room_is_that_of_the_volume(self, store: VolumeStore, tmp_path: Path) -> None:
        found = await store.space()
        gone = await VolumeStore(tmp_path / "nowhere" / "at all", SystemClock()).space()

        assert isinstance(found, tuple)
        assert 0 < found[0] <= found[1]
        assert isinstance(gone, StoreDown)

    async def test_two_at_once_are_both_answered(self, store: VolumeStore) -> None:
        answers = await asyncio.gather(*(store.put_bytes(RUN, DATA) for _ in range(8)))

        assert {answer.size for answer in answers if isinstance(answer, Stored)} == {11}
        assert sum(answer.existed for answer in answers if isinstance(answer, Stored)) == 7

    async def test_other_bytes_are_stored_nowhere(self, store: VolumeStore, tmp_path: Path) -> None:
        answer = await store.put_if_absent(RUN, NAME, chunks(b"altered"))

        assert answer == Mismatch(sha256_of(b"altered"))
        assert await store.head(RUN, NAME) == Absent()
        assert left_over(tmp_path) == []

    async def test_one_artifact_and_one_run_are_bounded(
        self, store: VolumeStore, tmp_path: Path
    ) -> None:
        big, rest = b"x" * 100, b"y" * 51
        too_long = await store.put_bytes(RUN, b"z" * 101)
        fits = await store.put_bytes(RUN, big)
        no_room = await store.put_bytes(RUN, rest)
        again = await store.put_bytes(RUN, big)
        elsewhere = await store.put_bytes(OTHER, rest)

        assert too_long == TooLarge(100)
        assert isinstance(fits, Stored)
        assert no_room == TooLarge(50)
        assert again == Stored(sha256_of(big), 100, existed=True)
        assert isinstance(elsewhere, Stored)
        assert left_over(tmp_path) == []

    async def test_an_upload_that_breaks_leaves_nothing(
        self, store: VolumeStore, tmp_path: Path
    ) -> None:
        async def cut() -> AsyncIterator[bytes]:
            yield b"obser"
            raise ConnectionResetError("cut")

        assert isinstance(await store.put_if_absent(RUN, NAME, cut()), StoreDown)
        assert left_over(tmp_path) == []

    async def test_a_damaged_file_under_the_name_is_no_success(
        self, store: VolumeStore, tmp_path: Path
    ) -> None:
        await store.put_bytes(RUN, DATA)
        (tmp_path / RUN / "sha256" / NAME).write_bytes(b"damaged!!!!")

        assert isinstance(await store.put_bytes(RUN, DATA), StoreDown)
        assert isinstance(await store.get(RUN, NAME), StoreDown)

    async def test_an_error_after_the_link_is_settled_by_looking(
        self, store: VolumeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The reply of a network volume may be lost after the link took effect (RP28)."""
        real = os.link

        def lost(source: Path, target: Path) -> None:
            real(source, target)
            raise OSError(5, "input/output error")

        monkeypatch.setattr(os, "link", lost)

        assert await store.put_bytes(RUN, DATA) == Stored(NAME, 11)

    async def test_an_error_before_the_link_is_down(
        self, store: VolumeStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(source: Path, target: Path) -> None:
            raise OSError(5, "input/output error")

        monkeypatch.setattr(os, "link", failing)

        assert isinstance(await store.put_bytes(RUN, DATA), StoreDown)
        assert await store.head(RUN, NAME) == Absent()


class TestRead:
    """Own run only; absent is an answer, a failing volume is unknown."""

    async def test_get_head_list_delete(self, store: VolumeStore) -> None:
        await store.put_bytes(RUN, DATA)
        await store.put_bytes(OTHER, b"other")

        assert await store.get(RUN, NAME) == DATA
        assert await store.head(RUN, NAME) == Stored(NAME, 11, existed=True)
        assert await store.get(OTHER, NAME) == Absent()
        assert await store.list(RUN) == (Stored(NAME, 11, existed=True),)
        assert await store.list_runs() == (RUN, OTHER)
        assert await store.delete(RUN) is None
        assert await store.delete(RUN) is None
        assert await store.list(RUN) == ()
        assert await store.list_runs() == (OTHER,)

    async def test_a_failing_volume_is_unknown(self, store: VolumeStore, tmp_path: Path) -> None:
        (tmp_path / RUN).write_text("a file where a folder belongs")
        broken = VolumeStore(tmp_path / RUN, SystemClock())

        assert isinstance(await store.head(RUN, NAME), StoreDown)
        assert isinstance(await store.get(RUN, NAME), StoreDown)
        assert isinstance(await store.put_bytes(RUN, DATA), StoreDown)
        assert isinstance(await store.list(RUN), StoreDown)
        assert isinstance(await store.delete(RUN), StoreDown)
        assert isinstance(await broken.list_runs(), StoreDown)

    @pytest.mark.parametrize("name", ["../../etc/passwd", "A" * 64, ""])
    async def test_names_are_digests(self, store: VolumeStore, name: str) -> None:
        with pytest.raises(AssertionError):
            await store.get(RUN, Sha256(name))

    @pytest.mark.parametrize("uid", ["..", "a/b", "", "x" * 65])
    async def test_runs_are_uids(self, store: VolumeStore, uid: str) -> None:
        with pytest.raises(AssertionError):
            await store.get(RunUid(uid), NAME)


class TestProbe:
    """A volume that would replace a file, or knows no hard links, is refused with the reason."""

    async def test_a_good_volume_passes_and_stays_empty(
        self, store: VolumeStore, tmp_path: Path
    ) -> None:
        await store.probe()

        assert names_in(tmp_path) == []

    async def test_a_missing_folder_is_made(self, tmp_path: Path) -> None:
        await VolumeStore(tmp_path / "a" / "b", SystemClock()).probe()

        assert (tmp_path / "a" / "b").is_dir()

    async def test_a_second_put_must_fail(
        self, store: VolumeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def replacing(source: Path, target: Path) -> None:
            target.write_bytes(source.read_bytes())

        monkeypatch.setattr(os, "link", replacing)

        with pytest.raises(StoreRefused, match="second put"):
            await store.probe()
        assert names_in(tmp_path) == []

    async def test_hard_links_are_needed(
        self, store: VolumeStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refusing(source: Path, target: Path) -> None:
            raise PermissionError(1, "operation not permitted")

        monkeypatch.setattr(os, "link", refusing)

        with pytest.raises(StoreRefused, match="hard links"):
            await store.probe()

    async def test_a_read_only_volume_is_told_as_such(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")

        with pytest.raises(StoreRefused, match="files"):
            await VolumeStore(tmp_path / "file", SystemClock()).probe()
