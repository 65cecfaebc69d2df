"""What the docs say and what the code has are the same (house style §10).

Reasons, kinds and metrics are generated and compared in tests/unit/model/test_generated.py; here are
settings, alerts, dependencies, security points, links and rule numbers.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from upgraderun_operator.model.conditions import STALLS, WAITS, StalledReason, WaitReason
from upgraderun_operator.model.conflicts import CONFLICTS
from upgraderun_protocol.outcomes import ConflictKind

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CHART = ROOT / "charts" / "upgraderun-operator"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
RULE = re.compile(r"(?<![\w-])([HI])([1-9][0-9]?)(?![\w.-])")
HIGHEST = {"H": 38, "I": 16}
"""Security requirements H1 to H38, invariants I1 to I16."""


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pages() -> list[Path]:
    return sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def anchors(path: Path) -> set[str]:
    """Names that headings of a page get."""
    headings = re.findall(r"^#+ (.+)$", read(path), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken_links(path: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", read(path), flags=re.DOTALL)
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            yield target


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    assert [] == list(broken_links(path))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    page = tmp_path / "a.md"
    page.write_text("# One Thing\n[x](a.md#one-thing) [y](a.md#other) [z](b.md)", encoding="utf-8")

    assert ["a.md#other", "b.md"] == list(broken_links(page))


def words(part: dict[str, Any]) -> str:
    """Description of a schema, if it is a sentence."""
    text = str(part.get("description", ""))
    return text if text.endswith(".") and " " in text else ""


def schema_paths(schema: dict[str, Any], above: str = "") -> dict[str, dict[str, Any]]:
    """Every named value of a schema by its dotted path."""
    found: dict[str, dict[str, Any]] = {}
    for name, part in schema.get("properties", {}).items():
        found[above + name] = part
        found |= schema_paths(part, f"{above}{name}.")
    return found


def value_paths(values: dict[str, Any], schema: dict[str, Any], above: str = "") -> Iterator[str]:
    """Dotted paths of values, as deep as the schema names them."""
    for name, value in values.items():
        yield above + name
        part = schema.get("properties", {}).get(name, {})
        if "properties" in part:
            yield from value_paths(value, part, f"{above}{name}.")


class TestSettings:
    """A setting missing in the docs, or the reverse."""

    def test_every_variable_is_documented_and_every_documented_one_read(self) -> None:
        source = read(ROOT / "operator/src/upgraderun_operator/settings.py")
        known = {f"UPGRADERUN_{name}" for name in re.findall(r'read\.\w+\(\s*"([A-Z_]+)"', source)}

        told = set(re.findall(r"UPGRADERUN_[A-Z_]+", read(DOCS / "settings.md")))

        assert known
        assert known == told

    def test_every_value_of_the_chart_is_documented(self) -> None:
        values: dict[str, Any] = yaml.safe_load(read(CHART / "values.yaml"))
        page = read(DOCS / "settings.md")
        inside = {
            f"{part}.{name}"
            for part, value in values.items()
            if isinstance(value, dict)
            for name in value
        }
        silent = [
            name
            for name in inside
            if f"`{name}`" not in page
            and f"`{name.partition('.')[0]}`" not in page
            and f"`.{name.partition('.')[2]}`" not in page
            and f"`{name}." not in page
        ]

        assert [] == sorted(silent)
        assert [] == [name for name in values if f"`{name}" not in page]

    def test_values_and_their_schema_name_the_same(self) -> None:
        """At every depth; an object without properties in the schema is the user's own."""
        values = yaml.safe_load(read(CHART / "values.yaml"))
        schema = yaml.safe_load(read(CHART / "values.schema.json"))

        assert set(value_paths(values, schema)) == set(schema_paths(schema)) - {"global"}

    def test_every_value_has_a_description(self) -> None:
        schema = yaml.safe_load(read(CHART / "values.schema.json"))

        assert [] == [path for path, part in schema_paths(schema).items() if not words(part)]


class TestTables:
    """A reason or kind of conflict without its row."""

    def test_every_wait_stall_and_conflict_has_a_row(self) -> None:
        assert set(WaitReason) == set(WAITS)
        assert set(StalledReason) == set(STALLS)
        assert set(ConflictKind) == set(CONFLICTS)

    def test_every_alert_has_an_entry_and_every_entry_of_an_alert_its_rule(self) -> None:
        rules = yaml.safe_load(read(CHART / "rules" / "upgraderun.rules.yaml"))
        alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}

        entries = set(re.findall(r"^## (UpgradeRun\w+)$", read(DOCS / "runbook.md"), re.MULTILINE))

        assert alerts == entries

    def test_every_kind_of_conflict_has_an_entry_with_a_command(self) -> None:
        text = read(DOCS / "runbook.md")
        section = text.partition("\n## Conflicts\n")[2].partition("\n## ")[0]
        entries = dict(
            re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", section, re.MULTILINE | re.DOTALL)
        )

        assert {kind.value for kind in ConflictKind} == set(entries)
        assert [] == [kind for kind, entry in entries.items() if entry.count("\n```\n") != 2]


def normal(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


class TestDependencies:
    """Each with its reason, and no reason for what is gone."""

    def test_the_page_and_the_project_files_name_the_same(self) -> None:
        wanted: set[str] = set()
        for project in ("protocol", "operator", "runner-image"):
            data = tomllib.loads(read(ROOT / project / "pyproject.toml"))
            wanted |= {normal(name) for name in data["project"]["dependencies"]}
        groups = tomllib.loads(read(ROOT / "pyproject.toml"))["dependency-groups"]
        wanted |= {normal(name) for group in groups.values() for name in group}
        libraries = read(DOCS / "dependencies.md").partition("## Programs")[0]
        rows = [line for line in libraries.splitlines() if line.startswith("| `")]
        told = {
            normal(name) for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])
        }

        assert {name for name in wanted if not name.startswith("upgraderun-")} == told


def states() -> dict[str, str]:
    """State of each requirement, as the page says."""
    row = re.compile(r"^\| (H[0-9]+) \|.*\| ([a-z ]+) \|$", re.MULTILINE)
    return dict(row.findall(read(DOCS / "security.md")))


class TestSecurity:
    """docs/security.md says of each requirement whether it holds."""

    def test_every_requirement_has_its_state(self) -> None:
        assert {f"H{number}" for number in range(1, HIGHEST["H"] + 1)} == set(states())
        assert set(states().values()) <= {"kept", "untested", "not built"}

    def test_what_is_kept_is_named_by_a_test(self) -> None:
        cited = {
            "".join(found)
            for path in (ROOT / "tests").rglob("*.py")
            if "tidy" not in path.parts
            for found in RULE.findall(read(path))
        }

        assert [] == sorted(
            number for number, state in states().items() if state == "kept" and number not in cited
        )


def test_no_rule_is_cited_that_does_not_exist() -> None:
    """§10: a rule number (I, H) cited that doesn't exist."""
    folders = ("protocol/src", "operator/src", "runner-image/src", "hack", "tests", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    wrong = [
        f"{path.relative_to(ROOT)}: {letter}{number}"
        for path in files
        if path.suffix in {".py", ".md"} and path != Path(__file__).resolve()
        for letter, number in RULE.findall(read(path))
        if int(number) > HIGHEST[letter]
    ]

    assert [] == wrong
