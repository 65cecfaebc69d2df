"""The command line of `hack/cluster`.

Callers: `hack/cluster`. Prints progress to stderr and the answer to stdout; an expected failure is
one message and exit status 1.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterlib import binaries, instances
from clusterlib.errors import ClusterError

DEFAULT_NAME = "default"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give back the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/cluster", description="a Kubernetes to work with")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start, or repair, a cluster")
    up.add_argument("--api-only", action="store_true", help="only etcd and the API server, no root")
    _where(up)
    up.add_argument("--replicas", type=int, default=1, help="API servers (API mode)")
    up.add_argument("--controllers", action="store_true", help="with controllers (API mode)")
    up.add_argument("--no-fsync", action="store_true", help="faster, not durable (API mode)")
    up.add_argument("--no-mutating-policies", action="store_true", help="that feature gate off")
    up.add_argument("--print", action="store_true", help="print the kubeconfig's path")
    up.set_defaults(run=_up)
    down = commands.add_parser("down", help="stop a cluster and remove all of it")
    down.add_argument("--api-only", action="store_true")
    _where(down)
    down.set_defaults(run=_down)
    build = commands.add_parser("binaries", help="build the programs, print their paths")
    build.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(binaries.ALL)}")
    build.set_defaults(run=_binaries)
    return parser


def _where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help="several may run side by side")
    parser.add_argument("--dir", type=Path, help="state folder (API mode)")


def _up(options: argparse.Namespace) -> None:
    server = instances.up(
        options.dir or instances.folder(options.name),
        replicas=options.replicas,
        controllers=options.controllers,
        fsync=not options.no_fsync,
        mutating_policies=not options.no_mutating_policies,
    )
    if options.print:
        print(server.kubeconfig)
    else:
        print(f"export KUBECONFIG={server.kubeconfig}")


def _down(options: argparse.Namespace) -> None:
    instances.down(options.dir or instances.folder(options.name))


def _binaries(options: argparse.Namespace) -> None:
    names = options.names or binaries.ALL
    if unknown := set(names) - set(binaries.ALL):
        raise ClusterError(f"no such program: {', '.join(sorted(unknown))}")
    binaries.ensure(names)
    for name in names:
        print(binaries.path_of(name))
