"""The smallest complete bundle: for tests that only need some run."""

from upgraderun_protocol.bundle import (
    Bundle,
    EarlierProposals,
    LimitOptions,
    PolicyOptions,
    PublicationOptions,
    PythonImage,
    RepositoryOptions,
    RunRef,
    ScopeOptions,
    UpgradeOptions,
)
from upgraderun_protocol.ids import RunUid, Sha256

UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")


def small_bundle(writer: str = "a1") -> Bundle:
    """A run in mode Rules."""
    return Bundle(
        version=1,
        role="run",
        writer=writer,
        run=RunRef("n", "r", UID),
        mode="Rules",
        ecosystem="Auto",
        config_hash=Sha256("c" * 64),
        repository=RepositoryOptions("https://git.example.org/o/r.git", "main", "."),
        upgrade=UpgradeOptions("Smallest", False, 259_200),
        policy=PolicyOptions(
            name="default",
            python_images=(PythonImage("3.11", "i@sha256:1"),),
            python_registries=(),
            sandbox="Inline",
            require_tests=False,
            check_timeout_seconds=600,
            scope=ScopeOptions(10, 200, 20, 400),
            protected_add=(),
            protected_release=(),
            deny=(),
            codemods=(),
            author_name="UpgradeRun",
            author_email="upgraderun@example.org",
            on_base_moved="Note",
        ),
        limits=LimitOptions(50, 3, 3, 8, 3),
        publication=PublicationOptions(True, False, (), ()),
        earlier=EarlierProposals((), ()),
        active_deadline_seconds=21_600,
    )
