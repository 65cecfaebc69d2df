"""API servers with the CRDs, RBAC and admission policies of the chart.

Servers of their own: the policies refuse what other suites do as administrator. Every test makes
its own namespace.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusterlib.apiserver import ApiServer, Options, start_api_server
from support.chart import MUTATING
from support.kinds import Kinds, install, make_namespace, role_binding
from support.kube import Kube, connected, eventually

_NUMBERS = itertools.count(1)


def _serve(folder: Path, options: Options, versions: tuple[str, ...]) -> Iterator[Kinds]:
    server = start_api_server(folder, options)
    try:
        with connected(server) as admin:
            yield install(server, admin, {}, versions)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kinds]:
    """A server that has MutatingAdmissionPolicy."""
    yield from _serve(tmp_path_factory.mktemp("kinds"), Options(fsync=False), (MUTATING,))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An empty server of a module's own, with controllers: helm owns what it installs."""
    folder = tmp_path_factory.mktemp("helm")
    started = start_api_server(folder, Options(fsync=False, controllers=True))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def admin(server: ApiServer) -> Iterator[Kube]:
    with connected(server) as client:
        yield client


@pytest.fixture(scope="session")
def plain_kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kinds]:
    """A server without MutatingAdmissionPolicy, as most are."""
    options = Options(fsync=False, feature_gates={})
    yield from _serve(tmp_path_factory.mktemp("plain"), options, ())


def _new_namespace(kinds: Kinds) -> str:
    name = f"team-{next(_NUMBERS)}"
    make_namespace(
        kinds.admin,
        name,
        **{
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/enforce-version": "latest",
        },
    )
    return name


@pytest.fixture
def namespace(kinds: Kinds) -> str:
    """A fresh namespace on the server of `kinds`."""
    return _new_namespace(kinds)


@pytest.fixture
def plain_namespace(plain_kinds: Kinds) -> str:
    """A fresh namespace on the server of `plain_kinds`."""
    return _new_namespace(plain_kinds)


@pytest.fixture
def bind(kinds: Kinds) -> Callable[[str, str, str], Kube]:
    """Bind a user to one of the shipped roles in a namespace; gives back the user's client."""

    def bound(user: str, role: str, namespace: str) -> Kube:
        kinds.admin.apply(role_binding(user, role, namespace))
        client = kinds.admin.as_user(user)
        path = f"/apis/upgraderun.dev/v1alpha1/namespaces/{namespace}/upgraderuns"
        eventually(lambda: client.send("GET", path).ok, f"{user} has {role}")
        return client

    return bound
