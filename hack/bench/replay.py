"""A whole `patch-safe` run against a script that runs the commands of its records again.

Each round: one run in mode Rules (operator and runner as processes, real git and uv) up to its request
for approval; then a plain shell script with the argv list that the run recorded, from a new clone, with
empty caches, as the same user, with the same programs, registry, git host and network namespaces; then
the six commands that a person would type. A run counts from its pod's creation, so the start of the
runner and every write of the journal is in it; its end by the publisher stands apart. Prints medians
and exits 1 if the bound is missed.

    .venv/bin/python hack/bench/replay.py [--rounds 5]
"""

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.bare import open_client
from benchlib.figures import Figures, run_within
from benchlib.pods import watch_pods
from benchlib.recorded import Recorded, RunRecords
from benchlib.replaying import Replay, Tools, bare
from benchlib.script import Part
from benchlib.world import World, open_world, row_of
from support.kubeapi import CORE, Json, path_of
from support.platform import Platform, until
from support.worlds import Scene, open_scene

RATIO_MAX: Final = 1.15
LIMIT_SECONDS: Final = 30 * 60
SPOKE: Final = "a1/i1"
CLONED: Final = "profile/1"
START: Final = "start"
CLONE: Final = "clone"
FREEZE: Final = "freeze"


@dataclass(slots=True)
class Followed:
    """A run as a watch told of it: its entries in order, when each was seen first."""

    entries: list[Json]
    seen: dict[tuple[str, str], float]
    created: float = 0.0
    asked: float = 0.0
    published: float = 0.0
    cpu: float = 0.0

    def see(self, status: Json) -> bool:
        """Note a version of the status; true once the run asks people or has ended."""
        now = time.monotonic()
        for entry in status.get("journal", {}).get("entries", ()):
            key = (entry["id"], entry["state"])
            if key not in self.seen:
                self.seen[key] = now
                self.entries.append(entry)
        return bool(status.get("pendingApproval") or status.get("outcome"))

    def parts(self, steps: Sequence[str]) -> tuple[Part, ...]:
        """Where the time went: each part ends when its outcome stands in the journal."""
        ends = [(START, self.seen[SPOKE, "done"]), (CLONE, self.seen[CLONED, "done"])]
        ends += [(step, self.seen[step, "done"]) for step in steps]
        ends.append((FREEZE, self.asked))
        begun = [self.created, *(at for _, at in ends)]
        return tuple(
            Part(name, at - before) for (name, at), before in zip(ends, begun, strict=False)
        )


@dataclass(frozen=True, slots=True)
class Round:
    """One run and its two scripts, in parts; `publisher`: from the approval to the pull request.

    `cpu`: processor seconds of runner, replay and bare commands, with all that they started. A busy
    machine changes them little.
    """

    commands: tuple[Recorded, ...]
    tools: dict[str, str]
    run: tuple[Part, ...]
    replay: tuple[Part, ...]
    bare: tuple[Part, ...]
    publisher: float
    cpu: tuple[float, float, float]


def total(parts: Sequence[Part]) -> float:
    """Seconds of all parts."""
    return sum(part.seconds for part in parts)


class Bench:
    """Rounds on one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def round(self, name: str) -> Round:
        """Run, replay, type."""
        world = self._world
        scene = await open_scene(
            row_of("patch-safe"), name, world.folder / "scenes", world.outside, world.platform
        )
        followed = await self._followed(scene)
        uid = (await world.platform.run(name))["metadata"]["uid"]
        records = RunRecords(followed.entries, world.platform.artifacts(uid))
        commands, pair = records.commands(), records.promoted()
        steps = tuple(dict.fromkeys(command.step for command in commands))
        tools = self._tools(scene, commands)
        root = world.folder / "scripts" / name
        before = used()
        again = Replay(tools, root / "replay", pair, scene.built.base_tree).write(commands)
        replayed = await again.run()
        between = used()
        typed = await bare(tools, root / "bare", pair, records.target()).run()
        return Round(
            commands,
            {step: records.tool(step) for step in steps},
            followed.parts(steps),
            replayed,
            typed,
            followed.published - followed.asked,
            (followed.cpu, between - before, used() - between),
        )

    async def _followed(self, scene: Scene) -> Followed:
        platform, name = self._world.platform, scene.name
        followed = Followed([], {})
        before = used()
        async with (
            open_client(self._world.server.kubeconfig) as client,
            watch_pods(client, platform.namespace) as pods,
        ):
            await platform.create_run(name, scene.spec("Rules"))
            status = await platform.wait_for(name, followed.see, "asks for approval")
            followed.asked = time.monotonic()
            assert status.get("pendingApproval"), platform.story(status)
            await pods.wait_for([name], 1)
            followed.created = pods.seen[name]
        # Its processor time is known once its process was waited for.
        await until(partial(_none_runs, platform), "the runner has ended")
        followed.cpu = used() - before
        await self._published(platform, name, followed)
        return followed

    async def _published(self, platform: Platform, name: str, followed: Followed) -> None:
        """Approve, so that the next round finds a quiet platform; keeps the publisher's time."""
        approved = time.monotonic()
        await platform.answer(name)
        status = await platform.wait_for(name, lambda s: bool(s.get("outcome")), "has an outcome")
        followed.published = followed.asked + time.monotonic() - approved
        assert status["outcome"] == "Published", platform.story(status)
        await platform.finished(name)

    def _tools(self, scene: Scene, commands: Sequence[Recorded]) -> Tools:
        world, runner = self._world, self._world.runner
        scheme, rest = scene.built.repository_url.split("://")
        return Tools(
            runner_python=runner.python,
            uv=runner.uv,
            python=next(c.argv[0] for c in commands if c.argv[2:3][0].endswith("/probe.py")),
            search_path=f"{runner.directory / 'bin'}:/usr/bin:/bin",
            ca_bundle=world.outside.bundle,
            url=f"{scheme}://x-access-token:{scene.built.clone_token}@{rest}",
        )


async def _none_runs(platform: Platform) -> bool:
    pods = await platform.kube.items(path_of(CORE, platform.namespace, "pods"))
    phases = {pod.get("status", {}).get("phase") for pod in pods}
    return not phases - {"Succeeded", "Failed"}


def used() -> float:
    """Processor seconds of every process that this one started and waited for, with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def measure(rounds: int) -> int:
    """Measure rounds on one world, print their medians."""
    figures = Figures("a patch-safe run against its own commands")
    async with open_world() as world:
        bench = Bench(world)
        await bench.round("warm-up")
        measured = []
        for number in range(rounds):
            measured.append(await bench.round(f"round-{number}"))
            tell_round(figures, number, measured[-1])
    show(figures, measured)
    return figures.exit_code


def tell_round(figures: Figures, number: int, one: Round) -> None:
    """Print the totals of a round as soon as it ends: rounds take minutes on a busy machine."""
    parts = (("run", one.run), ("replay", one.replay), ("bare", one.bare))
    words = ", ".join(f"{what} {total(which):.1f} s" for what, which in parts)
    ratio = total(one.run) / total(one.replay)
    cpu = ", ".join(f"{seconds:.1f}" for seconds in one.cpu)
    words += f" (processor {cpu} s)"
    figures.tell(f"round {number}", f"{words}, ratio {ratio:.2f}, load {os.getloadavg()[0]:.0f}")


def show(figures: Figures, rounds: Sequence[Round]) -> None:
    """Print totals, ratios, then the parts."""
    run, replay, typed = (
        [total(getattr(one, which)) for one in rounds] for which in ("run", "replay", "bare")
    )
    for what, values in (("run", run), ("replay", replay), ("six bare commands", typed)):
        figures.tell(what, f"{statistics.median(values):.2f} s")
    publisher = statistics.median(one.publisher for one in rounds)
    figures.tell("approval to pull request, apart", f"{publisher:.2f} s")
    ratio = statistics.median(run) / statistics.median(replay)
    figures.at_most("run against replay", ratio, RATIO_MAX, "x")
    cpu = [statistics.median(one.cpu[index] for one in rounds) for index in range(3)]
    figures.tell("processor seconds", "run {:.1f}, replay {:.1f}, bare {:.1f}".format(*cpu))
    figures.tell("run against replay, processor seconds", f"{cpu[0] / cpu[1]:.3f}x")
    against = statistics.median(run) / statistics.median(typed)
    figures.tell("run against the six bare commands", f"{against:.2f}x")
    print(f"{'part':<24}{'run':>8}{'commands':>10}{'replay':>8}  seconds, medians")
    for part in rounds[0].run:
        print(_row(part.name, rounds))
    for part in rounds[0].bare:
        seconds = statistics.median(_seconds(one.bare, part.name) for one in rounds)
        print(f"bare: {part.name:<18}{seconds:8.2f}")


def _row(name: str, rounds: Sequence[Round]) -> str:
    """One part: what it took in the run, what its commands took there, what it took again."""
    run = statistics.median(_seconds(one.run, name) for one in rounds)
    own = statistics.median(_own_seconds(one.commands, name) for one in rounds)
    again = statistics.median(_seconds(one.replay, name) for one in rounds)
    label = rounds[0].tools.get(name, name)
    return f"{label:<24}{run:8.2f}{own:10.2f}{again:8.2f}"


def _seconds(parts: Sequence[Part], name: str) -> float:
    return sum(part.seconds for part in parts if part.name == name)


def _own_seconds(commands: Sequence[Recorded], step: str) -> float:
    return sum(c.duration_ms or 0 for c in commands if c.step == step) / 1000


def main() -> int:
    """Measure on a world of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    return run_within(LIMIT_SECONDS, measure(parser.parse_args().rounds))


if __name__ == "__main__":
    sys.exit(main())
