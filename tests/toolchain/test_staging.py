"""Staging with the real uv: closure, cooldown, gates, forks, stub back end (upgrade-run.md §8)."""

from dataclasses import replace

import pytest

from support.fixtures.packages import Package
from support.pythonbench import Bench, release
from upgraderun_runner.ecosystems.base import Pair, Select, Target, Unsupported

pytestmark = pytest.mark.slow

UPGRADE = Target("aa", "1.0.0", "1.1.0")
VICTIM = (release("1.0.0"), release("1.1.0", "ww>=2"))
YOUNG = {"age_hours": 71.0, "uploaded": ""}


def ww(*versions: str, **more: object) -> Package:
    return Package("ww", tuple(release(v, name="ww", **more) for v in versions))


async def test_a_forced_mover_goes_to_the_nearest_version(bench: Bench) -> None:
    """Corpus A5: the resolver alone would take 3.1."""
    old = release("1.0.0", "ww")
    bench.publish(Package("aa", (old, VICTIM[1])), ww("1.5", "2.1", "2.3", "3.1"))
    tree = bench.snapshot(bench.manifest("aa>=1"), {}, "aa==1.0.0", "ww==1.5")
    acquired = await bench.acquire(tree)

    nearest = await bench.apply(tree, acquired, UPGRADE)
    latest = await bench.apply(tree, acquired, UPGRADE, Select.LATEST)

    assert ("", ()) == (nearest.outcome, nearest.violations)
    assert [("aa", ("1.1.0",), ""), ("ww", ("2.3",), "3.1")] == [
        (change.name, change.after, change.held_from) for change in nearest.changes
    ]
    assert [("aa", ("1.1.0",), ""), ("ww", ("3.1",), "")] == [
        (change.name, change.after, change.held_from) for change in latest.changes
    ]
    assert nearest.before == bench.ecosystem.read_pair(tree, ".")
    normal = await bench.normalize(tree, nearest.after, acquired, UPGRADE)
    assert ("", False) == (normal.outcome, normal.changed)


class TestYoungClosure:
    """What enters or rises obeys the same cooldown (§5.3)."""

    async def test_an_older_version_is_taken(self, bench: Bench) -> None:
        young = replace(release("2.4", name="ww"), **YOUNG)  # type: ignore[arg-type]  # fields by name
        bench.publish(Package("aa", VICTIM), Package("ww", (release("2.0", name="ww"), young)))
        tree = bench.snapshot(bench.manifest("aa>=1"), {}, "aa==1.0.0")
        acquired = await bench.acquire(tree)

        staged = await bench.apply(tree, acquired, UPGRADE)

        assert ("", ()) == (staged.outcome, staged.violations)
        assert [("2.0",)] == [c.after for c in staged.changes if c.name == "ww"]
        assert ("ww 2.4 is too young and was held",) == staged.notes

    async def test_without_an_older_one_it_is_refused(self, bench: Bench) -> None:
        young = replace(release("2.4", name="ww"), **YOUNG)  # type: ignore[arg-type]  # fields by name
        bench.publish(Package("aa", VICTIM), Package("ww", (young,)))
        tree = bench.snapshot(bench.manifest("aa>=1"), {}, "aa==1.0.0")
        acquired = await bench.acquire(tree)

        staged = await bench.apply(tree, acquired, UPGRADE)

        assert "admission_refused" == staged.outcome
        assert [("closure_too_young", "ww", "2.4")] == [
            (v.code, v.subject, v.observed) for v in staged.violations
        ]


async def test_a_conflict_is_refused_with_the_resolvers_words(bench: Bench) -> None:
    """Corpus A5c: never "acquisition failed"."""
    bench.publish(Package("aa", VICTIM), ww("1.5", "2.1"))
    tree = bench.snapshot(bench.manifest("aa>=1", "ww<2"), {}, "aa==1.0.0")
    acquired = await bench.acquire(tree)

    staged = await bench.apply(tree, acquired, UPGRADE)

    assert ("admission_refused", False) == (staged.outcome, staged.changed)
    assert ["resolution_refused"] == [violation.code for violation in staged.violations]
    assert staged.violations[0].observed.startswith("error: No solution found")
    assert "ww>=2" in staged.text


async def test_a_version_for_a_newer_python_is_told_as_such(bench: Bench) -> None:
    """Corpus A1x, in case eligibility ever let it through."""
    newer = release("1.1.0", requires_python=">=3.12")
    bench.publish(Package("aa", (release("1.0.0"), newer)))
    tree = bench.snapshot(bench.manifest("aa>=1"), {}, "aa==1.0.0")
    acquired = await bench.acquire(tree)

    listed = await bench.candidates(tree, acquired)
    staged = await bench.apply(tree, acquired, UPGRADE)

    assert ((), True) == (listed.ranked, listed.toolchain_alone_blocks)
    assert "requires_newer_toolchain" == staged.outcome


async def test_of_a_fork_only_the_images_part_moves(bench: Bench) -> None:
    """uv-facts §2: an unpinned fork rises, a pin without marker collapses both."""
    releases = (
        release("1.0.0"),
        release("1.2.0"),
        release("2.0.0", requires_python=">=3.11"),
        release("2.0.1", requires_python=">=3.11"),
    )
    bench.publish(Package("aa", releases))
    manifest = bench.manifest(
        "aa<2 ; python_full_version < '3.11'",
        "aa>=2 ; python_full_version >= '3.11'",
        python=">=3.10",
    ).replace('dev = ["pytest"]', "dev = []")
    tree = bench.snapshot(
        manifest,
        {},
        "aa==1.0.0 ; python_full_version < '3.11'",
        "aa==2.0.0 ; python_full_version >= '3.11'",
    )
    acquired = await bench.acquire(tree)

    listed = await bench.candidates(tree, acquired)
    staged = await bench.apply(tree, acquired, listed.ranked[0])

    assert Target("aa", "2.0.0", "2.0.1") == listed.ranked[0]
    assert ("", ()) == (staged.outcome, staged.violations)
    assert [("aa", ("1.0.0", "2.0.0"), ("1.0.0", "2.0.1"))] == [
        (change.name, change.before, change.after) for change in staged.changes
    ]


class TestRegistryDrift:
    """The neutral re-lock shows what the registry changed since (uv-facts, §8.5)."""

    async def test_a_file_that_came_later_is_noted(self, bench: Bench) -> None:
        bench.publish(Package("aa", VICTIM), ww("2.0"), Package("cc", (release("1", name="cc"),)))
        tree = bench.snapshot(bench.manifest("aa>=1", "cc"), {}, "aa==1.0.0")
        acquired = await bench.acquire(tree)
        later = release("1", name="cc", wheel_tag="cp311-cp311-any")
        both = Package("cc", (release("1", name="cc"), later))
        bench.publish(Package("aa", VICTIM), ww("2.0"), both)

        staged = await bench.apply(tree, acquired, UPGRADE)

        assert ("", ()) == (staged.outcome, staged.violations)
        assert ("cc 1: 1 files were published since the lock",) == staged.notes

    async def test_changed_bytes_of_a_kept_version_are_refused(self, bench: Bench) -> None:
        def publish(text: str) -> None:
            other = release("1", name="cc", sources={"cc/__init__.py": text})
            bench.publish(Package("aa", VICTIM), ww("2.0"), Package("cc", (other,)))

        publish("x = 1\n")
        tree = bench.snapshot(bench.manifest("aa>=1", "cc"), {}, "aa==1.0.0")
        acquired = await bench.acquire(tree)
        publish("x = 2\n")

        staged = await bench.apply(tree, acquired, UPGRADE)

        assert "admission_refused" == staged.outcome
        assert {"integrity_changed"} == {violation.code for violation in staged.violations}

    async def test_a_locked_version_that_vanished_is_refused(self, bench: Bench) -> None:
        bench.publish(Package("aa", VICTIM), ww("2.0"), Package("cc", (release("1", name="cc"),)))
        tree = bench.snapshot(bench.manifest("aa>=1", "cc"), {}, "aa==1.0.0")
        acquired = await bench.acquire(tree)
        bench.publish(Package("aa", VICTIM), ww("2.0"), Package("cc", (release("2", name="cc"),)))

        staged = await bench.apply(tree, acquired, UPGRADE)

        assert "admission_refused" == staged.outcome
        assert "increase_outside_closure" in {violation.code for violation in staged.violations}


BACKEND = """\
import pathlib
MARK = pathlib.Path({mark!r})
def _run(*arguments, **more):
    MARK.write_text("ran")
    raise SystemExit("the back end ran")
get_requires_for_build_wheel = prepare_metadata_for_build_wheel = build_wheel = _run
get_requires_for_build_editable = prepare_metadata_for_build_editable = build_editable = _run
"""
IN_TREE = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


async def test_resolving_a_dynamic_version_runs_no_repository_code(bench: Bench) -> None:
    """security.md H32: a back end that leaves a mark leaves none in acquire and mutate."""
    mark = bench.root / "mark"
    bench.publish(Package("aa", VICTIM), ww("2.0"))
    manifest = bench.manifest(
        "aa>=1", more=IN_TREE + '[project.optional-dependencies]\nx = ["ww"]\n'
    )
    static = bench.snapshot(manifest, {}, "aa==1.0.0")
    dynamic = manifest.replace('version = "1.0"', 'dynamic = ["version"]')
    lock = (
        (static / "uv.lock")
        .read_text()
        .replace('version = "1.0"\nsource = { edit', "source = { edit")
    )
    tree = bench.snapshot(
        dynamic, {"backend.py": BACKEND.format(mark=str(mark))}, lock=lock.encode()
    )

    acquired = await bench.acquire(tree)
    staged = await bench.apply(tree, acquired, UPGRADE)
    normal = await bench.normalize(tree, staged.after, acquired, UPGRADE)

    assert not mark.exists()
    assert ("", "") == (staged.outcome, normal.outcome)
    assert b"ur_stub" not in staged.after.manifest + staged.after.lock
    after = bench.changed(tree, normal.after)
    record = await bench.validate(after, await bench.acquire(after, acquired))
    assert mark.exists()
    assert ["build:manifest:the build back end failed"] == [
        finding.key for check in record.checks for finding in check.findings
    ]


async def test_the_edited_constraint_and_the_lock_fit_together(bench: Bench) -> None:
    bench.publish(Package("aa", (release("1.0.0"), release("1.1.0"))))
    tree = bench.snapshot(bench.manifest("aa==1.0.0"), {})
    acquired = await bench.acquire(tree)

    staged = await bench.apply(tree, acquired, UPGRADE)
    normal = await bench.normalize(tree, staged.after, acquired, UPGRADE)

    assert ["aa==1.1.0"] == [edit.after for edit in staged.edits]
    assert ("", False, ()) == (normal.outcome, normal.changed, normal.violations)


async def test_a_pair_that_is_not_normal_is_normalised_and_judged(bench: Bench) -> None:
    bench.publish(Package("aa", (release("1.0.0"), release("1.1.0"))))
    tree = bench.snapshot(bench.manifest("aa==1.0.0"), {})
    acquired = await bench.acquire(tree)
    base = bench.ecosystem.read_pair(tree, ".")
    edited = Pair(base.manifest.replace(b"aa==1.0.0", b"aa==1.1.0"), base.lock)

    normal = await bench.normalize(tree, edited, acquired, UPGRADE)
    wrong = await bench.normalize(tree, base, acquired, UPGRADE)

    assert ("", True) == (normal.outcome, normal.changed)
    assert "normalization_refused" == wrong.outcome
    assert {"target_not_set", "target_not_resolved"} == {v.code for v in wrong.violations}


class TestLockNotReproducible:
    async def test_a_lock_that_does_not_follow_from_the_manifest(self, bench: Bench) -> None:
        bench.publish(Package("aa", (release("1.0.0"), release("1.1.0"))))
        old = bench.snapshot(bench.manifest("aa==1.0.0"), {})
        lock = (old / "uv.lock").read_bytes()
        tree = bench.snapshot(bench.manifest("aa==1.1.0"), {}, lock=lock)

        with pytest.raises(Unsupported) as caught:
            await bench.acquire(tree)

        assert ["lock_not_reproducible"] == [refusal.code for refusal in caught.value.refusals]


async def test_the_plan_of_each_step_comes_before_its_first_command(bench: Bench) -> None:
    bench.publish(Package("aa", VICTIM), ww("2.0"))
    tree = bench.snapshot(bench.manifest("aa>=1"), {}, "aa==1.0.0")

    acquired = await bench.acquire(tree)
    staged = await bench.apply(tree, acquired, UPGRADE)
    await bench.normalize(tree, staged.after, acquired, UPGRADE)

    for plan, step in zip(bench.plans, bench.steps, strict=True):
        ran = [command.argv for command in step.executed]
        assert [command.argv for command in plan] == [
            argv for argv in ran if argv in {command.argv for command in plan}
        ]
