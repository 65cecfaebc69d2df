"""One reader per part of the world that a rule may ask for. Each reads live and converts.

Callers: `reconcile`. Nothing here decides; what can't be read is Unreadable, never a guess.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from upgraderun_operator.answers import Absent, Denied, Ok, StoreDown, Unknown
from upgraderun_operator.build.frozen import FrozenAdmission, read_frozen
from upgraderun_operator.build.reports import clean_record
from upgraderun_operator.build.requests import clean_question
from upgraderun_operator.decide.admission import live_policy, live_resolved
from upgraderun_operator.decide.decision import Need
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import our_branch
from upgraderun_operator.decide.readings import ABSENT, Reading, Unreadable
from upgraderun_operator.decide.views import (
    ApprovalView,
    ChildView,
    DestinationRefused,
    DestinationView,
    Malformed,
    PodView,
    RemoteView,
    ReportView,
    RepositoryLeaseView,
)
from upgraderun_operator.model.objects import (
    NotReadableError,
    UpgradePolicy,
    parse_approval,
    parse_policy,
)
from upgraderun_operator.model.policy import ResolvedPolicy
from upgraderun_operator.observe.access import decoded, forge_target
from upgraderun_operator.observe.answers import reading
from upgraderun_operator.observe.convert import approval_view, child_view, pod_view, report_view
from upgraderun_operator.observe.ports import ForgeTarget
from upgraderun_operator.observe.repository import read_repository
from upgraderun_operator.observe.world import World
from upgraderun_operator.resources import (
    CLAIMS,
    CONFIG_MAPS,
    LEASES,
    PODS,
    UPGRADE_APPROVALS,
    UPGRADE_POLICIES,
    UPGRADE_REPORTS,
)
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId, RunUid, Sha256
from upgraderun_protocol.questions import QuestionRecord
from upgraderun_protocol.records import RecordError
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportRecord
from upgraderun_protocol.slugs import child_name

T = TypeVar("T")
FROZEN_CACHE_MAX: Final = 1024


class Readers:
    """Reads parts of the world into an Observation. Frozen admissions are immutable: cached."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._frozen: OrderedDict[tuple[RunUid, Sha256], FrozenAdmission] = OrderedDict()
        self._readers: Mapping[Need, Callable[[Observation], Awaitable[Reading[Any]]]] = {
            Need.POLICY: self._policy,
            Need.FROZEN: self._frozen_admission,
            Need.DECISIONS: self._decisions,
            Need.DESTINATION: self._destination,
            Need.REMOTE: self._remote,
            Need.REPOSITORY: self._repository,
            Need.POD: self._pod,
            Need.OLD_PODS: self._old_pods,
            Need.CLAIM: self._claim,
            Need.LEASE: self._lease,
            Need.APPROVALS: self._approvals,
            Need.RECORD: self._record,
            Need.REPORT: self._report,
            Need.QUESTION: self._question,
        }

    async def look(self, seen: Observation, need: Need) -> Observation:
        """Read one part and give the observation that knows it."""
        found: dict[str, Any] = {need.value: await self._readers[need](seen)}
        return replace(seen, **found)

    async def _policy(self, seen: Observation) -> Reading[UpgradePolicy]:
        name = seen.run.spec.policy_name
        answer = await self._world.cluster.get(UPGRADE_POLICIES, seen.view.ref.namespace, name)
        try:
            return reading(answer, parse_policy)
        except NotReadableError as error:
            return Unreadable("cluster", f"UpgradePolicy {name}: {error}")

    async def _frozen_admission(self, seen: Observation) -> Reading[FrozenAdmission]:
        admission = seen.state.admission
        assert admission is not None
        key = (seen.view.uid, admission.policy)
        if key in self._frozen:
            self._frozen.move_to_end(key)
            return self._frozen[key]
        answer = await self._world.artifacts.get(*key)
        if isinstance(answer, Absent):
            return Unreadable("store", f"artifact {admission.policy[:12]} isn't there")
        if isinstance(answer, StoreDown):
            return Unreadable("store", answer.cause)
        frozen = read_frozen(answer, seen.run.spec)
        self._frozen[key] = frozen
        if len(self._frozen) > FROZEN_CACHE_MAX:
            self._frozen.popitem(last=False)
        return frozen

    async def _decisions(self, seen: Observation) -> Reading[bytes | str]:
        scripted = live_policy(seen).spec.scripted
        assert scripted is not None
        reference, namespace = scripted.config_map_ref, seen.view.ref.namespace
        where = f"ConfigMap {reference.name}, key {reference.key}"
        answer = await self._world.cluster.get(CONFIG_MAPS, namespace, reference.name)
        if isinstance(answer, Unknown):
            return Unreadable("cluster", answer.cause, answer.retry_after)
        if isinstance(answer, Denied):
            return (
                f"the operator may not read {where} of the decision list; "
                "add its name to the chart's scripted.configMapNames"
            )
        data = _config_value(answer.value, reference.key) if isinstance(answer, Ok) else None
        if data is None:
            return f"{where} of the decision list isn't there; create it or mend the policy"
        found = sha256_of(data)
        if found != scripted.sha256:
            return f"{where} has digest {found}, the policy names {scripted.sha256}"
        return data

    async def _destination(
        self, seen: Observation
    ) -> Reading[DestinationView | DestinationRefused]:
        if seen.state.admission is None:
            wished = seen.run.spec.repository
            commit = CommitId(wished.commit) if wished.commit is not None else None
            policy, branch = live_resolved(seen), wished.branch
        else:
            assert isinstance(seen.frozen, FrozenAdmission)
            assert seen.state.base is not None
            policy, branch = seen.frozen.policy, seen.frozen.branch
            commit = seen.state.base.commit
        target = await self._target(seen, policy)
        if isinstance(target, DestinationRefused | Unreadable):
            return target
        return await self._world.forge.destination(target, branch, commit)

    async def _remote(self, seen: Observation) -> Reading[RemoteView | DestinationRefused]:
        proposal = seen.state.proposal
        assert proposal is not None
        target = await self._target(seen, seen.resolved)
        if isinstance(target, DestinationRefused | Unreadable):
            return target
        marker = (str(seen.view.uid), str(proposal.digest))
        return await self._world.forge.remote(target, our_branch(seen), marker)

    async def _target(
        self, seen: Observation, policy: ResolvedPolicy
    ) -> ForgeTarget | DestinationRefused | Unreadable:
        """Name the repository with a token of the policy; it goes to the policy's host only."""
        world, namespace = self._world, seen.view.ref.namespace
        return await forge_target(world.cluster, world.tokens, world.redactor, namespace, policy)

    async def _repository(self, seen: Observation) -> Reading[RepositoryLeaseView]:
        return await read_repository(self._world, seen.run.spec.repository.url, seen.holder)

    async def _pod(self, seen: Observation) -> Reading[PodView]:
        pod = seen.state.last_pod
        assert pod is not None
        return await self._read_pod(seen, pod.pod_name)

    async def _old_pods(self, seen: Observation) -> Reading[tuple[PodView, ...]]:
        """Our pods of attempts and deliveries that are over, as far as they still exist."""
        writer, found = seen.state.writer, []
        for record in (*seen.state.attempts, *seen.state.deliveries):
            if writer is not None and record.tag == writer.tag:
                continue
            pod = await self._read_pod(seen, record.pod_name)
            if isinstance(pod, Unreadable):
                return pod
            if not isinstance(pod, PodView) or pod.owner_uid != seen.view.uid:
                continue
            if record.pod_uid is None or record.pod_uid == pod.uid:
                found.append(pod)
        return tuple(found)

    async def _read_pod(self, seen: Observation, name: str) -> Reading[PodView]:
        answer = await self._world.cluster.get(PODS, seen.view.ref.namespace, name)
        return reading(answer, lambda raw: pod_view(raw, seen.now, self._world.redactor))

    async def _claim(self, seen: Observation) -> Reading[ChildView]:
        ref = seen.view.ref
        name = child_name(ref.name, ref.uid)
        return reading(await self._world.cluster.get(CLAIMS, ref.namespace, name), child_view)

    async def _lease(self, seen: Observation) -> Reading[ChildView]:
        ref = seen.view.ref
        name = child_name(ref.name, ref.uid)
        return reading(await self._world.cluster.get(LEASES, ref.namespace, name), child_view)

    async def _approvals(self, seen: Observation) -> Reading[tuple[ApprovalView, ...]]:
        ref = seen.view.ref
        answer = await self._world.cluster.list(
            UPGRADE_APPROVALS, ref.namespace, fields=f"spec.runRef.uid={ref.uid}"
        )
        match answer:
            case Ok(listing):
                views = (_approval(raw) for raw in listing.items)
                return tuple(view for view in views if view is not None)
            case Denied(status, message):
                return Unreadable("cluster", f"{status} {message}")
            case Unknown(cause, retry_after):
                return Unreadable("cluster", cause, retry_after)

    async def _record(self, seen: Observation) -> Reading[ReportRecord | Malformed]:
        digest = report_artifact(seen)
        return ABSENT if digest is None else await self._told(seen, digest, clean_record)

    async def _question(self, seen: Observation) -> Reading[QuestionRecord | Malformed]:
        assert seen.state.question is not None
        return await self._told(seen, seen.state.question, clean_question)

    async def _told(
        self, seen: Observation, digest: Sha256, clean: Callable[[bytes, Redactor], T]
    ) -> Reading[T | Malformed]:
        """Read a record that a runner left."""
        match await self._world.artifacts.get(seen.view.uid, digest):
            case bytes() as data:
                try:
                    return clean(data, self._world.redactor)
                except RecordError as error:
                    return Malformed(str(self._world.redactor.redact(str(error), 300)))
            case Absent():
                # A shared volume may lag: only a second look in a row is believed (§13.2).
                gone = Unreadable("store", f"artifact {digest[:12]} isn't there")
                return ABSENT if seen.unanswered else gone
            case StoreDown(cause):
                return Unreadable("store", cause)

    async def _report(self, seen: Observation) -> Reading[ReportView]:
        ref = seen.view.ref
        answer = await self._world.cluster.get(UPGRADE_REPORTS, ref.namespace, ref.name)
        return reading(answer, report_view)


def report_artifact(seen: Observation) -> Sha256 | None:
    """Artifact of the newest report record: of the end, of the last pod, of the proposal."""
    state = seen.state
    if state.outcome is not None and state.outcome.report is not None:
        return state.outcome.report
    for pod in reversed((*state.attempts, *state.deliveries)):
        if pod.end is not None and pod.end.report is not None:
            return pod.end.report
    return state.proposal.report if state.proposal is not None else None


def _approval(raw: Mapping[str, Any]) -> ApprovalView | None:
    """Read one item of the list; what isn't of our kind's form can't count."""
    try:
        return approval_view(parse_approval(raw))
    except NotReadableError:
        return None


def _config_value(raw: Mapping[str, Any], key: str) -> bytes | None:
    text = (raw.get("data") or {}).get(key)
    if isinstance(text, str):
        return text.encode("utf-8")
    return decoded((raw.get("binaryData") or {}).get(key))
