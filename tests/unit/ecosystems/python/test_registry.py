"""What the metadata reader's lines become; which wheels fit the sandbox."""

import json
from typing import Any

import pytest
from packaging.tags import Tag
from packaging.version import Version

from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    PlatformFacts,
    RegistryUnreachable,
)
from upgraderun_runner.ecosystems.python.registry import (
    Wanted,
    marker_environment,
    parse_metadata,
    supported_tags,
)
from upgraderun_runner.sandbox.commands import CommandResult

AA = Wanted("aa", "https://registry.example/simple")
BB = Wanted("bb", "https://registry.example/simple")


def answer(*rows: dict[str, Any], exit_code: int = 0) -> CommandResult:
    out = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return CommandResult(exit_code, False, False, out, b"boom", False, False, 1)


def file(name: str, **more: object) -> dict[str, object]:
    return {"filename": name, "requiresPython": None, "yanked": False, "uploadTime": None, **more}


def test_files_are_grouped_by_version_and_others_ignored() -> None:
    files = [
        file("aa-1.0-py3-none-any.whl", requiresPython=">=3.8"),
        file("aa-1.0.tar.gz", requiresPython=">=2"),
        file("aa-0.9-py3.7.egg"),
        file("aa-nonsense"),
        file("aa-0.10.tar.gz", yanked=True),
    ]

    page = parse_metadata(answer({"status": "ok", "files": files}), (AA,))["aa"]

    assert [Version("0.10"), Version("1.0")] == [release.version for release in page.releases]
    last = page.release(Version("1.0"))
    assert last is not None
    assert (">=3.8", False, None) == (last.requires_python, last.withdrawn, last.published)
    assert page.releases[0].withdrawn


def test_a_missing_project_is_a_problem_and_no_failure() -> None:
    pages = parse_metadata(
        answer({"status": "not_found", "text": "HTTP 404"}, {"status": "ok", "files": []}), (AA, BB)
    )

    assert ["HTTP 404", ""] == [pages["aa"].problem, pages["bb"].problem]


def test_an_unreachable_registry_is_typed() -> None:
    with pytest.raises(RegistryUnreachable) as caught:
        parse_metadata(answer({"status": "unreachable", "kind": "http_5xx", "text": "503"}), (AA,))

    assert ("registry.example", "http_5xx") == (caught.value.host, caught.value.error_class)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (answer({"status": "denied", "text": "403"}), "registry_denied"),
        (answer(), "toolchain_failed"),
        (answer({"status": "ok", "files": []}, exit_code=1), "toolchain_failed"),
    ],
)
def test_other_failures(result: CommandResult, reason: str) -> None:
    with pytest.raises(AcquisitionFailed) as caught:
        parse_metadata(result, (AA,))

    assert reason == caught.value.reason


def test_wheels_of_the_platform() -> None:
    tags = supported_tags(PlatformFacts("3.11.2", "CPython", "x86_64", "glibc", "2.36"))

    fitting = {
        Tag("cp311", "cp311", "manylinux_2_17_x86_64"),
        Tag("cp311", "cp311", "manylinux2014_x86_64"),
        Tag("cp39", "abi3", "manylinux_2_28_x86_64"),
        Tag("py3", "none", "any"),
    }
    foreign = {
        Tag("cp311", "cp311", "manylinux_2_37_x86_64"),
        Tag("cp312", "cp312", "manylinux_2_17_x86_64"),
        Tag("cp311", "cp311", "musllinux_1_2_x86_64"),
        Tag("cp311", "cp311", "manylinux_2_17_aarch64"),
    }
    assert fitting <= tags
    assert not foreign & tags


def test_markers_are_evaluated_for_the_sandbox() -> None:
    environment = marker_environment(PlatformFacts("3.11.2", "CPython", "aarch64", "glibc", "2.36"))

    assert ("3.11", "3.11.2", "aarch64", "cpython") == (
        environment["python_version"],
        environment["python_full_version"],
        environment["platform_machine"],
        environment["implementation_name"],
    )
