"""The cases and their right answers, each obtained by running plain uv and pytest.

Transitive packages that a case doesn't name float with the day of the rebuild: answers speak only
of what is named here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

WSGI = "tests/middleware/test_wsgi.py"
REQUESTS = "tests/test_requests.py"
ENVIRONS = "test:tests/test_environs.py"


@dataclass(frozen=True, slots=True)
class Sdist:
    """A released source distribution, by hash."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Replace:
    """One edit of pyproject.toml; `old` is there exactly once."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Command:
    """One uv command in the project."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """How the run must end.

    `outcome` is the outcome of a proposal that isn't published (`proposal_prepared`), or another
    end. `target` is name, before, after; `moved` names what moves with it: (before, after), before
    empty where it enters the lock. `findings` are the introduced keys, exactly. `reasons` are why
    newer versions are refused, by name and version, empty where one is eligible; `says` are
    patterns of report and proposal.
    """

    outcome: str
    target: tuple[str, str, str] | None = None
    moved: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    reasons: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    @property
    def moves(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """All that moves in the lock: versions before and after by name; nothing if refused."""
        if self.target is None or self.outcome == "admission_refused":
            return {}
        name, before, after = self.target
        moved = {name: (before, after), **self.moved}
        return {
            name: (frozenset({was} if was else ()), frozenset({now}))
            for name, (was, now) in moved.items()
        }


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `upgrade` is the run's `spec.upgrade`, spelt as in the API.

    `baseline` is what pytest counts on the base; `sync` the flags that install its tests.
    """

    name: str
    sdist: Sdist
    pin: tuple[Replace | Command, ...]
    upgrade: Mapping[str, Any]
    answer: Answer
    baseline: Mapping[str, int]
    sync: tuple[str, ...] = ()
    ordinary_user: bool = False


def _uv(line: str, *more: str) -> Command:
    return Command((*line.split(), *more))


_DEV = ("add", "--no-sync", "--group", "dev")
_PYTHON_39 = Replace('requires-python = ">=3.8"', 'requires-python = ">=3.9"')

_JINJA2 = Case(
    name="A1",
    sdist=Sdist(
        "jinja2", "3.1.4", "4a3aee7acbbe7303aede8e9648d13b8bf88a429282aa6122a993f0ac800cb369"
    ),
    pin=(
        Command((*_DEV, "pytest>=7.4,<9")),
        _uv("lock --upgrade-package markupsafe==2.1.3"),
    ),
    upgrade={},
    answer=Answer(
        "proposal_prepared",
        ("markupsafe", "2.1.3", "2.1.5"),
        files=("uv.lock",),
        reasons={
            "markupsafe": dict.fromkeys(
                ("3.0.0", "3.0.1", "3.0.2", "3.0.3"), ("class_not_allowed", "toolchain")
            )
        },
    ),
    baseline={"passed": 851},
)

_STARLETTE = Case(
    name="A2",
    sdist=Sdist(
        "starlette", "0.37.2", "9af890290133b79fc3db55474ade20f6220a364a0402e0b556e7cd5e1e093823"
    ),
    pin=(
        _PYTHON_39,
        Command(
            (
                *_DEV,
                *("pytest==8.0.2", "trio==0.24.0", "httpx==0.27.2", "jinja2==3.1.4"),
                *("python-multipart==0.0.9", "itsdangerous==2.2.0", "pyyaml>=6"),
                "typing-extensions==4.10.0",
            )
        ),
        _uv("lock --upgrade-package anyio==4.3.0"),
    ),
    upgrade={},
    answer=Answer(
        "proposal_prepared",
        ("jinja2", "3.1.4", "3.1.6"),
        files=("pyproject.toml", "uv.lock"),
        reasons={
            "python-multipart": {"0.0.13": ("withdrawn",), "0.0.20": (), "0.0.21": ("toolchain",)}
        },
    ),
    baseline={"passed": 793, "xfailed": 2},
    ordinary_user=True,
)

_ENVIRONS = Case(
    name="A4",
    sdist=Sdist(
        "environs", "11.0.0", "069727a8f73d8ba8d033d3cd95c0da231d44f38f1da773bf076cef168d312ee8"
    ),
    pin=(
        _uv("add --no-sync marshmallow>=3.13.0,<4"),
        _uv("add --no-sync --optional tests pytest>=8,<9"),
        _uv("lock --upgrade-package marshmallow==3.20.1 --upgrade-package python-dotenv==1.0.0"),
    ),
    upgrade={},
    answer=Answer(
        "proposal_prepared",
        ("marshmallow", "3.20.1", "3.20.2"),
        files=("uv.lock",),
        reasons={"marshmallow": {"3.22.0": (), "3.26.2": ("toolchain",)}},
    ),
    baseline={"passed": 101},
    sync=("--extra", "tests"),
)

_FLASK_WTF = Case(
    name="A5",
    sdist=Sdist(
        "flask-wtf", "1.2.1", "8bb269eb9bb46b87e7c8233d7e7debdf1f8b74bf90cc1789988c29b37a97b695"
    ),
    pin=(
        _PYTHON_39,
        _uv("add --no-sync flask>=2.2,<2.4"),
        Command((*_DEV, "pytest==8.2.2", "email-validator==2.1.1")),
        _uv(
            "lock --upgrade-package flask==2.2.5 --upgrade-package werkzeug==2.2.3"
            " --upgrade-package wtforms==3.1.1"
        ),
    ),
    upgrade={"dependency": "flask"},
    answer=Answer(
        "proposal_prepared",
        ("flask", "2.2.5", "2.3.3"),
        moved={"werkzeug": ("2.2.3", "2.3.8"), "blinker": ("", "1.9.0")},
        files=("uv.lock",),
        says=(r"werkzeug is held at 2\.3\.8; the resolver would have taken 3\.",),
    ),
    baseline={"passed": 56, "skipped": 3},
)

CASES = (
    _JINJA2,
    replace(
        _JINJA2,
        name="A1x",
        upgrade={"dependency": "markupsafe", "version": "3.0.3", "allowMajor": True},
        answer=Answer(
            "requires_newer_toolchain", reasons={"markupsafe": {"3.0.3": ("toolchain",)}}
        ),
    ),
    _STARLETTE,
    replace(
        _STARLETTE,
        name="A2h",
        upgrade={"dependency": "httpx"},
        answer=Answer(
            "regressed",
            ("httpx", "0.27.2", "0.28.1"),
            files=("pyproject.toml", "uv.lock"),
            findings=(
                f"test:{WSGI}:test_wsgi_post[asyncio]",
                f"test:{WSGI}:test_wsgi_post[trio]",
                f"test:{REQUESTS}:test_request_body[asyncio]",
                f"test:{REQUESTS}:test_request_body[trio]",
                f"test:{REQUESTS}:test_request_stream[asyncio]",
                f"test:{REQUESTS}:test_request_stream[trio]",
            ),
        ),
    ),
    _ENVIRONS,
    replace(
        _ENVIRONS,
        name="A4b",
        pin=(*_ENVIRONS.pin, _PYTHON_39, _uv("lock")),
        upgrade={"dependency": "marshmallow", "version": "4.0.0", "allowMajor": True},
        answer=Answer(
            "regressed",
            ("marshmallow", "3.20.1", "4.0.0"),
            moved={"backports-datetime-fromisoformat": ("", "2.0.3")},
            files=("pyproject.toml", "uv.lock"),
            findings=(
                f"{ENVIRONS}:TestCasting::test_default_set",
                f"{ENVIRONS}:TestPrefix::test_error_message_for_prefixed_var",
                f"{ENVIRONS}:TestValidation::test_can_add_validator",
            ),
        ),
    ),
    _FLASK_WTF,
    replace(
        _FLASK_WTF,
        name="A5c",
        pin=(*_FLASK_WTF.pin, _uv("add --no-sync werkzeug<2.3")),
        answer=Answer(
            "admission_refused",
            ("flask", "2.2.5", "2.3.3"),
            says=(
                r'"message": "flask 2\.3\.3: resolution_refused flask: expected flask 2\.3\.3, observed error: ',
                r"your project depends on werkzeug<2\.3",
                "unsatisfiable",
            ),
        ),
    ),
)


def case(name: str) -> Case:
    """The case of that name."""
    return next(found for found in CASES if found.name == name)
