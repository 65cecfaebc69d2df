"""The environment and settings of every git call are exactly those of security.md §6 (H27)."""

from pathlib import Path

from upgraderun_runner.workspace import gitenv
from upgraderun_runner.workspace.git import Git, GitSettings

PLACES = gitenv.Places(
    home=Path("/p/home"),
    global_config=Path("/p/gitconfig"),
    askpass=Path("/p/askpass"),
    git_dir=Path("/v/git"),
    work_tree=Path("/p/home"),
)


def test_environment_is_built_from_nothing() -> None:
    assert {
        "PATH": "/usr/bin",
        "HOME": "/p/home",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_DIR": "/v/git",
        "GIT_WORK_TREE": "/p/home",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/p/gitconfig",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "https",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/p/askpass",
        "GIT_SSH_COMMAND": "false",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    } == gitenv.base_environment("/usr/bin", PLACES, ("https",))


def test_command_line_starts_with_every_setting() -> None:
    settings = GitSettings(Path("/p"), ca_bundle=Path("/ca.pem"))
    expected = [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.sshCommand=false",
        "core.attributesFile=/dev/null",
        "core.excludesFile=/dev/null",
        "core.protectHFS=true",
        "core.protectNTFS=true",
        "core.autocrlf=false",
        "core.fsync=all",
        "core.quotePath=true",
        "protocol.allow=never",
        "protocol.https.allow=always",
        "http.followRedirects=false",
        "transfer.fsckObjects=true",
        "fetch.fsck.zeroPaddedFilemode=warn",
        "fetch.fsck.badTimezone=warn",
        "fetch.fsck.missingSpaceBeforeDate=warn",
        "fsck.zeroPaddedFilemode=warn",
        "fsck.badTimezone=warn",
        "fsck.missingSpaceBeforeDate=warn",
        "transfer.bundleURI=false",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "push.recurseSubmodules=no",
        "push.followTags=false",
        "push.gpgSign=false",
        "safe.bareRepository=explicit",
        "credential.helper=",
        "init.templateDir=",
        "commit.gpgSign=false",
        "gpg.program=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "http.sslCAInfo=/ca.pem",
    ]

    argv = Git(settings, Path("/v/git")).argv(("write-tree",))

    assert ("git", "--no-pager") == argv[:2]
    assert [part for s in expected for part in ("-c", s)] == list(argv[2:-1])
    assert "write-tree" == argv[-1]


def test_stamp_names_author_and_committer_alike() -> None:
    assert {
        "GIT_AUTHOR_NAME": "Bot",
        "GIT_AUTHOR_EMAIL": "bot@example.com",
        "GIT_AUTHOR_DATE": "@7 +0000",
        "GIT_COMMITTER_NAME": "Bot",
        "GIT_COMMITTER_EMAIL": "bot@example.com",
        "GIT_COMMITTER_DATE": "@7 +0000",
    } == gitenv.stamp_environment("Bot", "bot@example.com", 7)


def test_credential_is_bound_to_its_origin() -> None:
    assert {
        "UPGRADERUN_GIT_ORIGIN": "https://git.example:8443",
        "UPGRADERUN_GIT_USER_ORIGIN": "https://bot@git.example:8443",
        "UPGRADERUN_GIT_USERNAME": "bot",
        "UPGRADERUN_GIT_SECRET": "s3cret",
    } == gitenv.credential_environment("https://git.example:8443", "bot", "s3cret")


def test_origin_leaves_out_user_and_path() -> None:
    assert "https://git.example" == gitenv.origin_of("https://user:pw@GIT.example/a/b.git")
    assert "http://127.0.0.1:81" == gitenv.origin_of("http://127.0.0.1:81/a/b")
    assert "https://[::1]:81" == gitenv.origin_of("https://[::1]:81/a")
