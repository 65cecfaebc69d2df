"""The command line of `hack/cluster`.

Callers: `hack/cluster`. Prints progress to stderr and the answer to stdout; an expected failure is
one message and exit status 1.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from clusterlib import binaries, instances, local, provisioner, whole
from clusterlib.errors import ClusterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give back the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/cluster", description="a Kubernetes to work with")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = _command(commands, "up", _up, "start, grow or repair a cluster")
    up.add_argument("--nodes", type=int, help="1 or 2; default: as it is, else 1")
    up.add_argument("--no-mutating-policies", action="store_true", help="that feature gate off")
    up.add_argument("--print", action="store_true", help="print the kubeconfig's path alone")
    mode = _api_mode(up)
    mode.add_argument("--replicas", type=int, default=1, help="API servers")
    mode.add_argument("--controllers", action="store_true", help="with kube-controller-manager")
    mode.add_argument("--no-fsync", action="store_true", help="faster, loses data on power loss")
    _api_mode(_command(commands, "down", _down, "remove a cluster with all it made"))
    _command(commands, "status", lambda o: print(whole.status(o.name)), "show what runs")
    load = _command(commands, "load", _load, "import images on every node, print their references")
    load.add_argument("images", nargs="+", metavar="IMAGE", help="a built one, or an OCI archive")
    _command(
        commands,
        "kubeconfig",
        lambda o: print(whole.kubeconfig(o.name)),
        "print the path of the kubeconfig",
    )
    for verb, act in (("pause", whole.pause_node), ("resume", whole.resume_node)):
        node = _command(commands, verb, partial(_on_node, act), f"{verb} a node's kubelet")
        node.add_argument("node", metavar="NODE", help="node1 or node2")
    build = _command(commands, "binaries", _binaries, "build the programs, print their paths")
    build.add_argument("names", nargs="*", metavar="NAME", help=", ".join(binaries.ALL))
    _command(commands, "provision", _provision, "serve local volumes (started by `up`)")
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], None],
    text: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--name", default=whole.DEFAULT_NAME, help="several may run side by side")
    parser.set_defaults(run=run)
    return parser


def _api_mode(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("API mode")
    group.add_argument("--api-only", action="store_true", help="etcd and API server, no root")
    group.add_argument("--dir", type=Path, help="state folder")
    return group


def _up(options: argparse.Namespace) -> None:
    if options.api_only:
        config = _up_api_only(options)
    else:
        policies = not options.no_mutating_policies
        config = whole.up(options.name, options.nodes, mutating_policies=policies)
    print(config if options.print else f"export KUBECONFIG={config}")


def _up_api_only(options: argparse.Namespace) -> Path:
    server = instances.up(
        options.dir or instances.folder(options.name),
        replicas=options.replicas,
        controllers=options.controllers,
        fsync=not options.no_fsync,
        mutating_policies=not options.no_mutating_policies,
    )
    return server.kubeconfig


def _down(options: argparse.Namespace) -> None:
    if options.api_only:
        instances.down(options.dir or instances.folder(options.name))
    elif not whole.down(options.name):
        print(f"there is no cluster {options.name}", file=sys.stderr)


def _on_node(act: Callable[[str, str], None], options: argparse.Namespace) -> None:
    act(options.name, options.node)


def _load(options: argparse.Namespace) -> None:
    print("\n".join(whole.load(options.name, options.images)))


def _provision(options: argparse.Namespace) -> None:
    def folders() -> dict[str, Path]:
        return {node.name: node.volumes for node in whole.existing(options.name).nodes}

    client = local.client(whole.existing(options.name), "local-provisioner")
    provisioner.run(client, local.STORAGE_CLASS, folders)


def _binaries(options: argparse.Namespace) -> None:
    names = options.names or binaries.ALL
    if unknown := set(names) - set(binaries.ALL):
        raise ClusterError(f"no such program: {', '.join(sorted(unknown))}")
    binaries.ensure(names)
    for name in names:
        print(binaries.path_of(name))
