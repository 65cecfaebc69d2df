"""The showing: alice applies a run, bob approves its frozen commit, a pull request opens.

Callers: `demolib.cli`.
"""

from datetime import datetime
from typing import Any, Final

from demolib.stage import RUNS, Stage, say
from support.journals import entries_of
from support.kubeapi import Json
from support.platform import APPROVER, REQUESTER
from upgraderun_protocol.entries import Entry
from upgraderun_protocol.outcomes import OUTCOMES

RUN: Final = "first"
RUN_SECONDS: Final = 1800.0
PUBLISHED: Final = OUTCOMES["proposal_published"].reason


class DemoError(Exception):
    """The showing went wrong; the message says what to look at."""


async def show(stage: Stage) -> None:
    """Run the case to its pull request and print what a person would look at."""
    platform = stage.platform
    spec = {"repository": {"url": stage.url}, "mode": "Rules"}
    if stage.case.upgrade:
        spec["upgrade"] = dict(stage.case.upgrade)
    await platform.create_run(RUN, spec)
    say(f"{REQUESTER} applied run/{RUN}; in another terminal: kubectl get runs -n {RUNS} --watch")
    teller = _Teller()
    status = await platform.wait_for(RUN, teller.stops_at_request, "asks for approval", RUN_SECONDS)
    if not status.get("pendingApproval"):
        raise DemoError(f"the run ended {status['outcome']}\n{platform.story(status)}")
    digest = status["pendingApproval"]["presentationSha256"]
    say(f"{APPROVER} reads what is asked: kubectl get upgradereport {RUN} -n {RUNS} -o yaml")
    await platform.answer(RUN)
    say(f"{APPROVER} approved exactly {digest}")
    status = await platform.wait_for(RUN, teller.stops_at_end, "finished", RUN_SECONDS)
    _print_end(stage, status, await platform.run(RUN))


class _Teller:
    """Prints each journal entry once, as it appears."""

    def __init__(self) -> None:
        self._told = 0

    def stops_at_request(self, status: Json) -> bool:
        """Tell what is new; whether people are asked, or the run ended."""
        self._tell(status)
        return bool(status.get("pendingApproval") or status.get("finished"))

    def stops_at_end(self, status: Json) -> bool:
        """Tell what is new; whether the run has ended."""
        self._tell(status)
        return bool(status.get("finished"))

    def _tell(self, status: Json) -> None:
        for entry in status.get("journal", {}).get("entries", []):
            if entry["seq"] > self._told:
                self._told = entry["seq"]
                say(f"{status.get('phase', ''):<16} {entry['id']:<22} {entry['state']}")


def _print_end(stage: Stage, status: Json, run: Json) -> None:
    kubectl = stage.platform.kubectl.as_user(REQUESTER)
    if status["outcome"] != PUBLISHED:
        raise DemoError(f"the run ended {status['outcome']}\n{stage.platform.story(status)}")
    pull, branch = _delivered(stage, status)
    uid = run["metadata"]["uid"]
    entries = entries_of(status, stage.platform.artifacts(uid))
    _section(
        f"kubectl get runs -n {RUNS} -o wide", kubectl("get", "runs", "-n", RUNS, "-o", "wide")
    )
    kubectl("wait", "--for=condition=Succeeded", f"run/{RUN}", "-n", RUNS, "--timeout=10s")
    patch = ("get", "upgradereport", RUN, "-n", RUNS, "-o", "jsonpath={.patch}")
    _section(f"kubectl {' '.join(patch)}", kubectl(*patch))
    _section(f"pull request {pull['number']}: {pull['title']}", pull["body"])
    _section("journal", _timeline(entries))
    print(
        f"\nBranch {branch} is the frozen commit, and pull request {pull['number']} is open.\n"
        f"Look around: export KUBECONFIG={stage.platform.kubectl.kubeconfig}\n"
        f"             kubectl describe run/{RUN} -n {RUNS}\n"
        "Remove it all: hack/cluster down"
    )


def _delivered(stage: Stage, status: Json) -> tuple[dict[str, Any], str]:
    """The one pull request and its branch, which must be the frozen commit."""
    control = stage.outside.servers.host.control
    pulls = control.pulls(stage.repository)
    ours = {
        ref: commit
        for ref, commit in control.refs(stage.repository).items()
        if ref.startswith("refs/heads/upgraderun/")
    }
    if len(pulls) != 1 or list(ours.values()) != [status["proposal"]["commit"]]:
        raise DemoError(f"not one pull request at the frozen commit: {pulls}, {ours}")
    return pulls[0], next(iter(ours)).removeprefix("refs/heads/")


def _section(title: str, text: str) -> None:
    print(f"\n--- {title}\n{text.rstrip()}")


def _timeline(entries: list[Entry]) -> str:
    """Seconds since the first entry, number, id, state: a line per entry."""
    first = datetime.fromisoformat(entries[0].at)
    return "\n".join(
        f"{(datetime.fromisoformat(e.at) - first).total_seconds():5.0f} s  "
        f"{e.seq:>3}  {e.id:<24} {e.state.value}"
        for e in entries
    )
