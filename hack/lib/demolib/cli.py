"""The command line of `hack/demo`.

Callers: `hack/demo`.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from clusterlib.errors import ClusterError
from demolib.show import DemoError, show
from demolib.stage import open_stage
from support.corpus import CASES, case
from support.toolchain import ToolFailedError

PROPOSING = tuple(c.name for c in CASES if c.answer.outcome == "proposal_prepared")


def main(arguments: Sequence[str] | None = None) -> int:
    """Show one run; give back the exit status."""
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="upgraderun-demo-") as folder:
            asyncio.run(_demo(options.case, Path(folder)))
    except (ClusterError, DemoError, ToolFailedError) as error:
        print(f"error: {error}\n`make demo` may be repeated; docs/cluster.md tells more.")
        return 1
    return 0


async def _demo(name: str, folder: Path) -> None:
    async with open_stage(case(name), folder) as stage:
        await show(stage)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/demo",
        description="Upgrade one dependency of a real library on the whole cluster, in pods.",
        epilog="It starts the cluster if needed, builds the images, and leaves everything to look "
        "at; `hack/cluster down` removes it.",
    )
    parser.add_argument(
        "--case",
        choices=PROPOSING,
        default="A4",
        help="which library, as in tests/support/corpus (default: %(default)s, environs)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
