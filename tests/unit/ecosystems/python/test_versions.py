"""Classes, bounds and Python ranges (upgrade-run.md §5.1)."""

import pytest
from packaging.version import Version

from upgraderun_runner.ecosystems.base import ChangeClass
from upgraderun_runner.ecosystems.python.versions import (
    bounds_between,
    classify,
    is_preliminary,
    parse_version,
    uncovered,
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.27.2", "0.28.1", ChangeClass.MINOR),
        ("3.1.4", "3.1.6", ChangeClass.PATCH),
        ("1.0", "1.0.post1", ChangeClass.PATCH),
        ("1.2", "1.2.0.1", ChangeClass.PATCH),
        ("2.2.3", "3.1.9", ChangeClass.MAJOR),
        ("2024.1", "2025.1", ChangeClass.MAJOR),
        ("1!1.0", "2!1.0", ChangeClass.MAJOR),
        ("1", "1.1", ChangeClass.MINOR),
    ],
)
def test_the_first_differing_segment_names_the_class(
    old: str, new: str, expected: ChangeClass
) -> None:
    assert expected is classify(Version(old), Version(new))


def test_classes_are_ordered() -> None:
    assert [0, 1, 2] == [c.rank for c in (ChangeClass.PATCH, ChangeClass.MINOR, ChangeClass.MAJOR)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("2.2.3", "2.2.9", ()),
        ("2.2.3", "2.3.8", ("2.3",)),
        ("2.2.3", "3.1.9", ("2.3", "3")),
        ("1.5", "4.0", ("1.6", "2", "3", "4")),
        ("1!2.2", "1!3.0", ("1!2.3", "1!3")),
        ("2.2", "1!1.0", ("2.3", "3")),
    ],
)
def test_bounds_lead_from_the_old_version_to_the_new_one(
    old: str, new: str, expected: tuple[str, ...]
) -> None:
    assert expected == bounds_between(Version(old), Version(new))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.0rc1", True), ("1.0.dev3", True), ("1.0+local", True), ("1.0", False)],
)
def test_preliminary_versions(text: str, expected: bool) -> None:
    assert expected is is_preliminary(Version(text))


def test_a_version_outside_pep_440_is_none() -> None:
    assert parse_version("2004d-final-really") is None


class TestUncovered:
    """`Requires-Python` excludes part of the project's range: `toolchain` (corpus A1x, A4n)."""

    def test_a_raised_floor_loses_a_python(self) -> None:
        assert Version("3.8.0") == uncovered(">=3.9", ">=3.8", (), ">=3.8")

    def test_the_same_floor_loses_nothing(self) -> None:
        assert uncovered(">=3.8", ">=3.8", (), ">=3.7") is None

    def test_a_patch_floor_inside_a_minor_is_seen(self) -> None:
        assert Version("3.9.0") == uncovered(">=3.9.2,!=3.9.1", ">=3.9", (), "")

    def test_a_ceiling_counts(self) -> None:
        assert Version("3.13.0") == uncovered(">=3.8,<3.13", ">=3.8", (), "")

    def test_a_ceiling_that_the_locked_version_has_too_is_no_loss(self) -> None:
        assert uncovered(">=3.8,<3.13", ">=3.8", (), ">=3.7,<3.13") is None

    def test_below_four_is_no_ceiling(self) -> None:
        assert uncovered(">=3.8,<4.0", ">=3.8", (), "") is None

    def test_a_fork_needs_its_own_part_only(self) -> None:
        marker = "python_full_version >= '3.10'"

        assert uncovered(">=3.10", ">=3.8", (marker,), "") is None
        assert Version("3.10.0") == uncovered(">=3.11", ">=3.8", (marker,), "")

    def test_a_platform_in_the_marker_does_not_hide_a_python(self) -> None:
        marker = "python_full_version < '3.9' and sys_platform == 'win32'"

        assert Version("3.8.0") == uncovered(">=3.9", ">=3.8", (marker,), "")

    def test_a_broken_range_excludes_nothing(self) -> None:
        assert uncovered(">=3.8.*.x", ">=3.8", (), "") is None
