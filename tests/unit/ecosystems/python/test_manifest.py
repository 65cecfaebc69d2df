"""The edit of one constraint: only where the target is outside it (upgrade-run.md §8.1)."""

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from support.locks import manifest_text
from upgraderun_runner.ecosystems.python.manifest import (
    ManifestError,
    edit_manifest,
    editable_form,
    parse_manifest,
)


def edited(requirement: str, target: str) -> str:
    manifest = manifest_text(requirement)
    data, edits = edit_manifest(manifest.encode(), "aa", Version(target))
    assert (1 if data != manifest.encode() else 0) == len(edits)
    return parse_manifest(data).declarations[0].text


@pytest.mark.parametrize(
    ("requirement", "target", "expected"),
    [
        ("aa>=1,<3", "2.0", "aa>=1,<3"),
        ("aa==1.2.3", "1.2.4", "aa==1.2.4"),
        ("aa == 1.2.3 ; python_version < '3.12'", "1.3.0", "aa == 1.3.0 ; python_version < '3.12'"),
        ("AA[x,y]==1.2.*", "1.3.5", "AA[x,y]==1.3.*"),
        ("aa~=1.4", "2.3.1", "aa~=2.3"),
        ("aa~=1.4.2", "1.5", "aa~=1.5.0"),
        ("aa>=2.2,<2.4", "3.0.3", "aa>=2.2,<3.1"),
        ("aa>=3.13.0,<4", "4.0.0", "aa>=3.13.0,<5"),
        ("aa >= 1 , < 2.0.0", "2.1.4", "aa >= 1 , < 3.0.0"),
        ("aa<1!2,>=1", "1!2.5", "aa<1!3,>=1"),
    ],
)
def test_operator_precision_and_spelling_stay(requirement: str, target: str, expected: str) -> None:
    assert expected == edited(requirement, target)


@pytest.mark.parametrize(
    "specifier", ["<2", "<=1.5", ">=1,!=1.3,<2", ">1,<2", "===1.0", ">=1,<2rc1", "==1,<2", "<0,>=0"]
)
def test_other_forms_are_not_edited(specifier: str) -> None:
    assert not editable_form(SpecifierSet(specifier))
    with pytest.raises(ManifestError, match="no form we may edit"):
        edit_manifest(manifest_text(f"aa{specifier}").encode(), "aa", Version("5.0"))


def test_only_declarations_that_exclude_the_target_change() -> None:
    """Corpus A2: declared twice, in an extra without bound and in a group with `==`."""
    more = (
        '[project.optional-dependencies]\nfull = ["httpx", "aa"]  # all of it\n'
        "[dependency-groups]\n"
        "dev = [\n  'httpx==0.27.2', # pinned: flaky before\n  \"pytest\",\n]\n"
        '[tool.other]\nkeep = ["httpx==0.27.2"]\n'
    )
    manifest = manifest_text("aa", more=more)

    data, edits = edit_manifest(manifest.encode(), "httpx", Version("0.28.1"))

    expected = manifest.replace("'httpx==0.27.2', # pinned", "'httpx==0.28.1', # pinned")
    assert expected == data.decode()
    assert [("group:dev", "httpx==0.27.2", "httpx==0.28.1")] == [
        (edit.where, edit.before, edit.after) for edit in edits
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_rest_of_the_file_stays_byte_by_byte(newline: str) -> None:
    manifest = manifest_text(
        "aa==1.0", more="\n# end\n[tool.x]\n  odd   =  [ 1,2 ,]\n\"q.k\" = 'v'\n"
    ).replace("\n", newline)

    data, _ = edit_manifest(manifest.encode(), "aa", Version("1.1"))

    assert manifest.replace("aa==1.0", "aa==1.1") == data.decode()


def test_in_a_fork_only_its_own_declaration_changes() -> None:
    manifest = manifest_text("aa<2 ; python_version < '3.11'", "aa==2.0 ; python_version >= '3.11'")
    environment = {"python_version": "3.12"}

    data, edits = edit_manifest(manifest.encode(), "aa", Version("2.1"), environment)

    assert manifest.replace("aa==2.0", "aa==2.1") == data.decode()
    assert 1 == len(edits)


def test_every_place_of_a_declaration_is_read() -> None:
    more = (
        '[project.optional-dependencies]\nx = ["demo[y]", "bb>=1"]\n'
        '[dependency-groups]\nlint = ["cc", {include-group = "dev"}]\n'
        '[tool.uv]\ndev-dependencies = ["dd"]\n'
    )

    direct = parse_manifest(manifest_text("aa", more=more).encode()).direct

    assert [
        ("aa", "dependencies"),
        ("bb", "extra:x"),
        ("cc", "group:lint"),
        ("dd", "group:dev"),
    ] == [(dependency.name, dependency.where) for dependency in direct]


@pytest.mark.parametrize("data", [b"\xff", b"[project", manifest_text("a a a").encode()])
def test_what_cannot_be_read_is_told(data: bytes) -> None:
    with pytest.raises(ManifestError):
        parse_manifest(data)


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", False), ("[tool.uv]\npackage = false\n", True), ("[tool.uv]\npackage = true\n", False)],
)
def test_a_project_is_virtual_as_uv_says(more: str, expected: bool) -> None:
    assert expected is parse_manifest(manifest_text(more=more).encode()).virtual


def test_a_project_without_build_system_is_virtual() -> None:
    assert parse_manifest(b'[project]\nname = "x"\n').virtual
