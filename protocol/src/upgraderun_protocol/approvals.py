"""What an approval binds: presentation digest and request digest (upgrade-run.md §11).

The operator computes them when it asks; a person or a script can recompute both from the
UpgradeReport and `status.pendingApproval`. An encoding failure raises: there is no stand-in.
"""

from collections.abc import Mapping
from typing import Any, Final

from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.ids import RequestDigest, RunUid, Sha256

REQUEST_VERSION: Final = 1
PRESENTED: Final = ("target", "capability", "patch", "checks")


def presentation_digest(report_spec: Mapping[str, Any]) -> Sha256:
    """SHA-256 of what is shown: the fields target, capability, patch, checks of the report.

    An absent field counts as null. Raises NotCanonicalError for values that JSON would blur.
    """
    return digest_of({name: report_spec.get(name) for name in PRESENTED})


def request_digest(
    *,
    kind: str,
    run_uid: RunUid,
    nonce: str,
    capability: Mapping[str, Any],
    presentation: Sha256,
    config_hash: str,
) -> RequestDigest:
    """SHA-256 of what an approver is asked. The nonce proves that an approval came afterwards."""
    return RequestDigest(
        digest_of(
            {
                "version": REQUEST_VERSION,
                "kind": kind,
                "runUID": run_uid,
                "nonce": nonce,
                "capability": capability,
                "presentationSha256": presentation,
                "configHash": config_hash,
            }
        )
    )
