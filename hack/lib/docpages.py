"""Pages of `docs/` that are computed from tables of the code: reasons, kinds, journal, metrics.

Caller: `hack/generate.py`. Prose that no table holds stands here as plain text.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from upgraderun_operator.metrics import Metrics
from upgraderun_operator.model.conditions import STALLS, WAITS, LiveReason, Phase, ReasonRow
from upgraderun_operator.model.conflicts import CONFLICTS
from upgraderun_operator.model.crds import definitions
from upgraderun_protocol.kinds import KINDS, KindRow
from upgraderun_protocol.limits import (
    ENTRY_BYTES_MAX,
    KIB,
    STATUS_ALARM_BYTES,
    STATUS_HARD_BYTES,
    STATUS_SOFT_BYTES,
)
from upgraderun_protocol.outcomes import CONFLICT_OUTCOMES, OUTCOMES, RetryClass

_RETRY = {
    RetryClass.NOW: "the same run, created again, may work at once",
    RetryClass.LATER: "time must pass",
    RetryClass.CHANGE: "repository, policy or run must change",
    RetryClass.HUMAN: "somebody must look",
    RetryClass.NO: "the answer stands",
}

_REASONS_HEAD = """\
# Reasons

Every word that a run may show in `status.outcome`, in `status.wait.reason` and as reason of a condition. Generated from
the tables of the code by `make generate`.

## Outcomes

How a run ends. `status.outcome` and the reason of `Succeeded` are the first column, `status.exitCode` the third. The
second column is the journal's spelling, which is also the metric label. An ended run is never started again; *again*
says when a new one may get further: """

_JOURNAL_HEAD = f"""\
# Journal

What a run intended and did, in `status.journal.entries` and in the segments that it names. An intent and its outcome share
an id; the first outcome of an id wins; a repetition is a new id. State is the fold of these entries and is stored nowhere
else. Generated from `upgraderun_protocol.kinds` by `make generate`.

An entry is at most {ENTRY_BYTES_MAX} bytes: `seq` (dense from 1), `id`, `kind`, `state`, `at` (RFC 3339, UTC), `attempt` (the
writer's tag: `a1`, `d2`), `epoch` (never falls), `data` and `artifacts` (role to SHA-256). The chain
dₙ = SHA-256(dₙ₋₁ ‖ canonical entry) is stored as `journal.head.digest` only. An entry sent twice with equal content is a
replay and changes nothing; other content under the same id and state is a conflict.

## How it is written

All of `status` goes through one guarded write: from the newest version that the process has seen, guards are evaluated, the
change is computed, and the whole status is PUT with resourceVersion, UID and a random `write.id`. A 409, a failed guard or a
lost answer is unknown: the run is read from the API server itself; if our `write.id` or exactly our entries stand there, it
is done, else guards and change are computed again, at most five times. A change after which the status would be the same
isn't written. Phase, conditions and every other projection are computed anew in each write and read by nobody in the code;
only the facts beside the journal are read back: `leaderEpoch`, `attempt.lossObservedAt`, `publication.lossObservedAt`,
`finalization.renewedAt`, `wait`.

Entries between which nothing happens travel in one append: an outcome with what is begun next, and a decision of the loop
with its step's intent, all before any effect of that step. What a kill loses before such an append is found again by looking
(a promotion, a push), or done again (a check, a decision: the agents of all modes are pure functions of the journal, so equal
journals give equal decisions). A step without an effect is one append at its end. A decision that stands alone is kept and
not executed; no mode of today leaves one.

An entry carries the epoch of its writer; one below the journal's highest epoch is refused, also as a replay. Entries that
the operator words itself carry the highest one.

## Bounds and segments

| bytes of status | what happens |
|---|---|
| above {STATUS_SOFT_BYTES // KIB} KiB (setting `UPGRADERUN_STATUS_SOFT_BYTES`) | closed entries move out, oldest first, until half of it is left |
| above {STATUS_ALARM_BYTES // KIB} KiB | an alert fires |
| above {STATUS_HARD_BYTES // KIB} KiB | no entry is added but `end`, `outcome` and `finalized`; the run stalls as `JournalFull`; no entry is lost |

An entry is closed once its id has an outcome; the command list of a step once the step has one. The first open entry holds
all after it. Less than a quarter of the soft bound isn't worth a segment. A segment is canonical JSON
`{{format, runUID, first, last, previous, digest, entries}}`, an artifact named by its SHA-256; it is stored and read back
before its entries leave the status. `journal.compacted` then names the segments in order, the last `seq` in them and the
chain's digest there. A store that is down only lets the status grow, up to the hard bound.

## How it is read

Segments first, oldest first, then `entries`: numbers dense from 1, epochs not falling, one outcome per id, each entry of a
shape of the tables below, the chain ending at `head`. Anything else is the conflict `JournalBroken`: told in `status.conflict`,
the journal itself left as it is, no write and no effect after it. A newer `format`, or a kind that this version doesn't
know, stalls the run as `JournalTooNew` until the operator is upgraded. A segment that can't be read is unknown, never a
verdict.
"""

_METRICS_HEAD = """\
# Metrics

What `/metrics` of each replica shows, on port 8080. Labels come from closed lists: kinds of conflict, outcomes, endpoints.
Generated from the code by `make generate`. The rules that alert on them:
[rules](../charts/upgraderun-operator/rules/upgraderun.rules.yaml); what to do: [runbook](runbook.md).
"""

_KINDS_HEAD = """\
# Kinds

All are namespaced, `upgraderun.dev/v1alpha1`. Complete manifests that work: [samples](samples/). The tables are generated
from the models by `make generate`; `kubectl explain` says the same.

| kind | short names | who writes it |
|---|---|---|
| `UpgradeRun` | `run`, `runs` | a user or a GitOps tool |
| `UpgradePolicy` | `upp` | the platform team |
| `UpgradeApproval` | `upa` | an approver |
| `UpgradeReport` | `upr` | the operator |

`kubectl get upgrades` lists all four.
"""

_RUN_HEAD = """\
The spec never changes once the run is created, except `suspend` and `cancel`: another wish is another run. Bounds in `limits` and `upgrade.minimumReleaseAgeSeconds` only tighten what the policy gives. The
annotation `upgraderun.dev/requested-by` holds the requester's user name; the server fills it in or says what to write.

### Conditions

| condition | becomes True when |
|---|---|
| `Succeeded` | the run ended with a proposal or a pull request. Unknown while it is active, False for every other end |
| `Reconciling` | the run isn't at its end and nothing needs a person; together with `Stalled` what kstatus reads ([GitOps](gitops.md)) |
| `BaselineValidated` | the untouched tree builds and passes its tests |
| `UpgradeSelected` | one upgrade was chosen and moved into the work tree |
| `Validated` | the upgraded tree was validated and brings no new finding |
| `ProposalFrozen` | the one commit exists and can't change any more |
| `Approved` | enough approvals of exactly this proposal count |
| `Published` | the pull request is open |
| `Suspended` | `spec.suspend` took effect |
| `Stalled` | nothing moves until a person acts, or the run ended without success; the message says what to do |
| `Conflict` | the world contradicts the journal; the run has stopped and touched nothing |
| `NotIsolated` | repository code runs inside the runner pod (policy `sandbox.type: Inline`) |

Reasons: [reasons](reasons.md). A suspended run shows the phase `Suspended`. The phases of a run that goes well:
"""

_POLICY_HEAD = """\
A run names its policy in `policyRef`; without it the policy `default` of its namespace holds. Whoever may write a policy
can have any Secret of its namespace mounted into a pod: grant it like creating pods. A policy is frozen when a run is
admitted; only its prohibitions are read again before a push.
"""

_APPROVAL_HEAD = """\
An approval answers one digest of one run: `status.pendingApproval.digest`. It never changes; deleting it takes it back,
until the push has begun. `approver` is the user name of whoever creates it, and the annotation
`upgraderun.dev/requester` repeats the run's `requested-by`, so that both are two people. One Reject ends the run.
"""

_REPORT_HEAD = """\
Same name as its run, owned by it, written by the operator only. `presentationSha256` is the SHA-256 of the canonical JSON
(sorted keys, no spaces, UTF-8) of `{target, capability, patch, checks}`, an absent field as null; the same value stands
in `status.pendingApproval`, so an approver can prove that what was read is what is asked.
"""

_HEADS = {
    "upgraderuns": _RUN_HEAD
    + " → ".join(f"`{phase.value}`" for phase in Phase if phase is not Phase.SUSPENDED)
    + ".\n",
    "upgradepolicies": _POLICY_HEAD,
    "upgradeapprovals": _APPROVAL_HEAD,
    "upgradereports": _REPORT_HEAD,
}


def reasons_page() -> str:
    """`docs/reasons.md`."""
    retry = "; ".join(f"*{name.value}*: {meaning}" for name, meaning in _RETRY.items())
    rows = "".join(
        f"| `{row.reason}` | `{row.name}` | {row.exit_code} | {row.retry.value} | {row.next_step} |\n"
        for row in OUTCOMES.values()
    )
    conflicts = "".join(
        f"| `{kind.value}` | {row.meaning} | {row.next_step} | "
        f"`{OUTCOMES[CONFLICT_OUTCOMES[kind]].reason}` |\n"
        for kind, row in CONFLICTS.items()
    )
    live = ", ".join(f"`{reason.value}`" for reason in LiveReason)
    return (
        f"{_REASONS_HEAD}{retry}.\n\n"
        f"| outcome | journal | exit code | again | what to do |\n|---|---|---|---|---|\n{rows}\n"
        "## Waits\n\nPass by themselves; `Succeeded` stays Unknown with this reason.\n\n"
        f"{_reason_table(WAITS.items())}\n"
        "## Stalled\n\nA person must act; `Stalled` is True with this reason.\n\n"
        f"{_reason_table(STALLS.items())}\n"
        "## Conflicts\n\nThe world contradicts the journal. `status.conflict.kind` and the label of the "
        "alert `UpgradeRunConflict` are the first column; nothing was touched.\n\n"
        f"| kind | what contradicts | what to do | outcome |\n|---|---|---|---|\n{conflicts}\n"
        f"## On the way\n\nReasons of conditions of a run that goes its way: {live}.\n"
    )


def _reason_table(rows: Iterable[tuple[str, ReasonRow]]) -> str:
    lines = "".join(f"| `{reason}` | {row.meaning} | {row.next_step} |\n" for reason, row in rows)
    return f"| reason | what it means | what to do |\n|---|---|---|\n{lines}"


def journal_page() -> str:
    """`docs/journal.md`."""
    return _JOURNAL_HEAD + "".join(_journal_kind(row) for row in KINDS.values())


def _journal_kind(row: KindRow) -> str:
    writers = ", ".join(sorted(writer.value for writer in row.writers))
    lines = "".join(
        f"| {state.value} | {_keys(shape.required)} | {_keys(shape.optional)} | "
        f"{_keys(shape.artifacts)} | {_keys(shape.optional_artifacts)} |\n"
        for state, shape in row.shapes.items()
    )
    pattern = row.id_pattern.replace("|", "\\|")
    return (
        f"\n## {row.kind}\n\n{row.meaning[0].upper()}{row.meaning[1:]}. Written by: {writers}. "
        f"Ids: `{pattern}`.\n\n| state | data | optional data | artifacts | optional artifacts |\n"
        f"|---|---|---|---|---|\n{lines}"
    )


def _keys(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def metrics_page() -> str:
    """`docs/metrics.md`."""
    series = (value for value in vars(Metrics()).values() if isinstance(value, MetricWrapperBase))
    rows = "".join(sorted(_metric(metric) for metric in series))
    return f"{_METRICS_HEAD}\n| series | type | labels | meaning |\n|---|---|---|---|\n{rows}"


def _metric(metric: MetricWrapperBase) -> str:
    (family,) = metric.describe()
    suffix = "_total" if family.type == "counter" else ""
    names = metric._labelnames  # noqa: SLF001  series without samples show their labels nowhere else
    labels = ", ".join(f"`{name}`" for name in names)
    return f"| `{family.name}{suffix}` | {family.type} | {labels} | {family.documentation} |\n"


def kinds_page() -> str:
    """`docs/kinds.md`."""
    return _KINDS_HEAD + "".join(_kind(plural, crd) for plural, crd in definitions().items())


def _kind(plural: str, crd: Mapping[str, Any]) -> str:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    rules = "".join(f"- {rule['message']}.\n" for rule in schema["x-kubernetes-validations"])
    rows = "".join(_fields(schema, ""))
    return (
        f"\n## {crd['spec']['names']['kind']}\n\n{_HEADS[plural]}\n"
        f"### Rules of {crd['spec']['names']['kind']}\n\n{rules}\n"
        f"### Fields of {crd['spec']['names']['kind']}\n\n"
        f"`*` marks required fields.\n\n| field | type | default | meaning |\n|---|---|---|---|\n{rows}"
    )


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if not path and name in {"apiVersion", "kind", "metadata"}:
            continue
        here = f"{path}.{name}" if path else name
        mark = "*" if name in required else ""
        default = field.get("default")
        shown = "" if default in (None, {}) else f"`{_literal(default)}`"
        yield f"| `{here}`{mark} | {_type(field)} | {shown} | {field.get('description', '')} |\n"
        yield from _fields(field, here)
        yield from _fields(field.get("items", {}), f"{here}[]")


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type(field: Mapping[str, Any]) -> str:
    match field["type"]:
        case "string" if "enum" in field:
            return " · ".join(f"`{value}`" for value in field["enum"])
        case "string":
            return f"string ≤ {field['maxLength']}"
        case "integer":
            low, high = field.get("minimum"), field.get("maximum")
            if low is None and high is None:
                return "integer"
            return f"integer {low}..{high}" if high is not None else f"integer ≥ {low}"
        case "array":
            return f"list ≤ {field['maxItems']} of {_type(field['items'])}"
        case "object" if "additionalProperties" in field:
            return f"map ≤ {field['maxProperties']} of {_type(field['additionalProperties'])}"
        case other:
            return str(other)
