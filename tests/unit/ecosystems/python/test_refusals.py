"""Each refusal of upgrade-run.md §6 for Python and of uv-facts: code, file, and what to do next."""

from pathlib import Path

import pytest

from support.locks import INDEX, Locked, lock_text, manifest_text
from upgraderun_runner.ecosystems.base import ProfileOptions, ToolchainImage, Unsupported
from upgraderun_runner.ecosystems.python.profile import detect, read_pair, read_profile
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain, UvBinary

TOOLCHAIN = PythonToolchain("/usr/bin/python3", "/usr/bin/git", (UvBinary("/uv", "0.13.9", 5),))
OPTIONS = ProfileOptions((ToolchainImage("3.11", "img@sha256:1"),))
GOOD_LOCK = lock_text(Locked("aa", "1.0"), needs=('name = "aa"',))
GOOD = manifest_text("aa>=1")
MIRROR = "https://mirror.example/simple"


def tree(
    root: Path, manifest: str | None = GOOD, lock: str | None = GOOD_LOCK, directory: str = "."
) -> Path:
    folder = root / directory
    folder.mkdir(parents=True, exist_ok=True)
    if manifest is not None:
        (folder / "pyproject.toml").write_text(manifest)
    if lock is not None:
        (folder / "uv.lock").write_text(lock)
    return root


def refused(
    root: Path, directory: str = ".", options: ProfileOptions = OPTIONS
) -> list[tuple[str, str]]:
    with pytest.raises(Unsupported) as caught:
        read_profile(root, directory, options, TOOLCHAIN)
    for refusal in caught.value.refusals:
        assert refusal.reason
        assert refusal.next_step
    return [(refusal.code, refusal.file) for refusal in caught.value.refusals]


MANIFESTS = {
    "no_project": "[tool.x]\n",
    "no_requires_python": manifest_text("aa", requires_python=None),
    "manifest_unparsable": "[project",
    "dynamic_metadata": manifest_text("aa", project='dynamic = ["optional-dependencies"]'),
    "native_backend": manifest_text("aa").replace("hatchling.build", "maturin"),
    "unknown_setting": manifest_text("aa", more="[tool.uv]\nfuture-key = 1\n"),
    "workspace": manifest_text("aa", more='[tool.uv.workspace]\nmembers = ["packages/*"]\n'),
    "no_binary_forced": manifest_text("aa", more='[tool.uv]\nno-binary-package = ["aa"]\n'),
    "not_managed": manifest_text("aa", more="[tool.uv]\nmanaged = false\n"),
    "required_version": manifest_text("aa", more='[tool.uv]\nrequired-version = ">=9"\n'),
    "path_source": manifest_text("aa", more='[tool.uv.sources]\naa = { path = "../aa" }\n'),
    "git_source": manifest_text("aa", more='[tool.uv.sources]\naa = { git = "https://g/x" }\n'),
    "url_source": manifest_text("aa @ https://x.example/aa-1.0-py3-none-any.whl"),
    "no_image": manifest_text("aa", requires_python=">=3.12"),
    "index_not_allowed": manifest_text(
        "aa", more=f'[[tool.uv.index]]\nurl = "{MIRROR}"\nexplicit = true\n'
    ),
}


@pytest.mark.parametrize("code", MANIFESTS)
def test_a_manifest_that_is_not_supported(tmp_path: Path, code: str) -> None:
    assert (code, "pyproject.toml") in refused(tree(tmp_path, MANIFESTS[code]))


class TestPoetry:
    """uv takes a [project] without dependencies as it stands, but not beside [tool.poetry]."""

    POETRY = "[tool.poetry]\npackages = []\n"

    def test_dependencies_that_only_the_back_end_knows(self, tmp_path: Path) -> None:
        manifest = manifest_text(more=self.POETRY).replace("dependencies = []\n", "")

        assert ("dynamic_metadata", "pyproject.toml") in refused(tree(tmp_path, manifest))

    def test_declared_dependencies_are_taken_beside_the_table(self, tmp_path: Path) -> None:
        root = tree(tmp_path, manifest_text("aa", more=self.POETRY))

        profile = read_profile(root, ".", OPTIONS, TOOLCHAIN)

        assert ["aa"] == [dependency.name for dependency in profile.direct]

    def test_no_dependencies_at_all_without_the_table(self, tmp_path: Path) -> None:
        manifest = manifest_text().replace("dependencies = []\n", "")

        assert ("dynamic_metadata", "pyproject.toml") not in refused(
            tree(tmp_path, manifest, "[[package")
        )


LOCKS = {
    "lock_unparsable": "[[package",
    "lock_version_unknown": GOOD_LOCK.replace("version = 1", "version = 2", 1),
    "lock_revision_too_new": GOOD_LOCK.replace("revision = 5", "revision = 6"),
    "sdist_only": lock_text(Locked("aa", "1.0", wheel=False)),
    "registry_unnamed": lock_text(Locked("aa", "1.0", index=MIRROR)),
    "git_source": GOOD_LOCK.replace(
        f'registry = "{INDEX}"', 'git = "https://g.example/aa?rev=1#abc"'
    ),
    "path_source": GOOD_LOCK.replace(f'registry = "{INDEX}"', 'directory = "vendor/aa"'),
}


@pytest.mark.parametrize("code", LOCKS)
def test_a_lock_that_is_not_supported(tmp_path: Path, code: str) -> None:
    assert (code, "uv.lock") in refused(tree(tmp_path, lock=LOCKS[code]))


def test_missing_files(tmp_path: Path) -> None:
    assert [("no_manifest", "pyproject.toml"), ("no_lock", "uv.lock")] == refused(
        tree(tmp_path, None, None)
    )


def test_a_link_is_no_pair_file(tmp_path: Path) -> None:
    tree(tmp_path, lock=None)
    (tmp_path / "other.lock").write_text(GOOD_LOCK)
    (tmp_path / "uv.lock").symlink_to("other.lock")

    assert [("no_lock", "uv.lock")] == refused(tmp_path)


def test_an_lfs_pointer(tmp_path: Path) -> None:
    tree(tmp_path, lock="version https://git-lfs.github.com/spec/v1\noid sha256:1\n")

    assert [("lfs_pointer", "uv.lock")] == refused(tmp_path)


def test_a_pair_file_beyond_the_bound(tmp_path: Path) -> None:
    tree(tmp_path)
    with (tmp_path / "uv.lock").open("ab") as file:
        file.truncate(16 * 1024 * 1024 + 1)

    assert [("pair_too_large", "uv.lock")] == refused(tmp_path)


def test_uv_toml_beside_and_above(tmp_path: Path) -> None:
    tree(tmp_path, directory="a/b")
    (tmp_path / "a/b/uv.toml").write_text("")
    (tmp_path / "uv.toml").write_text("")

    assert [("uv_toml", "a/b/uv.toml"), ("uv_toml", "uv.toml")] == refused(tmp_path, "a/b")


def test_a_workspace_root_above(tmp_path: Path) -> None:
    tree(tmp_path, directory="a/b")
    (tmp_path / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["a/*"]\n')

    assert [("workspace_above", "pyproject.toml")] == refused(tmp_path, "a/b")


def test_settings_above_that_uv_would_read(tmp_path: Path) -> None:
    tree(tmp_path, directory="a")
    (tmp_path / "pyproject.toml").write_text("[tool.uv]\nprerelease = 'allow'\n")

    assert [("settings_above", "pyproject.toml")] == refused(tmp_path, "a")


def test_a_plain_manifest_above_is_fine(tmp_path: Path) -> None:
    tree(tmp_path, directory="a")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'other'\n")

    assert "demo" == read_profile(tmp_path, "a", OPTIONS, TOOLCHAIN).project


def test_all_reasons_are_listed_not_just_the_first(tmp_path: Path) -> None:
    manifest = manifest_text(
        "aa", requires_python=None, more="[tool.uv]\nfuture = 1\nno-binary = true\n"
    )
    lock = lock_text(Locked("aa", "1.0", wheel=False), Locked("bb", "1.0", index=MIRROR))

    codes = [code for code, _ in refused(tree(tmp_path, manifest, lock))]

    assert {
        "no_requires_python",
        "unknown_setting",
        "no_binary_forced",
        "registry_unnamed",
        "sdist_only",
    } == set(codes)


class TestNotRefused:
    """What looks alike and is supported."""

    def test_a_project_that_names_itself_is_no_workspace(self, tmp_path: Path) -> None:
        """Corpus A2: uv writes this when an extra of the project is added to a group."""
        more = (
            '[dependency-groups]\ndev = ["demo[x]"]\n'
            "[tool.uv.sources]\ndemo = { workspace = true }\n"
        )
        tree(tmp_path, manifest_text("aa>=1", more=more))

        profile = read_profile(tmp_path, ".", OPTIONS, TOOLCHAIN)

        assert ["aa"] == [dependency.name for dependency in profile.direct]

    def test_other_dynamic_fields(self, tmp_path: Path) -> None:
        manifest = manifest_text("aa>=1", project='dynamic = ["version", "description"]')

        profile = read_profile(tree(tmp_path, manifest), ".", OPTIONS, TOOLCHAIN)

        assert profile.dynamic_version

    def test_an_index_of_the_policy_with_credentials_and_slash(self, tmp_path: Path) -> None:
        more = '[[tool.uv.index]]\nurl = "https://u:p@mirror.example/simple/"\ndefault = true\n'
        lock = lock_text(Locked("aa", "1.0", index=MIRROR))
        options = ProfileOptions(OPTIONS.images, (MIRROR,))

        profile = read_profile(
            tree(tmp_path, manifest_text("aa>=1", more=more), lock), ".", options, TOOLCHAIN
        )

        assert (MIRROR,) == profile.registries


def test_an_older_lock_revision_is_noted(tmp_path: Path) -> None:
    tree(tmp_path, lock=GOOD_LOCK.replace("revision = 5", "revision = 3"))

    notes = read_profile(tmp_path, ".", OPTIONS, TOOLCHAIN).notes

    assert 1 == len(notes)
    assert "revision 3" in notes[0]


def test_the_newest_fitting_image_is_taken(tmp_path: Path) -> None:
    images = tuple(ToolchainImage(v, f"img-{v}") for v in ("3.9", "3.10", "3.11", "3.12"))
    tree(tmp_path, manifest_text("aa>=1", requires_python=">=3.9,<3.12"))

    profile = read_profile(tmp_path, ".", ProfileOptions(images), TOOLCHAIN)

    assert "3.11" == profile.image.version


def test_a_complete_pair_is_detected() -> None:
    assert detect(["a/pyproject.toml", "a/uv.lock"], "a")
    assert detect(["pyproject.toml", "uv.lock"], ".")
    assert not detect(["pyproject.toml", "a/uv.lock"], ".")


def test_the_pair_is_read_as_bytes(tmp_path: Path) -> None:
    pair = read_pair(tree(tmp_path), ".")

    assert (GOOD.encode(), GOOD_LOCK.encode()) == (pair.manifest, pair.lock)


def test_the_kit_of_another_back_end_is_what_it_asks_for(tmp_path: Path) -> None:
    manifest = GOOD.replace("hatchling.build", "flit_core.buildapi").replace(
        "hatchling", "flit_core<4"
    )

    assert ("flit_core<4",) == read_profile(
        tree(tmp_path, manifest), ".", OPTIONS, TOOLCHAIN
    ).build_requires


def test_the_kit_of_hatchling_has_editables_too(tmp_path: Path) -> None:
    assert ("hatchling", "editables") == read_profile(
        tree(tmp_path), ".", OPTIONS, TOOLCHAIN
    ).build_requires


def test_a_back_end_inside_uv_needs_no_kit(tmp_path: Path) -> None:
    manifest = GOOD.replace("hatchling.build", "uv_build").replace("hatchling", "uv_build>=0.9")

    assert () == read_profile(tree(tmp_path, manifest), ".", OPTIONS, TOOLCHAIN).build_requires


def test_a_dependency_that_no_check_installs_is_known(tmp_path: Path) -> None:
    """An extra for users alone: its dependency is a candidate, but no test runs with it."""
    manifest = manifest_text(
        "aa",
        more='[project.optional-dependencies]\nwide = ["bb"]\ntests = ["pytest"]\n',
    )
    lock = lock_text(
        Locked("aa", "1.0"),
        Locked("bb", "1.0"),
        Locked("pytest", "8.4.2"),
        needs=('name = "aa"',),
        tail='[package.optional-dependencies]\ntests = [{ name = "pytest" }]\nwide = [{ name = "bb" }]',
    )

    assert ("bb",) == read_profile(tree(tmp_path, manifest, lock), ".", OPTIONS, TOOLCHAIN).untried
