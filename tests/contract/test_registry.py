"""The registry speaks the simple API as uv understands it, and fails in the ways uv can tell apart.

Facts about uv's answers: they pin uv's version, as the texts change in every minor.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.fixtures.faults import Fault
from support.fixtures.launch import Registry, registry_in_process
from support.fixtures.packages import Package, Release, build
from support.toolchain import Done, Uv

OLD = Release("1.0.0", {"tiny/__init__.py": "VALUE = 1\n"})
NEW = Release("1.0.1", {"tiny/__init__.py": "VALUE = 2\n"}, age_hours=71)
JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
METADATA = "/one/files/tiny-1.0.1-py3-none-any.whl.metadata"
WHEEL = "/one/files/tiny-1.0.1-py3-none-any.whl"


class Project:
    """A manifest that depends on `tiny`, locked by real uv."""

    def __init__(self, registry: Registry, folder: Path, requirement: str = "tiny>=1") -> None:
        self._uv = Uv(folder / "scratch")
        self.path = folder / "project"
        self.path.mkdir()
        (self.path / "pyproject.toml").write_text(
            '[project]\nname = "shop"\nversion = "0"\nrequires-python = ">=3.11"\n'
            f'dependencies = ["{requirement}"]\n[[tool.uv.index]]\n'
            f'url = "{registry.index_url("one")}"\ndefault = true\n'
        )

    def __call__(self, *arguments: str) -> Done:
        return self._uv.attempt(self.path, *arguments)

    @property
    def lock(self) -> str:
        return (self.path / "uv.lock").read_text()


def serve(registry: Registry, *releases: Release) -> None:
    registry.control.put_index("one", [Package("tiny", releases)])


def page(registry: Registry) -> Any:
    return httpx.get(registry.index_url("one") + "tiny/", trust_env=False).json()


class TestPage:
    """https://packaging.python.org/specifications/simple-repository-api/."""

    def test_a_file_has_hash_size_time_and_metadata(self, registry: Registry) -> None:
        serve(registry, replace(OLD, requires_python=">=3.8"))

        built = build(Package("tiny", (OLD,)), replace(OLD, requires_python=">=3.8"))
        row = page(registry)["files"][0]
        assert (built.filename, built.sha256, len(built.content)) == (
            row["filename"],
            row["hashes"]["sha256"],
            row["size"],
        )
        assert ("2024-01-15T12:00:00Z", False, ">=3.8") == (
            row["upload-time"],
            row["yanked"],
            row["requires-python"],
        )
        assert {"sha256"} == set(row["core-metadata"])

    def test_an_age_counts_from_when_the_index_was_put_and_stays(self, registry: Registry) -> None:
        serve(registry, NEW)
        before = page(registry)["files"][0]["upload-time"]
        registry.control.advance_clock(3600)

        age = datetime.now(UTC) - datetime.fromisoformat(before)

        assert before == page(registry)["files"][0]["upload-time"]
        assert timedelta(hours=71) <= age < timedelta(hours=71, minutes=5)

    def test_a_withdrawn_release_says_why(self, registry: Registry) -> None:
        serve(registry, replace(OLD, yanked="broken build"))

        assert "broken build" == page(registry)["files"][0]["yanked"]

    def test_it_is_never_cached_without_asking(self, registry: Registry) -> None:
        serve(registry, OLD)
        url = registry.index_url("one") + "tiny/"
        first = httpx.get(url, trust_env=False)

        again = httpx.get(url, trust_env=False, headers={"If-None-Match": first.headers["ETag"]})

        assert ("no-cache", 304) == (first.headers["Cache-Control"], again.status_code)

    def test_the_same_declaration_has_the_same_hash_everywhere(self) -> None:
        """Pinned: a drift changes every lock of every scenario."""
        wheel = build(Package("tiny", (OLD,)), OLD)
        sdist = build(Package("tiny", (OLD,)), replace(OLD, sdist_only=True))

        assert (
            "ce969a7167615c58c8ae4fc03205ff50e75b993ebca283652ad64bddf310738b",
            "8176ce334fb3842d385a2b73c12b99e37d5bd71639807ef6a898d577c9123b15",
        ) == (wheel.sha256, sdist.sha256)

    def test_a_restarted_registry_serves_the_same(self, registry: Registry, tmp_path: Path) -> None:
        serve(registry, OLD, NEW)
        with registry_in_process(tmp_path / "registry") as again:
            assert page(registry) == page(again)


class TestUv:
    def test_locks_installs_and_upgrades(self, registry: Registry, tmp_path: Path) -> None:
        serve(registry, OLD)
        project = Project(registry, tmp_path)
        assert project("lock").code == 0
        serve(registry, OLD, NEW)

        assert project("lock", "--check").code == 0
        upgraded = project("lock", "--no-build", "-P", "tiny==1.0.1")
        synced = project("sync", "--locked", "--no-build")

        assert (0, 0) == (upgraded.code, synced.code), upgraded.err + synced.err
        assert f'url = "{registry.url}{WHEEL}"' in project.lock
        assert "upload-time" in project.lock

    def test_asks_for_a_new_versions_metadata_first_and_for_its_wheel_last(
        self, registry: Registry, tmp_path: Path
    ) -> None:
        """Outages in one phase only rest on this: see the row `registry-down`."""
        serve(registry, OLD)
        project = Project(registry, tmp_path)
        project("lock")
        project("sync", "--locked")
        serve(registry, OLD, NEW)
        registry.control.forget_requests()

        project("lock", "--no-build", "-P", "tiny==1.0.1")
        locking = {e["path"] for e in registry.control.requests()}
        project("sync", "--locked")
        syncing = {e["path"] for e in registry.control.requests()} - locking

        assert {"/one/simple/tiny/", METADATA} == locking
        assert {WHEEL} == syncing

    @pytest.mark.parametrize(
        ("fault", "text"),
        [
            (Fault(action="status", status=503), "HTTP status server error (503"),
            (Fault(action="status", status=404), "was not found in the package registry"),
            (Fault(action="status", status=403), "403 Forbidden"),
            (Fault(action="garbage", headers=JSON), "unexpected JSON"),
            (Fault(action="drop"), "Request failed after 3 retries"),
        ],
        ids=["5xx", "404", "403", "garbage", "drop"],
    )
    def test_tells_failures_apart(
        self, registry: Registry, tmp_path: Path, fault: Fault, text: str
    ) -> None:
        serve(registry, OLD)
        registry.control.add_fault(fault)

        done = Project(registry, tmp_path)("lock")

        assert done.code != 0
        assert text in done.err

    def test_refused_connections_are_unreachable(self, registry: Registry, tmp_path: Path) -> None:
        serve(registry, OLD)
        registry.control.refuse_connections(True)

        done = Project(registry, tmp_path)("lock")

        assert 2 == done.code
        assert "Connection refused" in done.err

    def test_takes_an_sdist_only_release_without_building_but_not_under_no_build(
        self, registry: Registry, tmp_path: Path
    ) -> None:
        serve(registry, replace(OLD, sdist_only=True))
        project = Project(registry, tmp_path)

        locked = project("lock")
        refused = project("lock", "--no-build", "-P", "tiny==1.0.0")

        assert 0 == locked.code, locked.err
        assert "wheels" not in project.lock
        assert 1 == refused.code
        assert "no usable wheels" in refused.err or "no binary distribution" in refused.err

    def test_reads_metadata_out_of_a_wheel_where_none_lies_beside_it(
        self, registry: Registry, tmp_path: Path
    ) -> None:
        serve(registry, replace(OLD, core_metadata=False))

        done = Project(registry, tmp_path)("lock")

        assert 0 == done.code, done.err
