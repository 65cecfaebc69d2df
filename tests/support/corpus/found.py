"""More libraries: versions from git, forked locks, tests in unusual places, real breaks.

Callers: `cases`. All that a case names is an old release that stays as it is.
"""

from dataclasses import replace

from support.corpus.declared import (
    DEV,
    Answer,
    Case,
    Command,
    Remove,
    Replace,
    Sdist,
    Tag,
    Trait,
    uv,
)

_PYTHON_39 = Replace('requires-python = ">=3.8"', 'requires-python = ">=3.9"')
_PYTHON_310 = Replace('requires-python = ">=3.8"', 'requires-python = ">=3.10"')
_PKG_INFO = Remove("PKG-INFO")

_HUMANIZE = Case(
    name="B1",
    sdist=Sdist(
        "humanize", "4.9.0", "582a265c931c683a7e9b8ed9559089dea7edcf6cc95be39a3cbc2c5d5ac2bcfa"
    ),
    pin=(
        uv(
            "lock --upgrade-package freezegun==1.4.0 --upgrade-package pytest==8.2.2"
            " --upgrade-package pytest-cov==5.0.0"
        ),
        Tag("4.9.0"),
        _PKG_INFO,
    ),
    upgrade={"dependency": "freezegun", "version": "1.5.1"},
    answer=Answer("proposal_prepared", ("freezegun", "1.4.0", "1.5.1"), files=("uv.lock",)),
    baseline={"passed": 550},
    backend="hatch-vcs",
    shows="a dependency of the tests alone, from an extra, while the version comes from git",
    traits=(Trait.FORKED, Trait.GIT_VERSION, Trait.OTHER_GROUP),
    sync=("--extra", "tests"),
)

_PRETTYTABLE = Case(
    name="B2",
    sdist=Sdist(
        "prettytable", "3.10.0", "9665594d137fb08a1117518c25551e0ede1687197cf353a4fdc78d27e1073568"
    ),
    pin=(
        uv(
            "lock --upgrade-package wcwidth==0.2.13 --upgrade-package pytest==8.2.2"
            " --upgrade-package pytest-lazy-fixtures==1.0.7 --upgrade-package pytest-cov==5.0.0"
        ),
        Tag("3.10.0"),
        _PKG_INFO,
    ),
    upgrade={"dependency": "wcwidth", "version": "0.6.0"},
    answer=Answer("proposal_prepared", ("wcwidth", "0.2.13", "0.6.0"), files=("uv.lock",)),
    baseline={"passed": 166},
    backend="hatch-vcs",
    shows="a minor of a 0.x dependency that changes widths, and no test minds",
    traits=(Trait.FORKED, Trait.GIT_VERSION, Trait.OTHER_GROUP),
    sync=("--extra", "tests"),
)

_TABULATE = Case(
    name="B3",
    sdist=Sdist(
        "tabulate", "0.9.0", "0095b12bf5966de529c0feb1fa08671671b3368eec77d7ef7ab114be2c068b3c"
    ),
    pin=(
        uv("add --no-sync --group quality pytest==7.4.0"),
        uv("lock --upgrade-package wcwidth==0.2.12"),
        Tag("v0.9.0"),
        _PKG_INFO,
    ),
    upgrade={"dependency": "wcwidth", "version": "0.2.13"},
    answer=Answer(
        "proposal_prepared",
        ("wcwidth", "0.2.12", "0.2.13"),
        files=("uv.lock",),
        says=("wcwidth is in no group or extra that the checks install",),
    ),
    baseline={"passed": 247, "skipped": 37},
    backend="setuptools-scm",
    shows="a dependency that no check installs: the proposal says so; 22 tests skip without it",
    traits=(Trait.FORKED, Trait.GIT_VERSION, Trait.OTHER_GROUP),
    sync=("--group", "quality"),
)

_ISODATE = Case(
    name="B4",
    sdist=Sdist(
        "isodate", "0.7.2", "4cd1aa0f43ca76f4a6c6c0292a85f40b35ec2e43e315b59f06e6d32171a953e6"
    ),
    pin=(
        uv("add --no-sync --group checks pytest==7.4.0"),
        Tag("0.7.2"),
        _PKG_INFO,
    ),
    upgrade={"dependency": "pytest", "version": "7.4.4"},
    answer=Answer(
        "proposal_prepared", ("pytest", "7.4.0", "7.4.4"), files=("pyproject.toml", "uv.lock")
    ),
    baseline={"passed": 280},
    backend="setuptools-scm",
    shows="pytest itself is the target; the build writes a tracked version file",
    traits=(Trait.FORKED, Trait.GIT_VERSION, Trait.OTHER_GROUP),
    sync=("--group", "checks"),
)

_SERVICE_IDENTITY = Case(
    name="B5",
    sdist=Sdist(
        "service-identity",
        "24.1.0",
        "6829c9d62fb832c2e1c435629b0a8c476e1929881f28bee4d20bc24161009221",
    ),
    pin=(
        uv(
            "lock --upgrade-package pyasn1==0.5.1 --upgrade-package pyasn1-modules==0.3.0"
            " --upgrade-package pytest==8.2.2 --upgrade-package idna==3.6"
            " --upgrade-package pyopenssl==24.1.0"
        ),
        Tag("24.1.0"),
        _PKG_INFO,
    ),
    upgrade={"dependency": "pyasn1-modules", "version": "0.4.0"},
    answer=Answer("proposal_prepared", ("pyasn1-modules", "0.3.0", "0.4.0"), files=("uv.lock",)),
    baseline={"passed": 136},
    backend="hatch-vcs",
    shows="an extra `dev` that refers to other extras is installed too, and its tests count",
    traits=(Trait.FORKED, Trait.GIT_VERSION, Trait.OTHER_GROUP),
    sync=("--extra", "dev", "--extra", "tests"),
)

_DEP_LOGIC = Case(
    name="B6",
    sdist=Sdist(
        "dep-logic", "0.4.0", "be6a37296873be768f83357f9f5f0179e185157572d179ae1ff5a3ac49e3af9a"
    ),
    pin=(
        # The release froze what the repository leaves to the build.
        Replace("dynamic = []", 'dynamic = ["version"]'),
        Replace('version = "0.4.0"\n', ""),
        Command((*DEV, "pytest==8.2.2")),
        uv("lock --upgrade-package packaging==23.2"),
        _PKG_INFO,
        Tag("0.4.0"),
    ),
    upgrade={"dependency": "packaging", "version": "24.2", "allowMajor": True},
    answer=Answer("proposal_prepared", ("packaging", "23.2", "24.2"), files=("uv.lock",)),
    baseline={"passed": 2457},
    backend="pdm",
    shows="a calendar version counts as a major, and the user allows it",
    traits=(Trait.FORKED, Trait.GIT_VERSION),
)

_PYDANTIC_SETTINGS = Case(
    name="B7",
    sdist=Sdist(
        "pydantic-settings",
        "2.1.0",
        "26b1492e0a24755626ac5e6d715e9077ab7ad4fb5f19a8b7ed7011d52f36141c",
    ),
    pin=(
        Replace("testpaths = 'tests'", "testpaths = 'tests/test_settings.py'"),
        uv("add --no-sync --dev pytest==7.4.4 pytest-mock==3.12.0"),
        uv("lock --upgrade-package pydantic==2.5.3 --upgrade-package python-dotenv==1.0.0"),
    ),
    upgrade={"dependency": "pydantic", "version": "2.10.6"},
    answer=Answer(
        "regressed",
        ("pydantic", "2.5.3", "2.10.6"),
        moved={"pydantic-core": ("2.14.6", "2.27.2")},
        files=("uv.lock",),
        findings=("test:tests/test_settings.py:test_protected_namespace_defaults",),
    ),
    baseline={"passed": 101, "skipped": 1},
    backend="hatchling",
    shows="a minor that breaks through a changed warning; its exact companion moves along",
    traits=(Trait.FORKED,),
)

_README_RENDERER = Case(
    name="B8",
    sdist=Sdist(
        "readme-renderer",
        "42.0",
        "2d55489f83be4992fe4454939d1a051c33edbab778e82761d060c9fc6b308cd1",
    ),
    pin=(
        _PYTHON_39,
        uv("add --no-sync --group checks pytest==8.2.2"),
        uv(
            "lock --upgrade-package docutils==0.20.1 --upgrade-package pygments==2.17.2"
            " --upgrade-package nh3==0.2.15"
        ),
    ),
    upgrade={"dependency": "docutils", "version": "0.21.2"},
    answer=Answer(
        "regressed",
        ("docutils", "0.20.1", "0.21.2"),
        files=("uv.lock",),
        findings=tuple(
            f"test:tests/test_rst.py:test_rst_fixtures[test_rst_{name}.rst]"
            for name in ("bibtex", "contents", "linkify")
        ),
    ),
    baseline={"passed": 42, "skipped": 7},
    backend="setuptools",
    shows="a minor that breaks: other HTML for the same text",
    traits=(Trait.FORKED, Trait.OTHER_GROUP),
    sync=("--group", "checks"),
)

_FLASK = Case(
    name="B9",
    sdist=Sdist(
        "flask", "3.0.3", "ceb27b0af3823ea2737928a4d99d125a06175b8512c445cbd9a9ce200ef76842"
    ),
    pin=(
        _PYTHON_310,
        uv("add --no-sync --group unit pytest==8.2.2"),
        uv(
            "lock --upgrade-package werkzeug==3.0.3 --upgrade-package click==8.1.7"
            " --upgrade-package jinja2==3.1.4"
        ),
    ),
    upgrade={"dependency": "click", "version": "8.2.1"},
    answer=Answer(
        "regressed",
        ("click", "8.1.7", "8.2.1"),
        files=("uv.lock",),
        findings=tuple(
            f"test:tests/test_cli.py:{name}"
            for name in (
                "test_help_echo_exception",
                "test_help_echo_loading_error",
                "test_no_command_echo_loading_error",
            )
        ),
    ),
    baseline={"passed": 471, "skipped": 6},
    backend="flit",
    shows="a minor that breaks: an argument of the test runner is gone",
    traits=(Trait.FORKED, Trait.OTHER_GROUP),
    sync=("--group", "unit"),
)

_TOMLKIT_DEV = Command((*DEV, "pytest==7.4.0", "pyyaml==6.0.1"))
_TOMLKIT_TABLE = '[tool.poetry]\nname = "tomlkit"\nversion = "0.13.2"\n'
_TOMLKIT_PROJECT = '[project]\nname = "tomlkit"\nversion = "0.13.2"\nrequires-python = ">=3.8"\n'
_TOMLKIT = Case(
    name="B10",
    sdist=Sdist(
        "tomlkit", "0.13.2", "fff5fe59a87295b278abd31bec92c15d9bc4a06885ab12bcea52c71119392e79"
    ),
    pin=(
        # The release's own table says the same in the way that only its build back end reads.
        Replace(
            _TOMLKIT_TABLE,
            f"{_TOMLKIT_PROJECT}dependencies = []\n\n[tool.poetry]\n",
        ),
        _TOMLKIT_DEV,
    ),
    upgrade={"dependency": "pyyaml", "version": "6.0.2"},
    answer=Answer(
        "proposal_prepared", ("pyyaml", "6.0.1", "6.0.2"), files=("pyproject.toml", "uv.lock")
    ),
    baseline={"passed": 859},
    backend="poetry-core",
    shows="a dependency of the tests that is binary, pinned in a group",
    traits=(Trait.FORKED,),
)

_BLINKER = Case(
    name="B11",
    sdist=Sdist(
        "blinker", "1.8.2", "8f77b09d3bf7c795e969e9486f39c2c5e9c39d4ee07424be2bc594ece9642d83"
    ),
    pin=(uv("add --no-sync --group lint-and-test pytest==8.2.2 pytest-asyncio==0.23.6"),),
    upgrade={"dependency": "pytest-asyncio", "version": "0.23.8"},
    answer=Answer(
        "proposal_prepared",
        ("pytest-asyncio", "0.23.6", "0.23.8"),
        files=("pyproject.toml", "uv.lock"),
    ),
    baseline={"passed": 25},
    backend="flit",
    shows="a plug-in of pytest under warnings as errors, in a group of an unusual name",
    traits=(Trait.FORKED, Trait.OTHER_GROUP),
    sync=("--group", "lint-and-test"),
)

_TOWNCRIER = Case(
    name="B12",
    sdist=Sdist(
        "towncrier", "23.11.0", "13937c247e3f8ae20ac44d895cf5f96a60ad46cfdcc1671759530d7837d9ee5d"
    ),
    pin=(
        _PYTHON_310,
        uv("add --no-sync --group trial pytest==8.2.2 twisted==24.3.0"),
        uv(
            "lock --upgrade-package click==8.1.7 --upgrade-package incremental==22.10.0"
            " --upgrade-package jinja2==3.1.4"
        ),
    ),
    upgrade={"dependency": "click", "version": "8.2.1"},
    answer=Answer(
        "regressed",
        ("click", "8.1.7", "8.2.1"),
        files=("uv.lock",),
        findings=(
            "test:src/towncrier/test/test_build.py:TestCli::test_default_start_string",
            "test:src/towncrier/test/test_build.py:TestCli::test_default_start_string_markdown",
            "test:src/towncrier/test/test_check.py:TestChecker::test_none_stdout_encoding_works",
        ),
    ),
    baseline={"passed": 111},
    backend="hatchling",
    shows="tests inside the package, of unittest's kind, that call git; a minor that breaks",
    traits=(Trait.FORKED, Trait.OTHER_GROUP),
    sync=("--group", "trial"),
)

FOUND = (
    _HUMANIZE,
    _PRETTYTABLE,
    _TABULATE,
    replace(
        _TABULATE,
        name="B3x",
        upgrade={"dependency": "wcwidth", "version": "0.6.0"},
        answer=Answer("requires_newer_toolchain", reasons={"wcwidth": {"0.6.0": ("toolchain",)}}),
        shows="the version asked for has left the oldest Python of the project",
    ),
    _ISODATE,
    _SERVICE_IDENTITY,
    _DEP_LOGIC,
    _PYDANTIC_SETTINGS,
    _README_RENDERER,
    replace(
        _README_RENDERER,
        name="B8p",
        upgrade={"dependency": "pygments", "version": "2.18.0"},
        answer=Answer("proposal_prepared", ("pygments", "2.17.2", "2.18.0"), files=("uv.lock",)),
        shows="the same project, a minor that it stands",
    ),
    _FLASK,
    replace(
        _FLASK,
        name="B9w",
        upgrade={"dependency": "werkzeug", "version": "3.1.3"},
        answer=Answer("proposal_prepared", ("werkzeug", "3.0.3", "3.1.3"), files=("uv.lock",)),
        shows="a minor of the framework below: all tests pass",
    ),
    _TOMLKIT,
    replace(
        _TOMLKIT,
        name="B10u",
        pin=(
            Replace(_TOMLKIT_TABLE, f"{_TOMLKIT_PROJECT}\n[tool.poetry]\n"),
            _TOMLKIT_DEV,
        ),
        answer=Answer("unsupported", says=(r"beside \[tool\.poetry\]", "dynamic_metadata")),
        shows="dependencies that only the build back end knows: refused before anything runs",
    ),
    _BLINKER,
    _TOWNCRIER,
)
