"""What admission freezes, as one artifact: policy, base branch, earlier proposals (§3, phase 0).

Later passes read this artifact instead of the policy, so a policy that changes mid-run changes
nothing but its prohibitions. Pure; `decide` writes it, `observe` reads it back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_operator.model.objects import NotReadableError, parse_policy
from upgraderun_operator.model.policy import ResolvedPolicy, resolve
from upgraderun_operator.model.run_spec import UpgradeRunSpec
from upgraderun_protocol.bundle import EarlierProposals
from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.records import RecordError, from_json, parse_json, to_json

FROZEN_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class FrozenAdmission:
    """`branch` is the base branch, empty where nobody named one and nothing is published."""

    policy: ResolvedPolicy
    branch: str
    earlier: EarlierProposals


def frozen_bytes(frozen: FrozenAdmission) -> bytes:
    """Write the artifact: canonical JSON, so equal admissions have one name."""
    return canonical_json(
        {
            "version": FROZEN_VERSION,
            "policy": {
                "metadata": {"name": frozen.policy.name, "generation": frozen.policy.generation},
                "spec": frozen.policy.spec.to_json(),
            },
            "branch": frozen.branch,
            "earlier": to_json(frozen.earlier),
        }
    )


def read_frozen(data: bytes, run: UpgradeRunSpec) -> FrozenAdmission:
    """Read it back and resolve it for the same run. Raises RecordError if it is none of ours.

    The chart's gate for Inline was judged at admission and isn't judged again.
    """
    value = parse_json(data)
    if not isinstance(value, Mapping) or value.get("version") != FROZEN_VERSION:
        raise RecordError("$: no frozen admission of this version")
    return _read(value, run)


def _read(value: Mapping[str, Any], run: UpgradeRunSpec) -> FrozenAdmission:
    try:
        policy = resolve(run, parse_policy(value["policy"]), allow_inline=True)
        branch = str(value["branch"])
        earlier = from_json(EarlierProposals, value["earlier"], "$.earlier")
    except (KeyError, NotReadableError) as error:
        raise RecordError(f"$: {error}") from error
    if not isinstance(policy, ResolvedPolicy):
        raise RecordError(f"$.policy: {policy.message}")
    return FrozenAdmission(policy, branch, earlier)
