"""The command line of `hack/images`.

Callers: `hack/images`.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterlib import images
from clusterlib.errors import ClusterError
from clusterlib.paths import CHECKOUT

RELEASED = ("operator", "runner")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give back the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (ClusterError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/images", description="images without a registry")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build images, print their references by digest")
    build.add_argument("names", nargs="*", metavar="NAME", help="default: operator runner")
    build.add_argument("--extra", metavar="DIR", help="distribution that only *-test images have")
    build.add_argument(
        "--fixtures",
        type=Path,
        default=CHECKOUT / "tests" / "support",
        help="package of the fixtures image",
    )
    build.set_defaults(run=_build)
    listing = commands.add_parser("list", help="print the references of built images")
    listing.set_defaults(run=lambda _: _print(images.known_images()))
    where = commands.add_parser("catalogue", help="print the path of the list for programs")
    where.set_defaults(run=lambda _: print(images.catalogue()))
    return parser


def _build(options: argparse.Namespace) -> None:
    known = images.recipes(extra=options.extra, fixtures=options.fixtures)
    names = options.names or RELEASED
    if unknown := set(names) - set(known):
        raise ClusterError(
            f"no such image: {', '.join(sorted(unknown))}; there are {', '.join(known)} "
            "(the *-test ones with --extra)"
        )
    _print(images.build([known[name] for name in names]))


def _print(built: Sequence[images.Image]) -> None:
    for image in built:
        print(image.reference)
