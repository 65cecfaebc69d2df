"""Eligibility and ranking (upgrade-run.md §5.1 to §5.3): every newer version, every reason."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from packaging.tags import Tag
from packaging.version import Version

from support.locks import Locked, lock_text, manifest_text, pair
from upgraderun_runner.ecosystems.base import (
    Candidate,
    CandidateList,
    PlatformFacts,
    Select,
    SelectionOptions,
)
from upgraderun_runner.ecosystems.python.candidates import (
    Judgement,
    Upgradable,
    judge_page,
    rank,
    upgradables,
)
from upgraderun_runner.ecosystems.python.registry import ProjectPage, Release, ReleaseFile

FACTS = PlatformFacts("3.11.2", "CPython", "x86_64", "glibc", "2.36")
ANY = frozenset({Tag("py3", "none", "any")})
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOURS = 3600
OPTIONS = SelectionOptions(Select.SMALLEST, False, "", "", 72 * HOURS, ())
OLD = "2024-01-01T00:00:00Z"


def release(version: str, requires: str = ">=3.8", **changes: object) -> Release:
    file = ReleaseFile(f"aa-{version}-py3-none-any.whl", requires, False, OLD, ANY)
    return Release(Version(version), (replace(file, **changes),))  # type: ignore[arg-type]  # fields of the file by name


def subject(
    constraint: str = "aa>=1", current: str = "1.2.0", markers: tuple[str, ...] = ()
) -> Upgradable:
    lock = lock_text(Locked("aa", current, markers=markers))
    return upgradables(pair(manifest_text(constraint), lock), FACTS, OPTIONS)[0][0]


SUBJECT = subject()


def judged(
    *releases: Release,
    options: SelectionOptions = OPTIONS,
    subject: Upgradable = SUBJECT,
    requires_python: str = ">=3.10",
) -> dict[str, list[str]]:
    judgement = Judgement(options, NOW, requires_python, FACTS, ANY)
    found = judge_page(subject, ProjectPage("aa", releases), judgement)
    return {c.version: [reason.code for reason in c.reasons] for c in found}


def test_only_newer_versions_are_listed() -> None:
    assert {"1.2.1": [], "1.3": []} == judged(*map(release, ("1.1", "1.2.0", "1.2.1", "1.3")))


def test_preliminary_versions() -> None:
    assert {"1.3rc1": ["prerelease"], "1.3.dev1": ["prerelease"]} == judged(
        release("1.3rc1"), release("1.3.dev1")
    )


def test_a_yanked_version_is_withdrawn() -> None:
    """Corpus A2m: 0.0.13 resolves when pinned and must not be a candidate."""
    assert {"1.3": ["withdrawn"]} == judged(release("1.3", yanked=True))


def test_a_version_with_one_good_file_is_not_withdrawn() -> None:
    good, bad = release("1.3").files[0], release("1.3", yanked=True).files[0]

    assert {"1.3": []} == judged(Release(Version("1.3"), (good, bad)))


def test_a_major_needs_permission() -> None:
    assert {"2.0": ["class_not_allowed"]} == judged(release("2.0"))
    assert {"2.0": []} == judged(release("2.0"), options=replace(OPTIONS, allow_major=True))


class TestToolchain:
    """`Requires-Python` excludes the image or part of the project's range."""

    def test_the_image_is_too_old(self) -> None:
        assert {"1.3": ["toolchain"]} == judged(release("1.3", ">=3.12"))

    def test_the_projects_range_is_cut(self) -> None:
        """Corpus A4n: the installed 3.11 is no excuse."""
        assert {"1.3": ["toolchain"]} == judged(
            release("1.2.0", ">=3.8"), release("1.3", ">=3.9"), requires_python=">=3.8"
        )

    def test_a_fork_is_judged_by_its_own_part(self) -> None:
        fork = subject(markers=("python_full_version >= '3.10'",))

        assert {"1.3": []} == judged(
            release("1.3", ">=3.10"), subject=fork, requires_python=">=3.8"
        )

    def test_alone_it_decides_the_outcome(self) -> None:
        def listed(*codes: list[str]) -> CandidateList:
            rows = [judged_candidate(str(n), reasons) for n, reasons in enumerate(codes, 2)]
            return CandidateList("", tuple(rows), ())

        assert listed(["toolchain"], ["class_not_allowed"]).toolchain_alone_blocks
        assert not listed(["toolchain", "class_not_allowed"]).toolchain_alone_blocks
        assert not listed([]).toolchain_alone_blocks


def judged_candidate(version: str, codes: list[str]) -> Candidate:
    from upgraderun_runner.ecosystems.base import ChangeClass, Ineligibility

    reasons = tuple(Ineligibility(code, "") for code in codes)
    return Candidate("aa", "1", version, ChangeClass.MAJOR, "", reasons)


def test_a_specifier_that_cannot_be_edited() -> None:
    assert {"1.3": ["constraint_form"]} == judged(release("1.3"), subject=subject("aa<1.3"))


def test_a_specifier_that_admits_the_version_may_have_any_form() -> None:
    assert {"1.3": []} == judged(release("1.3"), subject=subject("aa!=1.4,<2"))


def test_no_wheel_for_the_platform() -> None:
    windows = frozenset({Tag("cp311", "cp311", "win_amd64")})

    assert {"1.3": ["no_binary"], "1.4": ["no_binary"]} == judged(
        release("1.3", tags=windows), release("1.4", tags=frozenset())
    )


def test_wishes_and_prohibitions() -> None:
    version = release("1.3")

    def reasons(**changes: object) -> list[str]:
        return judged(version, options=replace(OPTIONS, **changes))["1.3"]  # type: ignore[arg-type]  # fields by name

    assert ["denied"] == reasons(deny=("AA",))
    assert ["not_named"] == reasons(dependency="bb")
    assert [] == reasons(dependency="Aa")
    assert ["not_pinned_version"] == reasons(version="1.3.1")
    assert [] == reasons(version="1.3.0")
    assert ["already_proposed"] == reasons(already_proposed=(("aa", "1.3"),))
    assert ["declined_by_human"] == reasons(declined=(("aa", "1.3"),))
    assert [] == reasons(declined=(("aa", "1.3"),), version="1.3")


def test_a_pin_that_is_not_newer_gives_no_candidate() -> None:
    assert {} == judged(release("1.1"), options=replace(OPTIONS, version="1.1"))


@pytest.mark.parametrize(
    ("uploaded", "expected"),
    [
        ("2026-11-27T12:00:00Z", []),
        ("2026-11-27T12:00:00.001Z", ["too_young"]),
        ("2026-11-27T13:00:00+01:00", []),
        ("2026-12-01T00:00:00Z", ["publish_time_unknown"]),
        ("", ["publish_time_unknown"]),
        ("2024-01-01T00:00:00", ["publish_time_unknown"]),
    ],
)
def test_equal_to_the_limit_is_old_enough(uploaded: str, expected: list[str]) -> None:
    """security.md H35: the minimum release age, from a publish time that is known."""
    assert {"1.3": expected} == judged(release("1.3", uploaded=uploaded))


def test_the_youngest_file_decides() -> None:
    old, young = release("1.3").files[0], release("1.3", uploaded="2026-11-30T11:00:00Z").files[0]

    assert {"1.3": ["too_young"]} == judged(Release(Version("1.3"), (old, young)))


def test_no_cooldown_asks_for_no_time() -> None:
    options = replace(OPTIONS, minimum_age_seconds=0)

    assert {"1.3": []} == judged(release("1.3", uploaded=""), options=options)


def test_a_reason_names_age_time_and_limit() -> None:
    judgement = Judgement(OPTIONS, NOW, ">=3.10", FACTS, ANY)
    page = ProjectPage("aa", (release("1.3", uploaded="2026-11-29T11:30:00Z"),))

    reason = next(judge_page(subject(), page, judgement)).reasons[0]

    assert (
        "24 h 30 min old (youngest file 2026-11-29T11:30:00Z), the limit is 72 h 0 min"
        == reason.detail
    )


class TestRanking:
    """§5.2."""

    def candidates(self, **versions: list[str]) -> tuple[Candidate, ...]:
        found: list[Candidate] = []
        for name, rows in versions.items():
            lock = lock_text(Locked(name, "1.2.0"))
            one = upgradables(pair(manifest_text(name), lock), FACTS, OPTIONS)[0][0]
            options = replace(OPTIONS, allow_major=True)
            page = ProjectPage(name, tuple(release(v) for v in rows))
            found += judge_page(one, page, Judgement(options, NOW, ">=3.10", FACTS, ANY))
        return tuple(found)

    def test_smallest_takes_the_smallest_class_then_the_name_then_the_highest(self) -> None:
        found = self.candidates(zz=["1.2.1", "1.2.3", "1.9"], bb=["1.3", "1.4", "2.0"])

        assert [("zz", "1.2.3"), ("bb", "1.4"), ("zz", "1.9"), ("bb", "2.0")] == [
            (target.name, target.to_version) for target in rank(found, Select.SMALLEST)
        ]

    def test_latest_takes_each_dependencys_highest_smallest_class_first(self) -> None:
        found = self.candidates(zz=["1.2.1", "1.2.3"], bb=["1.3", "2.0"], cc=["1.10", "1.9"])

        assert [("zz", "1.2.3"), ("cc", "1.10"), ("bb", "2.0")] == [
            (target.name, target.to_version) for target in rank(found, Select.LATEST)
        ]


class TestSubjects:
    """Candidates are direct dependencies, each with the entry that the image would install."""

    def test_the_fork_of_the_image_is_the_current_version(self) -> None:
        lock = lock_text(
            Locked("aa", "1.0", markers=("python_full_version < '3.10'",)),
            Locked("aa", "2.0", markers=("python_full_version >= '3.10'",)),
        )

        found, _ = upgradables(pair(manifest_text("aa"), lock), FACTS, OPTIONS)

        assert ["2.0"] == [item.entry.version for item in found]

    def test_what_is_not_locked_here_is_noted(self) -> None:
        lock = lock_text(Locked("aa", "1.0", markers=("sys_platform == 'win32'",)))

        found, notes = upgradables(pair(manifest_text("aa"), lock), FACTS, OPTIONS)

        assert () == found
        assert ["aa: not locked for this platform, so it can't be upgraded here"] == notes

    def test_a_named_dependency_that_is_not_direct_is_told(self) -> None:
        options = replace(OPTIONS, dependency="Indirect")

        _, notes = upgradables(
            pair(manifest_text("aa"), lock_text(Locked("aa", "1.0"))), FACTS, options
        )

        assert ["indirect is no direct dependency; name one that pyproject.toml declares"] == notes
