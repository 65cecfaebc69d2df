"""Whether a run ended as the scenario table says: outcome, journal, report, remote, published tree.

Callers: tests of whole runs, in processes and in pods.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from support.fixtures.launch import Host
from support.gitclient import authenticated, git
from support.journals import Story
from support.kubeapi import Json
from support.platform import Platform
from support.scenarios import Cell, Row, run_hidden_check
from support.toolchain import Uv
from support.worlds import Scene
from upgraderun_protocol.outcomes import OUTCOMES


def check_outcome(cell: Cell, status: Json, platform: Platform) -> None:
    """Outcome and exit code are the cell's."""
    assert OUTCOMES[cell.outcome].reason == status["outcome"], platform.story(status)
    assert OUTCOMES[cell.outcome].exit_code == status["exitCode"]


def check_details(row: Row, cell: Cell, story: Story) -> None:
    """What the table says beside the outcome stands in journal, artifacts and report."""
    if cell.target is not None:
        wanted = (cell.target.name, cell.target.before, cell.target.after)
        assert wanted == story.target
    if cell.files:
        assert sorted(cell.files) == story.changed_files
    assert sorted(cell.denied) == sorted(story.denied_tools)
    if cell.findings:
        assert sorted(cell.findings) == sorted(story.findings)
    text = story.report_text
    for moved in cell.moved:
        assert moved.name in text
        assert moved.after in text
    for violation in cell.violations:
        assert violation in text
    for refusal in row.refusals:
        assert re.search(rf"\b{refusal.code}\b", text), text
        assert refusal.file in text
    for version in row.ineligible:
        assert set(version.reasons) == story.reasons_of(version.name, version.version)


def check_remote(scene: Scene, cell: Cell, story: Story) -> None:
    """One branch at the frozen commit and one pull request, or nothing at all."""
    host, base = scene.outside.servers.host, scene.built.base_commit
    if not cell.publishes:
        check_untouched(host, scene.repository, base)
        return
    body = check_delivered(host, scene.repository, base, story.commit)
    for pattern in cell.says:
        assert re.search(pattern, body), body


def check_untouched(host: Host, repository: str, base: str) -> None:
    """The base branch is where it was; there is no branch of ours and no pull request."""
    refs = host.control.refs(repository)
    assert base == refs["refs/heads/main"]
    assert {} == _ours(refs)
    assert [] == host.control.pulls(repository)


def check_delivered(host: Host, repository: str, base: str, commit: str) -> str:
    """One branch, created once, at the commit, and one open pull request; returns its body."""
    control = host.control
    refs = control.refs(repository)
    assert base == refs["refs/heads/main"]
    ours = _ours(refs)
    assert [commit] == list(ours.values())
    pulls = control.pulls(repository)
    assert ["open"] == [pull["state"] for pull in pulls]
    created = [u for u in control.ref_updates(repository) if u["ref"] in ours]
    assert ["create"] == [update["kind"] for update in created]
    return str(pulls[0]["body"])


def _ours(refs: Mapping[str, str]) -> dict[str, str]:
    return {ref: sha for ref, sha in refs.items() if ref.startswith("refs/heads/upgraderun/")}


def check_hidden(scene: Scene, cell: Cell, story: Story, uv: Uv, directory: Path) -> None:
    """A published tree passes the hidden check of its row; otherwise it is a false success."""
    if not cell.publishes or not any(scene.built.hidden.iterdir()):
        return
    host = scene.outside.servers.host
    url = authenticated(host.repository_url(scene.repository), scene.built.clone_token)
    git(scene.built.local, "fetch", "-q", url, story.commit)
    done = run_hidden_check(scene.built, story.commit, directory, uv)
    assert done.code == 0, f"false success:\n{done.out}\n{done.err}"
