"""Gate A and Gate B (upgrade-run.md §8.3, §8.4): each violation, and what is no violation."""

from support.locks import INDEX, Locked, lock_text, manifest_text, pair
from upgraderun_runner.ecosystems.base import LockModel, Pair, Target
from upgraderun_runner.ecosystems.python.gates import changes, drift, judge_pair
from upgraderun_runner.ecosystems.python.lock import lock_model

TARGET = Target("aa", "1.0", "1.1")
NEEDS_BB = ('name = "bb"',)
BASE = (Locked("aa", "1.0"), Locked("bb", "1.0"), Locked("cc", "1.0"))


HEAD = 'version = 1\nrequires-python = ">=3.10"'


def both(*entries: Locked, manifest: str = manifest_text("aa>=1", "cc"), head: str = HEAD) -> Pair:
    return pair(manifest, lock_text(*entries, head=head))


def codes(before: Pair, after: Pair, target: Target = TARGET) -> list[tuple[str, str]]:
    return [(v.code, v.subject) for v in judge_pair(before, after, target)]


def upgraded(*others: Locked, needs: tuple[str, ...] = ()) -> Pair:
    names = {entry.name for entry in others}
    kept = [entry for entry in BASE if entry.name not in names and entry.name != "aa"]
    return both(Locked("aa", "1.1", needs=needs), *kept, *others)


def test_the_target_alone_is_no_violation() -> None:
    assert [] == codes(both(*BASE), upgraded())


def test_a_closure_that_the_target_needs_may_rise_and_enter() -> None:
    after = upgraded(
        Locked("bb", "3.0", needs=('name = "dd"',)), Locked("dd", "1.0"), needs=NEEDS_BB
    )

    assert [] == codes(both(*BASE), after)


def test_entries_may_leave() -> None:
    after = both(Locked("aa", "1.1"), Locked("cc", "1.0"))

    assert [] == codes(both(*BASE), after)
    assert [("aa", "target"), ("bb", "left")] == [
        (change.name, change.kind)
        for change in changes(lock_model(both(*BASE)), lock_model(after), "aa")
    ]


def test_target_not_set() -> None:
    assert [("target_not_set", "aa")] == codes(both(*BASE), both(*BASE))


def test_a_plain_upgrade_that_forks_is_not_the_target() -> None:
    """Corpus A1, trap: entries 2.1.5 *and* 3.0.4 aren't markupsafe upgraded to one version."""
    after = both(Locked("aa", "1.1"), Locked("aa", "2.0"), *BASE[1:])

    assert [("target_not_set", "aa")] == codes(both(*BASE), after)


def test_of_a_forked_target_only_its_own_fork_moves() -> None:
    before = both(Locked("aa", "0.9"), *BASE)

    assert [] == codes(before, both(Locked("aa", "0.9"), Locked("aa", "1.1"), *BASE[1:]))
    assert [("target_not_set", "aa")] == codes(before, both(Locked("aa", "1.1"), *BASE[1:]))


def test_setting_changed() -> None:
    before = both(*BASE)
    more = both(
        Locked("aa", "1.1"),
        *BASE[1:],
        manifest=manifest_text("aa>=1", "cc", more="[tool.uv]\nprerelease = 'allow'\n"),
    )
    head = both(Locked("aa", "1.1"), *BASE[1:], head='version = 1\nrequires-python = ">=3.11"')

    assert [("setting_changed", "manifest:tool.uv.prerelease")] == codes(before, more)
    assert [("setting_changed", "lock:requires-python")] == codes(before, head)


def test_the_one_constraint_may_change_only_if_it_excluded_the_target() -> None:
    after = (Locked("aa", "1.1"), *BASE[1:])

    def changed(before: str, then: str) -> list[tuple[str, str]]:
        return codes(
            both(*BASE, manifest=manifest_text(before, "cc")),
            both(*after, manifest=manifest_text(then, "cc")),
        )

    assert [] == changed("aa==1.0", "aa==1.1")
    assert [("setting_changed", "dependencies:aa")] == changed("aa>=1", "aa>=1.1")
    assert [("setting_changed", "dependencies:aa")] == changed("aa==1.0", "aa==1.2")


def test_another_constraint_may_not_change() -> None:
    after = both(Locked("aa", "1.1"), *BASE[1:], manifest=manifest_text("aa>=1", "cc<9"))

    assert [("setting_changed", "dependencies:cc")] == codes(both(*BASE), after)


def test_direct_dependencies_may_not_come_or_go() -> None:
    after = both(Locked("aa", "1.1"), *BASE[1:], manifest=manifest_text("aa>=1", "dd"))

    assert [
        ("direct_dependency_removed", "cc"),
        ("direct_became_indirect", "cc"),
        ("direct_dependency_added", "dd"),
    ] == codes(both(*BASE), after)


def test_an_extra_of_a_requirement_is_part_of_it() -> None:
    after = both(Locked("aa", "1.1"), *BASE[1:], manifest=manifest_text("aa[x]>=1", "cc"))

    assert [("direct_dependency_removed", "aa"), ("direct_dependency_added", "aa")] == codes(
        both(*BASE), after
    )


def test_version_decreased() -> None:
    after = upgraded(Locked("bb", "0.9"), needs=NEEDS_BB)

    assert [("version_decreased", "bb")] == codes(both(*BASE), after)


def test_what_the_target_does_not_need_may_not_move() -> None:
    assert [("increase_outside_closure", "bb")] == codes(both(*BASE), upgraded(Locked("bb", "2.0")))
    assert [("entry_outside_closure", "dd")] == codes(both(*BASE), upgraded(Locked("dd", "1.0")))


def test_a_prerelease_in_the_closure_is_told_unless_the_repository_allows_them() -> None:
    entries = (Locked("aa", "1.1", needs=NEEDS_BB), Locked("bb", "2.0rc1"), Locked("cc", "1.0"))
    allowing = manifest_text("aa>=1", "cc", more="[tool.uv]\nprerelease = 'allow'\n")

    assert [("closure_not_final", "bb")] == codes(both(*BASE), both(*entries))
    assert [] == codes(both(*BASE, manifest=allowing), both(*entries, manifest=allowing))


def test_source_changed_for_a_kept_entry() -> None:
    mirror = Locked("cc", "1.0", index="https://mirror.example/simple")

    assert [("source_changed", "cc")] == codes(both(*BASE), upgraded(mirror))


def test_source_changed_for_a_new_entry_from_elsewhere() -> None:
    stranger = Locked("dd", "1.0", index="https://mirror.example/simple")
    after = upgraded(stranger, needs=('name = "dd"',))

    assert [("source_changed", "dd")] == codes(both(*BASE), after)


def test_a_file_from_an_unknown_origin() -> None:
    """uv-facts §4: no URL in the after-lock whose origin isn't in the base lock or the policy."""
    stranger = Locked("dd", "1.0", files="https://evil.example/f")

    assert {("source_changed", "dd")} == set(
        codes(both(*BASE), upgraded(stranger, needs=('name = "dd"',)))
    )


def test_integrity_changed() -> None:
    wheel = BASE[2].wheel_name
    other = Locked("cc", "1.0", hashes={wheel: "b" * 64})

    assert [("integrity_changed", f"cc 1.0 {wheel}")] == codes(both(*BASE), upgraded(other))


def test_a_file_that_went_is_a_violation_and_one_that_came_is_not() -> None:
    two = {"cc-1.0-py3-none-any.whl": "a" * 64, "cc-1.0-cp311-none-any.whl": "c" * 64}
    more = Locked("cc", "1.0", hashes=two)

    assert [] == codes(both(*BASE), upgraded(more))
    assert [("integrity_changed", "cc 1.0 cc-1.0-cp311-none-any.whl")] == codes(
        both(*BASE[:2], more), upgraded()
    )


def test_every_violation_is_listed() -> None:
    after = upgraded(Locked("bb", "0.5"), Locked("dd", "1.0"), Locked("cc", "2.0"))

    assert [
        ("version_decreased", "bb"),
        ("increase_outside_closure", "bb"),
        ("increase_outside_closure", "cc"),
        ("entry_outside_closure", "dd"),
    ] == sorted(codes(both(*BASE), after), key=lambda row: row[1])


class TestDrift:
    """The neutral re-lock shows what moves without any upgrade (uv-facts, §8.5)."""

    def models(self, *neutral: Locked) -> tuple[LockModel, LockModel]:
        return lock_model(both(*BASE)), lock_model(both(*neutral))

    def test_a_version_that_the_registry_moves_is_a_violation(self) -> None:
        violations, _ = drift(*self.models(Locked("aa", "1.0"), Locked("bb", "1.2"), BASE[2]))

        assert [("increase_outside_closure", "bb")] == [(v.code, v.subject) for v in violations]

    def test_a_file_that_the_registry_adds_is_noted(self) -> None:
        two = {"cc-1.0-py3-none-any.whl": "a" * 64, "cc-1.0-cp311-none-any.whl": "c" * 64}

        violations, notes = drift(*self.models(*BASE[:2], Locked("cc", "1.0", hashes=two)))

        assert () == violations
        assert ("cc 1.0: 1 files were published since the lock",) == notes


def test_a_registry_with_another_spelling_of_its_url_is_the_same() -> None:
    slash = INDEX + "/"
    manifest = manifest_text("aa>=1", more=f'[[tool.uv.index]]\nurl = "{slash}"\ndefault = true\n')
    before = both(Locked("aa", "1.0", index=slash), manifest=manifest)
    after = both(
        Locked("aa", "1.1", index=slash, needs=NEEDS_BB),
        Locked("bb", "1.0", index=slash),
        manifest=manifest,
    )

    assert [] == codes(before, after)
