"""The nearest closure (upgrade-run.md §8.2): what is bounded, in which order, how often."""

from collections.abc import Callable

from support.locks import Locked, lock_text, manifest_text, pair
from upgraderun_runner.ecosystems.base import LockModel, Target
from upgraderun_runner.ecosystems.python.closure import (
    CLOSURE_ROUNDS_MAX,
    Bounds,
    NearestClosure,
    forked_movers,
    movers,
)
from upgraderun_runner.ecosystems.python.lock import lock_model

TARGET = Target("aa", "1.0", "1.1")


def model(**versions: str) -> LockModel:
    entries = [Locked(name, v) for name, vs in versions.items() for v in vs.split()]
    return lock_model(pair(manifest_text("aa"), lock_text(*entries)))


def search(
    before: LockModel, resolve: Callable[[tuple[str, ...]], LockModel | None], start: LockModel
) -> tuple[LockModel, list[tuple[str, ...]]]:
    """Play the search against a resolver that answers a model or refuses."""
    nearest, current, tries = NearestClosure(Bounds()), start, []
    while (bounds := nearest.next(movers(before, current, TARGET))) is not None:
        tries.append(bounds.upgrades)
        answer = resolve(bounds.upgrades)
        if answer is None:
            nearest.refused()
        else:
            nearest.resolved()
            current = answer
    return current, tries


def test_movers_are_larger_than_patch_smallest_class_first() -> None:
    before = model(aa="1.0", bb="1.0", cc="2.2", dd="1.0.0", ee="1.0")
    after = model(aa="1.1", bb="2.0", cc="2.3", dd="1.0.1", ee="1.1", new="9.0")

    assert [("cc", ("2.3",)), ("ee", ("1.1",)), ("bb", ("1.1", "2"))] == [
        (mover.name, mover.bounds) for mover in movers(before, after, TARGET)
    ]


def test_a_name_in_several_versions_is_not_bounded_but_told() -> None:
    before, after = model(aa="1.0", bb="1.0 2.0"), model(aa="1.1", bb="1.0 3.0")

    assert () == movers(before, after, TARGET)
    assert ("bb",) == forked_movers(before, after, TARGET)


def test_a_forced_fork_counts_by_its_highest_version() -> None:
    """uv-facts §2: a forced mover became 2.1 and 3.0 where >=2 was asked."""
    before, after = model(aa="1.0", tt="1.5"), model(aa="1.1", tt="2.1 3.0")

    assert [("1.6", "2", "3")] == [mover.bounds for mover in movers(before, after, TARGET)]


def test_a_major_jump_goes_down_class_by_class_until_it_is_refused() -> None:
    """Corpus A5: werkzeug 3.1.9 becomes 2.3.8; a patch of 2.2 isn't enough."""
    before, free = model(aa="1.0", ww="2.2.3"), model(aa="1.1", ww="3.1.9")

    def resolve(upgrades: tuple[str, ...]) -> LockModel | None:
        return None if "ww<2.3" in upgrades else model(aa="1.1", ww="2.3.8")

    found, tries = search(before, resolve, free)

    assert model(aa="1.1", ww="2.3.8") == found
    assert [("ww<3",), ("ww<3", "ww<2.3")] == tries


def test_a_jump_over_several_majors_stops_at_the_first_that_fits() -> None:
    before, free = model(aa="1.0", ww="1.5"), model(aa="1.1", ww="9.1")

    def resolve(upgrades: tuple[str, ...]) -> LockModel | None:
        lowest = min(int(text.removeprefix("ww<").partition(".")[0]) for text in upgrades)
        return None if lowest < 3 else model(aa="1.1", ww=f"{lowest - 1}.7")

    found, tries = search(before, resolve, free)

    assert model(aa="1.1", ww="2.7") == found
    assert 4 >= len(tries)


def test_after_a_refusal_each_mover_is_tried_alone() -> None:
    before, free = model(aa="1.0", bb="1.0", cc="1.0"), model(aa="1.1", bb="2.0", cc="2.0")

    def resolve(upgrades: tuple[str, ...]) -> LockModel | None:
        return None if "bb<2" in upgrades else model(aa="1.1", bb="2.0", cc="1.0.1")

    found, tries = search(before, resolve, free)

    assert model(aa="1.1", bb="2.0", cc="1.0.1") == found
    assert [("bb<2", "cc<2"), ("bb<2",), ("cc<2",)] == tries


def test_five_tries_at_most() -> None:
    names = {f"n{index}": "1.0" for index in range(8)}
    before = model(aa="1.0", **names)
    free = model(aa="1.1", **dict.fromkeys(names, "2.0"))

    _, tries = search(before, lambda _: None, free)

    assert CLOSURE_ROUNDS_MAX == len(tries) == 5


def test_bounds_add_up() -> None:
    bounds = (
        Bounds().with_bounds([("bb", "3"), ("aa", "2")]).with_bounds([("bb", "2.5"), ("bb", "3")])
    )

    assert ("aa<2", "bb<3", "bb<2.5") == bounds.upgrades
