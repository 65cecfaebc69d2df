"""`docs/recovery.md`: what an interruption at each point comes to, from the table of effects.

Callers: `hack/generate.py`. Text comes from the rows of `upgraderun_protocol.effects`; change those.
"""

from typing import Final

from upgraderun_protocol.effects import EffectRow, Position, Program, effects_of

_HEAD: Final = """\
# Recovery

What happens when operator, runner or publisher dies at any instant, or the answer to what it did is lost. Generated from
`upgraderun_protocol.effects` by `make generate`. There is no recovery mode: the code that starts a run resumes it, and it
looks before it acts.

Each effect is reached through one door, between its fault points: *before* (what must stand before it stands, nothing is
done), *applied* (done, not recorded), *recorded* (its record stands, nothing after it has begun), *reply lost* (done, but
the process lives on without the answer). An effect that no entry records has no point *recorded*: the world itself is its
record. What a look can't read is unknown: nothing is done, and it is looked at again later. What contradicts the journal is
a conflict: [runbook](runbook.md#upgraderunconflict).

`make crash-matrix` strikes at every point below and prints what recovery found and did, how the run ended, and what was
done once more; `hack/crash-matrix --list` prints the points alone. Each test proves by a line of the hook that its point was
hit, and compares the end with the undisturbed run's. A few of them run in each `make test`, too.

`hack/crash-pairs` strikes twice in one history of `patch-safe`: first at each point, then at each point that is passed after
it. There operator, runner and publisher are coroutines of one process on virtual time; API server, kubelet and git host are
doubles, which answer the same assertions as the originals do (`tests/sim`). A history that ends otherwise than the undisturbed
one is printed with the pair that plays it again. Nothing is exempt, not even the labels of the pull request: they are set
before it is recorded.
"""

_PROGRAMS: Final = {
    Program.OPERATOR: """\
## Operator

The next process takes the leader Lease, reads the run from the API server itself and decides again. Children have computed
names: what stands under one is ours if its owner's UID is the run's. Tokens are struck where the API serves them.
""",
    Program.RUNNER: """\
## Runner

The pod's end is seen twice, the grace apart, or proved; then the next attempt opens the same volume. It sweeps what no open
intent names, then settles promotions, file writes, phases and proposals in this order, and goes on. What a validation or a
decision had found and no entry names is never accepted.
""",
    Program.PUBLISHER: """\
## Publisher

The next publisher rebuilds the proposal from artifacts and base, and looks at branch and pull requests before it does
anything. It creates; it never overwrites, reopens or closes.
""",
}
MINTED: Final = frozenset({"clone_token", "push_token"})
_FILES: Final = {
    Program.OPERATOR: "tests/crash/test_operator.py",
    Program.RUNNER: "tests/crash/test_runner.py",
    Program.PUBLISHER: "tests/crash/test_publisher.py",
}
_MINT_FILE: Final = "tests/api/runner_api/test_tokens.py"


def recovery_page() -> str:
    """Text of the page."""
    return _HEAD + "".join(f"\n{_PROGRAMS[program]}{_tables(program)}" for program in Program)


def _tables(program: Program) -> str:
    rows = effects_of(program)
    effects = "".join(_effect(row) for row in rows)
    points = "".join(_point(program, row, position) for row in rows for position in row.positions)
    return (
        "\n| effect | intent | look | if it was applied | if not | record |\n"
        f"|---|---|---|---|---|---|\n{effects}"
        "\n| interrupted at | then | test |\n"
        f"|---|---|---|\n{points}"
    )


def _effect(row: EffectRow) -> str:
    intent, record = (_kinds(kinds) for kinds in (row.intent, row.record))
    return (
        f"| `{row.name}` | {intent} | {row.look} | {row.applied} | {row.not_applied} | {record} |\n"
    )


def _kinds(kinds: str) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds.split()) or "-"


def _point(program: Program, row: EffectRow, position: Position) -> str:
    point = f"{row.name}.{position}"
    if row.name in MINTED:
        file, name = _MINT_FILE, f"{row.name.removesuffix('_token')}-{position}"
    else:
        file, name = _FILES[program], point
    return f"| `{point}` | {_then(row, position)} | [`[{name}]`](../{file}) |\n"


def _then(row: EffectRow, position: Position) -> str:
    match position:
        case Position.BEFORE:
            return row.not_applied
        case Position.RECORDED:
            return "the record is read; what comes next begins"
        case _:
            return row.applied
