"""The scenarios are what the table says, shown with plain uv and pytest and nothing of ours.

A wrong fixture would be blamed on the product; so baseline, upgrade, repair and hidden check of
each row are tried here first.
"""

import hashlib
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from support.fixtures.launch import Servers, servers_in_process
from support.fixtures.packages import build
from support.gitclient import git
from support.plain import PlainProject, moved
from support.scenarios import (
    BuiltScenario,
    Row,
    Seen,
    build_world,
    load_repository,
    load_table,
    run_hidden_check,
)
from support.scenarios.objects import bare_repository, write_tree
from support.scenarios.table import FOLDER
from support.scenarios.world import LOCKED, check_out
from support.toolchain import Uv

ROWS = load_table()
SUPPORTED = [row for row in ROWS if not row.scenario.startswith("unsupported-")]
UNSUPPORTED = [row for row in ROWS if row.scenario.startswith("unsupported-")]
UPGRADING = [
    row
    for row in SUPPORTED
    if any(d["tool"] == "apply_upgrade" for d in row.decision_list())
    and row.cell("Baseline").outcome != "admission_refused"
]
PUBLISHING = [row for row in SUPPORTED if row.cell("Scripted").publishes]
NOT_CHOSEN = {
    "baseline-failing": {("tinylib", "1.0.1")},
    "cooldown-young-transitive": {("helperlib", "1.0.1")},
    "cooldown-young-transitive-only": {("helperlib", "1.0.1")},
}
REPOSITORIES = sorted({row.repository for row in ROWS})


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers_in_process(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture
def uv(tmp_path: Path) -> Uv:
    return Uv(tmp_path / "uv")


def ids(rows: list[Row]) -> list[str]:
    return [row.id for row in rows]


class World:
    """One row's world with a checkout of its base."""

    def __init__(
        self, row: Row, folder: Path, servers: Servers, uv: Uv, *, outage: bool = False
    ) -> None:
        self.built: BuiltScenario = build_world(
            row, folder, servers, name=f"{row.id}-{folder.name}"
        )
        if not outage:
            servers.registry.control.clear_faults()
        self.project = PlainProject(folder / "checkout", uv)
        check_out(self.built.local, self.built.base_commit, self.project.path)

    def upgrade(self, row: Row) -> None:
        """Edit the requirement if the last target of the list lies outside it, and lock again."""
        *_, wanted = (d["arguments"] for d in row.decision_list() if d["tool"] == "apply_upgrade")
        manifest = tomllib.loads((self.project.path / "pyproject.toml").read_text())
        old = Requirement(manifest["project"]["dependencies"][0])
        if not old.specifier.contains(wanted["version"]):
            exact = str(old.specifier).startswith("==")
            new = f"=={wanted['version']}" if exact else f">={wanted['version']}"
            text = manifest["project"]["dependencies"][0]
            self.project.constrain(text, f"{old.name}{new}")
        done = self.project.upgrade(f"{wanted['dependency']}=={wanted['version']}")
        assert done.code == 0, done.err

    def repair(self, row: Row) -> None:
        """Make the edits of mode Scripted that nothing denies."""
        for decision in row.decision_list():
            if decision["tool"] != "edit_file" or row.cell("Scripted").denied:
                continue
            arguments = decision["arguments"]
            path = self.project.path / arguments["path"]
            text = path.read_text()
            assert text.count(arguments["old_text"]) == 1
            path.write_text(text.replace(arguments["old_text"], arguments["new_text"]))


@pytest.mark.parametrize("row", SUPPORTED, ids=ids(SUPPORTED))
def test_a_row_is_what_the_table_says(row: Row, tmp_path: Path, servers: Servers, uv: Uv) -> None:
    """Baseline, upgrade, repair and hidden check, one after the other in one checkout."""
    world = World(row, tmp_path / "world", servers, uv)
    before = world.project.locked()

    check_baseline(row, world)
    if row in UPGRADING:
        world.upgrade(row)
        check_what_breaks(row, world)
    if row in PUBLISHING:
        check_repair(row, world, before, tmp_path)


def check_baseline(row: Row, world: World) -> None:
    """The lock is fresh; the tests pass, or fail as `baseline_failing` lists."""
    assert world.project.uv.attempt(world.project.path, "lock", "--check").code == 0
    world.project.sync()
    installed = (world.project.path / ".venv" / "bin" / "pytest").exists()
    assert installed == (row.scenario != "no-tests")
    if not installed:
        return

    done = world.project.test(PYTHONDONTWRITEBYTECODE="1")

    cell = row.cell("Baseline")
    expected = cell.findings if cell.outcome == "baseline_failing" else ()
    assert (int(bool(expected)), expected) == (done.code, done.failing), done.output


def check_what_breaks(row: Row, world: World) -> None:
    """After the upgrade alone the tests show what a `regressed` cell lists, and nothing else."""
    project = world.project
    project.sync()
    if row.scenario == "no-tests":
        project.uv(
            project.path, "pip", "install", "--index-url", world.built.registry_url, "pytest"
        )

    done = project.test(PYTHONDONTWRITEBYTECODE="1")

    cell = row.cell("Baseline")
    expected = cell.findings if cell.outcome == "regressed" else ()
    if row.variant == "young-transitive":
        assert done.failing, "unbounded, the young release breaks the tests"
        return
    assert expected == done.failing, done.output


def check_repair(row: Row, world: World, before: dict[str, set[str]], folder: Path) -> None:
    """The repaired upgrade passes the hidden check, the base doesn't; nothing else changed."""
    project = world.project
    cell = row.cell("Scripted")
    for other in cell.moved:
        assert project.upgrade(f"{other.name}=={other.after}").code == 0
    world.repair(row)
    git(project.path, "add", "-A")
    git(project.path, "commit", "-q", "-m", "upgraded")
    git(project.path, "push", "-q", str(world.built.local), "HEAD:refs/heads/upgraded")
    commit = git(project.path, "rev-parse", "HEAD")

    good = run_hidden_check(world.built, commit, folder / "good", project.uv)
    bad = run_hidden_check(world.built, world.built.base_commit, folder / "bad", project.uv)

    assert good.code == 0, good.out
    assert bad.code == 1, "the hidden check must tell the base from the upgrade"
    changed = git(project.path, "diff", "--name-only", world.built.base_commit, commit)
    assert cell.files == tuple(changed.splitlines())
    assert cell.target is not None
    expected = {cell.target.name: (frozenset({cell.target.before}), frozenset({cell.target.after}))}
    for other in cell.moved:
        was = frozenset({other.before} if other.before else ())
        expected[other.name] = (was, frozenset({other.after}))
    assert expected == moved(before, project.locked())


@pytest.mark.parametrize("row", SUPPORTED, ids=ids(SUPPORTED))
def test_no_other_newer_version_exists(row: Row) -> None:
    """Whatever is newer is the target or listed as ineligible, so there is one right choice."""
    plan = load_repository(row.repository)
    newer = {
        (package.name, release.version)
        for package in plan.packages
        for release in package.releases
        if release.later
    }
    known = {(i.name, i.version) for i in row.ineligible}
    known |= {(m.name, m.after) for m in row.cell("Scripted").moved}
    known |= {
        (d["arguments"]["dependency"], d["arguments"]["version"])
        for d in row.decision_list()
        if d["tool"] == "apply_upgrade"
    }

    assert newer - known == NOT_CHOSEN.get(row.id, set())


class TestOutages:
    """Each outage of `registry-down` hits the phase it is named after, and none before it."""

    PHASES = ("acquire", "apply", "normalise")

    @pytest.mark.parametrize("phase", PHASES)
    def test_the_outage_hits_its_phase(
        self, phase: str, tmp_path: Path, servers: Servers, uv: Uv
    ) -> None:
        row = next(row for row in ROWS if row.id == f"registry-down-{phase}")
        world = World(row, tmp_path / "world", servers, uv, outage=True)
        project = world.project
        commands = {
            "acquire": ("sync", "--locked", "--no-install-project", "--no-build"),
            "apply": ("lock", "--no-build", "--upgrade-package", "tinylib==1.0.1"),
            "normalise": ("sync", "--locked", "--no-install-project", "--no-build"),
        }

        failed = ""
        for name in self.PHASES:
            if name == "apply":
                project.constrain("tinylib==1.0.0", "tinylib==1.0.1")
            if uv.attempt(project.path, *commands[name]).code:
                failed = name
                break
        servers.registry.control.clear_faults()

        assert phase == failed


class TestAges:
    """72 hours is old enough, 71 is not; counted when the registry starts."""

    @pytest.mark.parametrize(("name", "hours"), [("cooldown-71h", 71), ("cooldown-72h", 72)])
    def test_the_release_has_the_age(self, name: str, hours: int, servers: Servers) -> None:
        before = datetime.now(UTC)
        servers.registry.control.put_index(name, list(load_repository(name).packages))

        rows = servers.registry.control.call("GET", f"indexes/{name}")

        uploaded = max(datetime.fromisoformat(row["uploaded"]) for row in rows)
        age = before - uploaded
        assert timedelta(hours=hours) - timedelta(seconds=60) <= age <= timedelta(hours=hours)

    def test_only_the_major_release_is_newer(self) -> None:
        later = [r for p in load_repository("major").packages for r in p.releases if r.later]

        assert [2] == [Version(release.version).major for release in later]


@pytest.mark.parametrize("row", UNSUPPORTED, ids=ids(UNSUPPORTED))
def test_an_unsupported_repository_arrives_on_the_server(
    row: Row, tmp_path: Path, servers: Servers
) -> None:
    """What no checkout could hold is still a repository that can be cloned."""
    built = build_world(row, tmp_path / "world", servers, name=f"{row.id}-arrives")

    refs = servers.host.control.refs(f"fixtures/{built.name}")

    assert {"refs/heads/main": built.base_commit} == refs


def test_worlds_differ_in_nothing_but_addresses(tmp_path: Path, servers: Servers) -> None:
    """Built twice under the same names, a world has the same base commit."""
    seen = Seen("http://host.fixtures.svc", "http://registry.fixtures.svc")
    row = next(row for row in ROWS if row.id == "patch-safe")

    first = build_world(row, tmp_path / "first", servers, name="twice", seen=seen)
    del LOCKED[row.repository]
    second = build_world(row, tmp_path / "second", servers, name="twice", seen=seen)

    assert first.base_commit == second.base_commit
    lock = git(first.local, "show", f"{first.base_commit}:uv.lock")
    assert "http://registry.fixtures.svc/twice/files/tinylib-1.0.0-py3-none-any.whl" in lock
    assert servers.registry.url not in lock


@cache
def pins() -> dict[str, dict[str, str]]:
    read: dict[str, dict[str, str]] = tomllib.loads((FOLDER / "pins.toml").read_text())
    return read


@pytest.mark.parametrize("name", REPOSITORIES)
def test_sources_and_packages_do_not_drift(name: str, tmp_path: Path) -> None:
    """Ids are pinned (upgrade-run.md §15): who changes a scenario changes `pins.toml` with it."""
    plan = load_repository(name)
    repository = bare_repository(tmp_path / "bare.git")

    tree = write_tree(repository, plan.source_tree())
    files = (build(package, release) for package in plan.packages for release in package.releases)
    listed = "".join(f"{file.filename} {file.sha256}\n" for file in files)

    assert pins()[name] == {
        "tree": tree,
        "packages": hashlib.sha256(listed.encode()).hexdigest(),
    }
