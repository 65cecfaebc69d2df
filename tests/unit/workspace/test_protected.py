"""Protected paths (upgrade-run.md §9.4, H31)."""

import pytest

from upgraderun_runner.workspace.protected import HOUSE_GLOBS, ProtectedPaths

EXAMPLES = {
    ".github/**": ".github/workflows/ci.yml",
    ".gitlab-ci.yml": ".gitlab-ci.yml",
    ".gitlab/**": ".gitlab/merge/x.md",
    ".circleci/**": ".circleci/config.yml",
    ".buildkite/**": ".buildkite/pipeline.yml",
    ".tekton/**": ".tekton/run.yaml",
    ".woodpecker*": ".woodpecker.yml",
    ".woodpecker/**": ".woodpecker/a.yml",
    ".drone.yml": ".drone.yml",
    ".travis.yml": ".travis.yml",
    "azure-pipelines.yml": "azure-pipelines.yml",
    "bitbucket-pipelines.yml": "bitbucket-pipelines.yml",
    "Jenkinsfile": "Jenkinsfile",
    ".gitignore": ".gitignore",
    ".gitattributes": ".gitattributes",
    ".gitmodules": ".gitmodules",
    ".githooks/**": ".githooks/pre-commit",
    ".husky/**": ".husky/pre-push",
    ".pre-commit-config.yaml": ".pre-commit-config.yaml",
    "lefthook.yml": "lefthook.yml",
    "**/CODEOWNERS": "docs/CODEOWNERS",
    "SECURITY.md": "SECURITY.md",
    "LICENSE*": "LICENSE.txt",
    "renovate.json*": "renovate.json5",
    ".renovaterc*": ".renovaterc.json",
    ".upgraderun/**": ".upgraderun/x",
    "**/AGENTS.md": "a/b/AGENTS.md",
    "**/CLAUDE.md": "CLAUDE.md",
    "**/GEMINI.md": "x/GEMINI.md",
    ".claude/**": ".claude/settings.json",
    ".cursor/**": ".cursor/rules/a",
    ".cursorrules": ".cursorrules",
    ".windsurf/**": ".windsurf/x",
    ".aider*": ".aider.conf.yml",
    ".mcp.json": ".mcp.json",
    ".vscode/**": ".vscode/tasks.json",
    ".idea/**": ".idea/x.xml",
    ".devcontainer/**": ".devcontainer/devcontainer.json",
    "**/.npmrc": "web/.npmrc",
    ".yarnrc*": ".yarnrc.yml",
    "**/pip.conf": "etc/pip.conf",
    ".pypirc": ".pypirc",
    "uv.toml": "uv.toml",
    ".netrc": ".netrc",
}


def test_every_glob_of_the_house_has_an_example() -> None:
    assert set(EXAMPLES) == set(HOUSE_GLOBS)


@pytest.mark.parametrize(("glob", "path"), EXAMPLES.items())
def test_glob_protects_its_example_in_any_case_and_form(glob: str, path: str) -> None:
    alone = ProtectedPaths([glob])

    assert glob == alone.match(path)
    assert glob == alone.match(path.upper())
    assert glob == alone.match(path.swapcase())
    assert glob == ProtectedPaths([glob], directory="svc/api").match(f"svc/api/{path}")
    assert ProtectedPaths(HOUSE_GLOBS, release=[glob]).match(path) in {
        None,
        ".woodpecker*",
    } - {glob}


@pytest.mark.parametrize(
    "path",
    [
        "src/github/x.py", "docs/SECURITY.md", "sub/Jenkinsfile", "CODEOWNERS.md", "src/a.py",
        ".githubx/a", "a/LICENSE", "my.gitignore", "sub/.gitignore", ".github", "tool.cursorrules",
    ],
)  # fmt: skip
def test_other_paths_are_free(path: str) -> None:
    assert ProtectedPaths(HOUSE_GLOBS).match(path) is None


def test_unicode_variants_match() -> None:
    protected = ProtectedPaths(["tests/caf\u00e9/**"])

    assert protected.match("tests/cafe\u0301/x") is not None
    assert protected.match("TESTS/CAFE\u0301/x") is not None


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("**/tests/**", "tests/a", True), ("**/tests/**", "a/tests/b/c", True),
        ("**/tests/**", "tests", False), ("**/tests/**", "contests/a", False),
        ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True), ("a/**/b", "a/x", False),
        ("*.py", "a.py", True), ("*.py", "d/a.py", False), ("test_?.py", "test_1.py", True),
        ("**", "anything/at/all", True), ("**/test_*.py", "test_a.py", True),
        ("docs/*", "docs/a/b", False), ("a*b*c*d", "a1b2c3d", True),
    ],
)  # fmt: skip
def test_globs_match_by_segments(glob: str, path: str, *, expected: bool) -> None:
    assert expected is (ProtectedPaths([glob]).match(path) is not None)


def test_policy_adds_and_releases_only_by_exact_text() -> None:
    protected = ProtectedPaths(HOUSE_GLOBS, add=["infra/**"], release=["LICENSE", "Jenkinsfile"])

    assert "infra/**" == protected.match("infra/main.tf")
    assert "LICENSE*" == protected.match("LICENSE")
    assert protected.match("Jenkinsfile") is None
    assert sorted({*HOUSE_GLOBS, "infra/**"} - {"Jenkinsfile"}) == list(protected.globs)
