"""The first cases: five libraries, each asked in several ways.

Callers: `cases`. Transitive packages that a case doesn't name float with the day of the rebuild:
answers speak only of what is named here.
"""

from dataclasses import replace

from support.corpus.declared import DEV, Answer, Case, Command, Replace, Sdist, Trait, uv

_WSGI = "tests/middleware/test_wsgi.py"
_REQUESTS = "tests/test_requests.py"
_ENVIRONS_TESTS = "test:tests/test_environs.py"
_PYTHON_39 = Replace('requires-python = ">=3.8"', 'requires-python = ">=3.9"')

_JINJA2 = Case(
    name="A1",
    sdist=Sdist(
        "jinja2", "3.1.4", "4a3aee7acbbe7303aede8e9648d13b8bf88a429282aa6122a993f0ac800cb369"
    ),
    pin=(
        Command((*DEV, "pytest>=7.4,<9")),
        uv("lock --upgrade-package markupsafe==2.1.3"),
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
    backend="flit",
    shows="a patch that only the lock shows; the next minor needs a newer Python",
    traits=(Trait.FORKED,),
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
                *DEV,
                *("pytest==8.0.2", "trio==0.24.0", "httpx==0.27.2", "jinja2==3.1.4"),
                *("python-multipart==0.0.9", "itsdangerous==2.2.0", "pyyaml>=6"),
                "typing-extensions==4.10.0",
            )
        ),
        uv("lock --upgrade-package anyio==4.3.0"),
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
    backend="hatchling",
    shows="a constraint that stands twice, edited where it pins; tests that root fails",
)

_ENVIRONS = Case(
    name="A4",
    sdist=Sdist(
        "environs", "11.0.0", "069727a8f73d8ba8d033d3cd95c0da231d44f38f1da773bf076cef168d312ee8"
    ),
    pin=(
        uv("add --no-sync marshmallow>=3.13.0,<4"),
        uv("add --no-sync --optional tests pytest>=8,<9"),
        uv("lock --upgrade-package marshmallow==3.20.1 --upgrade-package python-dotenv==1.0.0"),
    ),
    upgrade={},
    answer=Answer(
        "proposal_prepared",
        ("marshmallow", "3.20.1", "3.20.2"),
        files=("uv.lock",),
        reasons={"marshmallow": {"3.22.0": (), "3.26.2": ("toolchain",)}},
    ),
    baseline={"passed": 101},
    backend="flit",
    shows="extras that refer to the project itself; Django in three versions",
    traits=(Trait.FORKED, Trait.OTHER_GROUP),
    sync=("--extra", "tests"),
)

_FLASK_WTF = Case(
    name="A5",
    sdist=Sdist(
        "flask-wtf", "1.2.1", "8bb269eb9bb46b87e7c8233d7e7debdf1f8b74bf90cc1789988c29b37a97b695"
    ),
    pin=(
        _PYTHON_39,
        uv("add --no-sync flask>=2.2,<2.4"),
        Command((*DEV, "pytest==8.2.2", "email-validator==2.1.1")),
        uv(
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
    backend="hatchling",
    shows="what the target forces to move goes to the nearest version, not across a major",
)

KNOWN = (
    _JINJA2,
    replace(
        _JINJA2,
        name="A1x",
        upgrade={"dependency": "markupsafe", "version": "3.0.3", "allowMajor": True},
        answer=Answer(
            "requires_newer_toolchain", reasons={"markupsafe": {"3.0.3": ("toolchain",)}}
        ),
        shows="the only version asked for excludes a part of the project's Python range",
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
                f"test:{_WSGI}:test_wsgi_post[asyncio]",
                f"test:{_WSGI}:test_wsgi_post[trio]",
                f"test:{_REQUESTS}:test_request_body[asyncio]",
                f"test:{_REQUESTS}:test_request_body[trio]",
                f"test:{_REQUESTS}:test_request_stream[asyncio]",
                f"test:{_REQUESTS}:test_request_stream[trio]",
            ),
        ),
        shows="a minor that breaks: JSON bodies became compact",
    ),
    replace(
        _STARLETTE,
        name="A2m",
        upgrade={"dependency": "python-multipart"},
        answer=Answer(
            "regressed",
            ("python-multipart", "0.0.9", "0.0.20"),
            files=("pyproject.toml", "uv.lock"),
            findings=("test:tests/conftest.py:collection",),
            reasons={"python-multipart": {"0.0.13": ("withdrawn",), "0.0.21": ("toolchain",)}},
        ),
        shows="a patch that breaks: a new warning is an error while conftest.py is imported",
    ),
    _ENVIRONS,
    replace(
        _ENVIRONS,
        name="A4n",
        upgrade={"dependency": "marshmallow", "select": "Latest"},
        answer=Answer(
            "proposal_prepared",
            ("marshmallow", "3.20.1", "3.22.0"),
            files=("uv.lock",),
            reasons={
                "marshmallow": {"3.22.0": (), "3.23.0": ("toolchain",), "3.26.2": ("toolchain",)}
            },
        ),
        shows="the newest that the project's whole Python range allows, not the installed one",
    ),
    replace(
        _ENVIRONS,
        name="A4b",
        pin=(*_ENVIRONS.pin, _PYTHON_39, uv("lock")),
        upgrade={"dependency": "marshmallow", "version": "4.0.0", "allowMajor": True},
        answer=Answer(
            "regressed",
            ("marshmallow", "3.20.1", "4.0.0"),
            moved={"backports-datetime-fromisoformat": ("", "2.0.3")},
            files=("pyproject.toml", "uv.lock"),
            findings=(
                f"{_ENVIRONS_TESTS}:TestCasting::test_default_set",
                f"{_ENVIRONS_TESTS}:TestPrefix::test_error_message_for_prefixed_var",
                f"{_ENVIRONS_TESTS}:TestValidation::test_can_add_validator",
            ),
        ),
        edits=(Replace("marshmallow>=3.13.0,<4", "marshmallow>=3.13.0,<5"),),
        shows="a major that was asked for breaks; its bound is edited, a newcomer enters",
    ),
    _FLASK_WTF,
    replace(
        _FLASK_WTF,
        name="A5c",
        pin=(*_FLASK_WTF.pin, uv("add --no-sync werkzeug<2.3")),
        answer=Answer(
            "admission_refused",
            ("flask", "2.2.5", "2.3.3"),
            says=(
                r'"message": "flask 2\.3\.3: resolution_refused flask: expected flask 2\.3\.3, observed error: ',
                r"your project depends on werkzeug<2\.3",
                "unsatisfiable",
            ),
        ),
        shows="the maintainer's own cap forbids it: the resolver's text is the answer",
    ),
    replace(
        _FLASK_WTF,
        name="A6",
        pin=(
            _PYTHON_39,
            uv("add --no-sync flask>=2.1,<2.3"),
            Command((*DEV, "pytest==8.2.2", "email-validator==2.1.1")),
            uv(
                "lock --upgrade-package flask==2.1.3 --upgrade-package werkzeug==2.1.2"
                " --upgrade-package wtforms==3.1.1"
            ),
        ),
        upgrade={"dependency": "flask", "version": "2.2.5"},
        answer=Answer(
            "proposal_prepared",
            ("flask", "2.1.3", "2.2.5"),
            moved={"werkzeug": ("2.1.2", "2.3.8")},
            files=("uv.lock",),
            says=(r"werkzeug is held at 2\.3\.8; the resolver would have taken 3\.",),
        ),
        shows="the target is fine, what the resolver pulls in breaks 18 tests; held, nothing does",
    ),
)
