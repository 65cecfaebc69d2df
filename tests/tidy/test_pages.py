"""No command stands in a page that no test runs, and no path that isn't there."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.pages import DOCS, ROOT, commands, fences, script

PAGES = sorted((*DOCS.glob("*.md"), ROOT / "README.md"))
LANGUAGES = frozenset({"", "sh", "console", "yaml", "python"})
ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "helm test": ("tests/cluster/test_helm_lifecycle.py", '"test", RELEASE'),
    "helm rollback": ("tests/cluster/test_helm_lifecycle.py", '"rollback"'),
    "helm upgrade --install upgraderun-operator charts/upgraderun-operator -n upgraderun-system "
    "--reuse-values": ("tests/cluster/test_helm_lifecycle.py", '"--reuse-values"'),
    "helm uninstall": ("tests/support/installation.py", '"uninstall"'),
    "kubectl kustomize kustomize/example": ("tests/unit/chart/test_golden.py", '"kustomize"'),
    "kubectl wait --for=jsonpath='{.status.finished}'=true": (
        "tests/api/kinds/test_views.py",
        "--for=jsonpath={.status.finished}=true",
    ),
    "kubectl patch configmap argocd-cm": ("tests/unit/gitops/test_argocd.py", "argocd-cm.yaml"),
}
"""Commands that a test makes with other words, by how they begin: its file, and what shows it."""


def plain(command: str) -> str:
    """A command without names that differ from page to page."""
    command = re.sub(r" -n (demo|upgrades)\b", "", command)
    return re.sub(r"\b(first|library-[a-z0-9]+)\b|<name>", "NAME", command)


RUN = {plain(one) for page in PAGES for one in commands(script(page))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_fence_says_what_it_is(page: Path) -> None:
    found = re.findall(r"^```(\w*)\n.*?^```$", page.read_text(), re.MULTILINE | re.DOTALL)

    assert set(found) <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_for_a_whole_cluster_is_run_by_a_test(page: Path) -> None:
    shown = [one for text in fences(page, "console") for one in commands(text)]

    assert [] == [
        one for one in shown if plain(one) not in RUN and not one.startswith(tuple(ELSEWHERE))
    ]


@pytest.mark.parametrize("begins", ELSEWHERE, ids=str)
def test_what_a_test_makes_with_other_words_is_there(begins: str) -> None:
    path, words = ELSEWHERE[begins]

    assert words in (ROOT / path).read_text(encoding="utf-8")
    shown = [one for page in PAGES for text in fences(page, "console") for one in commands(text)]
    assert any(one.startswith(begins) for one in shown), "no page shows it any more"


def test_every_command_of_make_that_a_page_names_exists() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }

    assert set() == {(page, target) for page, target in named if target not in known}


def source_map() -> dict[str, set[str]]:
    """Names in each part of the source map, by the folder that heads it."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## Source map")[2]
    parts = re.split(r"^### `(.*)`$", text, flags=re.MULTILINE)[1:]
    return {
        folder: {
            name
            for row in rows.splitlines()
            if row.startswith("|")
            for name in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1])
        }
        for folder, rows in zip(parts[::2], parts[1::2], strict=True)
    }


class TestSourceMap:
    """docs/architecture.md leads to what is there, and leaves no package out."""

    def test_every_named_path_exists(self) -> None:
        named = [ROOT / folder / name for folder, names in source_map().items() for name in names]

        assert named
        assert [] == [path for path in named if not path.exists()]

    @pytest.mark.parametrize("folder", source_map())
    def test_every_package_and_folder_is_named(self, folder: str) -> None:
        tracked = subprocess.run(
            ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        inside = (Path(path).relative_to(folder).parts for path in tracked)
        folders = {parts[0] for parts in inside if len(parts) > 1 and not parts[0].startswith(".")}
        named = {name.split("/")[0] for name in source_map()[folder]}

        headed = {part.split("/")[0] for part in source_map()}
        assert set() == folders - named - headed
