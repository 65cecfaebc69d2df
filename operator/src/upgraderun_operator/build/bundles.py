"""The bundle: what a pod is told, and the digest that evidence is bound to (configHash). Pure."""

from dataclasses import dataclass, replace

from upgraderun_operator.model.policy import ResolvedPolicy
from upgraderun_operator.model.policy_spec import UnexercisedRepairs
from upgraderun_operator.model.run_spec import UpgradeRunSpec
from upgraderun_protocol.bundle import (
    Bundle,
    Codemod,
    Delivery,
    Destination,
    EarlierProposals,
    PolicyOptions,
    PublicationOptions,
    PythonImage,
    RepositoryOptions,
    RunRef,
    ScopeOptions,
    UpgradeOptions,
)
from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.ids import CommitId, Sha256
from upgraderun_protocol.limits import PROTOCOL_VERSION
from upgraderun_protocol.records import to_json


def config_hash(run: UpgradeRunSpec, policy: ResolvedPolicy) -> Sha256:
    """SHA-256 over everything that a validation depends on (upgrade-run.md §3).

    Author, publication and approvers are left out: they change nothing that a check could see.
    """
    spec = policy.spec
    return digest_of(
        {
            "mode": run.mode.value,
            "ecosystem": run.ecosystem.value,
            "upgrade": to_json(upgrade_options(run, policy)),
            "limits": to_json(policy.limits),
            "images": spec.images.to_json(),
            "registries": spec.registries.to_json(),
            "sandbox": spec.sandbox.to_json(),
            "validation": spec.validation.to_json(),
            "scope": spec.scope.to_json(),
            "protectedPaths": spec.protected_paths.to_json(),
            "deny": list(spec.selection.deny),
            "codemods": [codemod.to_json() for codemod in spec.codemods],
            "decisions": spec.scripted.sha256 if spec.scripted else None,
        }
    )


def upgrade_options(run: UpgradeRunSpec, policy: ResolvedPolicy) -> UpgradeOptions:
    """What may be picked; the age is the policy's floor or the run's higher wish."""
    return UpgradeOptions(
        select=run.upgrade.select.value,
        allow_major=run.upgrade.allow_major,
        minimum_release_age_seconds=policy.minimum_release_age_seconds,
        dependency=run.upgrade.dependency,
        version=run.upgrade.version,
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """What a bundle is about: the run, its wish, the frozen policy, and the base.

    `branch` is empty if nobody named one (the remote's HEAD decides); `commit` None likewise.
    """

    run: RunRef
    spec: UpgradeRunSpec
    policy: ResolvedPolicy
    branch: str
    commit: CommitId | None


def runner_bundle(
    subject: Subject, writer: str, earlier: EarlierProposals, python: str = ""
) -> Bundle:
    """Bundle of attempt `writer`; `python` says which of the policy's images its pod has."""
    return replace(_bundle(subject, "run", writer, earlier, None), python=python)


def publisher_bundle(subject: Subject, writer: str, delivery: Delivery) -> Bundle:
    """Bundle of delivery `writer`: exactly one proposal for exactly one branch."""
    return _bundle(subject, "publish", writer, EarlierProposals((), ()), delivery)


def destination_of(policy: ResolvedPolicy, branch: str) -> Destination:
    """Where a proposal goes. A credential is sent to this host and the API's only (H22)."""
    return Destination(
        forge=policy.spec.forge.type.value,
        host=policy.repository.host_port,
        api_url=policy.spec.forge.api_url,
        repository=policy.repository.path,
        base_branch=branch,
    )


def _bundle(
    subject: Subject,
    role: str,
    writer: str,
    earlier: EarlierProposals,
    delivery: Delivery | None,
) -> Bundle:
    spec, policy = subject.spec, subject.policy
    return Bundle(
        version=PROTOCOL_VERSION,
        role=role,
        writer=writer,
        run=subject.run,
        mode=spec.mode.value,
        ecosystem=spec.ecosystem.value,
        config_hash=config_hash(spec, policy),
        repository=RepositoryOptions(
            url=str(policy.repository),
            branch=subject.branch,
            directory=spec.repository.directory,
            commit=subject.commit,
        ),
        upgrade=upgrade_options(spec, policy),
        policy=_policy_options(policy),
        limits=policy.limits,
        publication=PublicationOptions(
            enabled=policy.publishes,
            draft=spec.publication.draft,
            labels=spec.publication.labels,
            reviewers=spec.publication.reviewers,
        ),
        earlier=earlier,
        active_deadline_seconds=spec.active_deadline_seconds,
        destination=destination_of(policy, subject.branch) if policy.publishes else None,
        delivery=delivery,
    )


def _policy_options(policy: ResolvedPolicy) -> PolicyOptions:
    spec = policy.spec
    return PolicyOptions(
        name=policy.name,
        python_images=tuple(
            PythonImage(image.version, image.image) for image in spec.images.python
        ),
        python_registries=spec.registries.python,
        sandbox=spec.sandbox.type.value,
        require_tests=spec.validation.require_tests,
        check_timeout_seconds=spec.validation.check_timeout_seconds,
        scope=ScopeOptions(
            soft_files=spec.scope.soft_files,
            soft_lines=spec.scope.soft_lines,
            hard_files=spec.scope.hard_files,
            hard_lines=spec.scope.hard_lines,
        ),
        protected_add=spec.protected_paths.add,
        protected_release=spec.protected_paths.release,
        deny=spec.selection.deny,
        codemods=tuple(
            Codemod(codemod.dependency, codemod.versions, codemod.old, codemod.new)
            for codemod in spec.codemods
        ),
        author_name=spec.publication.author.name,
        author_email=spec.publication.author.email,
        on_base_moved=spec.publication.on_base_moved.value,
        ask_unexercised=spec.approvals.unexercised_repair is UnexercisedRepairs.ASK,
        decisions=Sha256(spec.scripted.sha256) if spec.scripted else None,
    )
