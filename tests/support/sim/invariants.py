"""The invariants of reliability.md §4 that a history can break, checked after every change.

I1 one live runner and publisher · I3 the journal only grows · I4 epochs never fall · I5 no effect on the
forge without an open intent · I6 none before its approval · I7 what is published is what was frozen ·
I9 one branch, one pull request · I10 an outcome stands · I14 bounded.
"""

from typing import Any, Final

from support.sim.apiserver import ApiServer, Json
from support.sim.forge import REPOSITORY, SimHost
from support.sim.pods import SimKubelet
from upgraderun_operator.resources import PODS, UPGRADE_APPROVALS, UPGRADE_RUNS
from upgraderun_protocol.effects import Program as Role

ATTEMPTS_MAX: Final = 10


class Invariants:
    """Watches one world; `broken` holds what a change broke, since a pass would take an error for a bug."""

    def __init__(self, server: ApiServer, kubelet: SimKubelet) -> None:
        self._server = server
        self._kubelet = kubelet
        self._status: Json = {}
        self._entries: dict[int, Any] = {}
        self.broken: list[str] = []

    def see(self, what: str, plural: str, raw: Json) -> None:
        """A change of an object."""
        try:
            self._see(what, plural, raw)
        except AssertionError as error:
            self.broken.append(str(error))

    def _see(self, what: str, plural: str, raw: Json) -> None:
        if plural == UPGRADE_RUNS.plural and what == "MODIFIED":
            self._run(raw.get("status") or {})
        if plural == PODS.plural and what == "ADDED":
            self._pod()

    def _pod(self) -> None:
        for role in (Role.RUNNER, Role.PUBLISHER):
            live = [p for p in self._kubelet.pods.values() if p.role is role and p.lives]
            assert len(live) <= 1, f"I1: {[p.name for p in live]} live at once"

    def _run(self, status: Json) -> None:
        old, new = self._status, status
        before, after = _head(old), _head(new)
        assert before[0] <= after[0], f"I3: seq fell from {before} to {after}"
        assert before[1] <= after[1], f"I4: the epoch fell from {before} to {after}"
        epoch = 0
        for entry in (new.get("journal") or {}).get("entries") or ():
            known = self._entries.setdefault(entry["seq"], entry)
            assert known == entry, f"I3: entry {entry['seq']} was {known} and is {entry}"
            assert epoch <= entry["epoch"], f"I4: {entry} is of an older writer"
            epoch = entry["epoch"]
        missing = set(range(1, after[0] + 1)) - set(self._entries)
        assert not missing, f"I3: entries {missing} were never there"
        for key in ("outcome", "exitCode") if old.get("outcome") else ():
            assert old[key] == new.get(key), f"I10: {key} {old[key]} became {new.get(key)}"
        assert len(self._entries) <= 200, f"I14: {len(self._entries)} entries"
        self._status = new

    def acts(self, what: str, commit: str, run: Json) -> None:
        """Somebody is about to create a branch or a pull request."""
        try:
            self._acts(what, commit, run)
        except AssertionError as error:
            self.broken.append(str(error))

    def _acts(self, what: str, commit: str, run: Json) -> None:
        kind = "push" if what == "branch" else "pullRequest"
        entries = [self._entries[seq] for seq in sorted(self._entries)]
        mine = [entry for entry in entries if entry["kind"] == kind]
        closed = {entry["id"] for entry in mine if entry["state"] != "intent"}
        opened = [e for e in mine if e["state"] == "intent" and e["id"] not in closed]
        assert opened, f"I5: {what} without an open intent"
        if what == "branch":
            assert commit == opened[-1]["data"]["commit"], f"I7: {commit} isn't the intended one"
        digest = next(e["data"]["proposal"] for e in entries if e["kind"] == "push")
        yes = [
            one
            for one in self._server.items(UPGRADE_APPROVALS)
            if one["spec"]["decision"] == "Approve"
            and one["spec"]["runRef"]["uid"] == run["metadata"]["uid"]
        ]
        assert yes, f"I6: {what} of {digest} before anybody approved"

    def at_the_end(self, run: Json, host: SimHost) -> None:
        """What must hold of a run that is over."""
        published = run["status"]["publication"]
        refs = host.repositories.refs(REPOSITORY, "refs/heads")
        ours = {name: at for name, at in refs.items() if name != "refs/heads/main"}
        assert ours == {f"refs/heads/{published['branch']}": published["commit"]}, f"I9: {ours}"
        state = host.state.find(REPOSITORY)
        assert state is not None
        assert [published["commit"]] == [pull.head_sha for pull in state.pulls], "I7, I9"
        frozen = [e for e in self._entries.values() if e["kind"] == "proposal"]
        commits = {e["data"]["commit"] for e in frozen if e["state"] == "intent"}
        assert published["commit"] in commits, "I7: another commit than the frozen one"
        ids = [(e["id"], e["state"] == "intent") for e in self._entries.values()]
        assert len(ids) == len(set(ids)), "I5: an id has two outcomes"
        attempts = [p for p in self._kubelet.pods.values() if p.role is Role.RUNNER]
        assert len(attempts) <= ATTEMPTS_MAX, f"I14: {len(attempts)} attempts"


def _head(status: Json) -> tuple[int, int]:
    head = (status.get("journal") or {}).get("head") or {}
    return int(head.get("seq", 0)), int(head.get("epoch", 0))
