"""Make the writable state of one validation: source copy with a synthetic git, private uv cache.

Started by a sandbox command as `python -I prepare.py SNAPSHOT SOURCE CACHE PRIVATE GIT TAG`. The one
commit holds exactly the tree, so that versions derived from git build and tests that read git metadata run
(upgrade-run.md §7.3); it is the same for the same tree. Nobody reads it afterwards.

The bytecode prefix of the room starts with links to what the interpreter's own library has compiled: a
new prefix would let every validation compile that library anew. The files are the image's and can't be
written from here; Python replaces a link that it finds stale, and never writes through it.
"""

import os
import subprocess
import sys

WHEN = "2020-01-01T00:00:00Z"
QUIET = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
"""Nobody keeps this repository: git needn't look whether to tidy it."""


def copy(source: str, target: str) -> None:
    """Copy with modes, times and links; the target must not exist."""
    subprocess.run(["/bin/cp", "-a", f"{source}/.", target], check=True)


def synthetic_git(git: str, tree: str, tag: str) -> None:
    """Commit everything, ignored files included: they are tracked in the snapshot's tree."""
    environment = {
        **os.environ,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "upgraderun",
        "GIT_AUTHOR_EMAIL": "upgraderun@localhost",
        "GIT_AUTHOR_DATE": WHEN,
        "GIT_COMMITTER_NAME": "upgraderun",
        "GIT_COMMITTER_EMAIL": "upgraderun@localhost",
        "GIT_COMMITTER_DATE": WHEN,
    }
    steps = [
        ["init", "-q", "--initial-branch=main", "."],
        ["add", "--all", "--force", "."],
        ["commit", "-q", "--no-verify", "--allow-empty", "--message", "tree under test"],
    ]
    if tag:
        steps.append(["tag", "--", tag])
    for step in steps:
        subprocess.run([git, *QUIET, *step], check=True, cwd=tree, env=environment)


def lend_bytecode(library: str, prefix: str) -> None:
    """Link the library's bytecode at the places where `PYTHONPYCACHEPREFIX` lets Python look."""
    for folder, folders, _ in os.walk(library):
        folders[:] = [name for name in folders if not name.endswith("-packages")]
        if "__pycache__" in folders:
            folders.remove("__pycache__")
            target = prefix + folder
            os.makedirs(target, exist_ok=True)  # noqa: PTH103 - as in main
            for entry in os.scandir(f"{folder}/__pycache__"):
                os.symlink(entry.path, f"{target}/{entry.name}")  # noqa: PTH211 - as in main


def main(arguments: list[str]) -> int:
    """Copy, then commit; `PYTHONPYCACHEPREFIX` says where the room keeps bytecode."""
    snapshot, source, cache, private, git, tag = arguments
    os.umask(0o022)
    for folder in (source, private):
        os.makedirs(folder)  # noqa: PTH103 - plain paths in, plain paths out
    copy(snapshot, source)
    subprocess.run(["/bin/chmod", "-R", "u+w", source], check=True)
    copy(cache, private)
    synthetic_git(git, source, tag)
    lend_bytecode(os.path.dirname(os.__file__), os.environ["PYTHONPYCACHEPREFIX"])  # noqa: PTH120 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
