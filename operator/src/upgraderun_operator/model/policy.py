"""What one run may do: its wish held against its policy, defaults filled in, or the refusal.

Pure and total. Callers: phase 0 (admit), and the check before a push, which reads the policy's
prohibitions again (upgrade-run.md §3). A run only tightens what the policy gives.
"""

from dataclasses import dataclass

from upgraderun_operator.model.bounds import RUN_LIMITS
from upgraderun_operator.model.objects import UpgradePolicy
from upgraderun_operator.model.policy_spec import UpgradePolicySpec
from upgraderun_operator.model.run_spec import Mode, RunLimits, UpgradeRunSpec
from upgraderun_protocol.bundle import LimitOptions
from upgraderun_protocol.urls import RepositoryUrl, UrlError, belongs_to, normalise


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """The policy says no. `rule` is the field that decided; `message` what to do about it."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """A policy as it holds for one run.

    `limits`, `lost_attempts`, `consecutive_lost_attempts` and `minimum_release_age_seconds` are
    the tighter of policy and run; everything else is read from `spec`.
    """

    name: str
    generation: int
    spec: UpgradePolicySpec
    repository: RepositoryUrl
    limits: LimitOptions
    lost_attempts: int
    consecutive_lost_attempts: int
    minimum_release_age_seconds: int
    publishes: bool


def publishes(run: UpgradeRunSpec) -> bool:
    """Whether the run's result is to be published; Baseline never does (upgrade-run.md §2)."""
    return run.publication.enabled and run.mode is not Mode.BASELINE


def resolve(
    run: UpgradeRunSpec, policy: UpgradePolicy, *, allow_inline: bool
) -> ResolvedPolicy | PolicyRefusal:
    """Judge a run by its policy. `allow_inline` is the chart's gate (security.md H7)."""
    repository = allowed_repository(run.repository.url, policy)
    if isinstance(repository, PolicyRefusal):
        return repository
    for judge in (_inline_is_refused, _decisions_are_missing, _push_credential_is_missing):
        refusal = judge(run, policy, allow_inline)
        if refusal is not None:
            return refusal
    spec = policy.spec
    if spec.credentials.app is not None:
        stranger = _api_is_a_stranger(repository, policy)
        if stranger is not None:
            return stranger
    return ResolvedPolicy(
        name=policy.metadata.name,
        generation=policy.metadata.generation,
        spec=spec,
        repository=repository,
        limits=LimitOptions(
            steps=_limit("steps", run.limits, spec.limits),
            consecutive_failures=_limit("consecutive_failures", run.limits, spec.limits),
            repeated_calls=_limit("repeated_calls", run.limits, spec.limits),
            validation_cycles=_limit("validation_cycles", run.limits, spec.limits),
            unchanged_validations=_limit("unchanged_validations", run.limits, spec.limits),
        ),
        lost_attempts=_limit("lost_attempts", run.limits, spec.limits),
        consecutive_lost_attempts=_limit("consecutive_lost_attempts", run.limits, spec.limits),
        minimum_release_age_seconds=max(
            spec.selection.minimum_release_age_seconds,
            run.upgrade.minimum_release_age_seconds or 0,
        ),
        publishes=publishes(run),
    )


def allowed_repository(url: str, policy: UpgradePolicy) -> RepositoryUrl | PolicyRefusal:
    """Normalise a run's URL and find it in the policy; anything doubtful is refused (H21)."""
    try:
        repository = normalise(url)
    except UrlError as error:
        return PolicyRefusal("spec.repository.url", f"spec.repository.url of the run: {error}")
    name = policy.metadata.name
    for index, pattern in enumerate(policy.spec.repositories):
        try:
            if _matches(repository, pattern):
                return repository
        except UrlError as error:
            where = f"spec.repositories[{index}]"
            return PolicyRefusal(
                where, f"{where} of UpgradePolicy {name}: {error}; mend the policy"
            )
    return PolicyRefusal(
        "spec.repositories",
        f"repository {repository} is not in spec.repositories of UpgradePolicy {name}; "
        "ask its owner to add it, or name another policy in spec.policyRef",
    )


def _matches(repository: RepositoryUrl, pattern: str) -> bool:
    """Compare origin and path without case; a last segment `*` stands for any one name."""
    if not pattern.endswith("/*"):
        allowed = normalise(pattern)
        return (repository.origin, repository.path.lower()) == (
            allowed.origin,
            allowed.path.lower(),
        )
    allowed = normalise(pattern.removesuffix("*") + "any")
    parent = allowed.path.rpartition("/")[0].lower()
    return (repository.origin, repository.path.lower().rpartition("/")[0]) == (
        allowed.origin,
        parent,
    )


def _inline_is_refused(
    _run: UpgradeRunSpec, policy: UpgradePolicy, allow_inline: bool
) -> PolicyRefusal | None:
    if allow_inline:
        return None
    return PolicyRefusal(
        "spec.sandbox.type",
        f"UpgradePolicy {policy.metadata.name} wants sandbox Inline, which runs repository code "
        "beside the runner's token; a cluster admin allows it with the chart's value "
        "sandbox.allowInline=true",
    )


def _decisions_are_missing(
    run: UpgradeRunSpec, policy: UpgradePolicy, _allow_inline: bool
) -> PolicyRefusal | None:
    if run.mode is not Mode.SCRIPTED or policy.spec.scripted is not None:
        return None
    return PolicyRefusal(
        "spec.scripted",
        f"mode Scripted needs a decision list, and UpgradePolicy {policy.metadata.name} has no "
        "spec.scripted; add it or use mode Rules",
    )


def _push_credential_is_missing(
    run: UpgradeRunSpec, policy: UpgradePolicy, _allow_inline: bool
) -> PolicyRefusal | None:
    credentials = policy.spec.credentials
    if not publishes(run) or credentials.push is not None or credentials.app is not None:
        return None
    return PolicyRefusal(
        "spec.credentials.push",
        f"the run wants to publish, and UpgradePolicy {policy.metadata.name} has neither "
        "spec.credentials.app nor spec.credentials.push; add one, or set "
        "spec.publication.enabled=false in the run",
    )


def _api_is_a_stranger(repository: RepositoryUrl, policy: UpgradePolicy) -> PolicyRefusal | None:
    """What one forge mints isn't sent to another's host, whichever of the two URLs is wrong (H22)."""
    api_url = policy.spec.forge.api_url
    if belongs_to(api_url, repository):
        return None
    return PolicyRefusal(
        "spec.forge.apiURL",
        f"spec.forge.apiURL of UpgradePolicy {policy.metadata.name} ({api_url[:64]}) doesn't serve "
        f"{repository.host}; GitHub Enterprise Server's is https://{repository.host_port}/api/v3",
    )


def _limit(name: str, run: RunLimits | None, policy: RunLimits) -> int:
    """Take the tighter of both; where the policy is silent, the default."""
    given = getattr(policy, name)
    allowed: int = RUN_LIMITS[name].default if given is None else given
    wished: int | None = None if run is None else getattr(run, name)
    return allowed if wished is None else min(allowed, wished)
