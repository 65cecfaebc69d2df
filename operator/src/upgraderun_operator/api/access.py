"""Identity and order of checks (runner-protocol.md §1.4): no effect before the last one passed.

1 token  2 run and UID  3 protocol  4 not ended  5 the writer's pod  6 role  7 epoch  8 rate
"""

from dataclasses import dataclass

from aiohttp import web

from upgraderun_operator.answers import Unknown
from upgraderun_operator.api.context import Call, Tools
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.ports import Identity, Tokens
from upgraderun_operator.api.rate import RateLimit
from upgraderun_operator.journal.records import CurrentWriter, Role
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Broken, Gone, Unavailable
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.limits import PROTOCOL_VERSION
from upgraderun_protocol.messages import HEADER_EPOCH, HEADER_PROTOCOL, ErrorCode

_EPOCHLESS = frozenset({"hello", "bundle", "result"})
_BOTH_ROLES = frozenset({"hello", "bundle", "journal", "artifacts", "lease", "result"})
_PUBLISHER_ONLY = frozenset({"push-token"})


@dataclass(frozen=True, slots=True)
class Accounts:
    """Service accounts of our pods, by role."""

    runner: str
    publisher: str

    def of(self, role: Role) -> str:
        """Account of a role."""
        return self.publisher if role is Role.PUBLISHER else self.runner


class Access:
    """Turns a request into a checked Call, or raises ApiError with the first check's refusal."""

    def __init__(self, tools: Tools, tokens: Tokens, accounts: Accounts) -> None:
        self._tools = tools
        self._tokens = tokens
        self._accounts = accounts
        self._rate = RateLimit(tools.clock)

    async def check(self, request: web.Request, endpoint: str) -> Call:
        """Run the checks in their order on a live read of the run."""
        namespace = request.match_info["namespace"]
        identity = await self._identify(request, namespace)
        view = await self._read(namespace, request.match_info["name"], request.match_info["uid"])
        _check_protocol(request, endpoint)
        caller = self._caller(view, identity, endpoint)
        publishes = caller.role is Role.PUBLISHER
        if endpoint not in _BOTH_ROLES and publishes != (endpoint in _PUBLISHER_ONLY):
            raise ApiError(
                ErrorCode.ROLE_FORBIDDEN, f"{endpoint} isn't open to a {caller.role.value}"
            )
        epoch = Epoch(0) if endpoint in _EPOCHLESS else self._epoch(request, caller)
        self._rate.spend(identity.pod_uid)
        return Call(view, caller, epoch)

    async def _identify(self, request: web.Request, namespace: str) -> Identity:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            raise ApiError(ErrorCode.UNAUTHENTICATED, "a bearer token is needed")
        identity = await self._tokens.review(token)
        if isinstance(identity, Unknown):
            raise ApiError(ErrorCode.AUTH_UNAVAILABLE, "tokens can't be reviewed now", 2)
        known = {self._accounts.runner, self._accounts.publisher}
        if identity is None or identity.account not in known or identity.namespace != namespace:
            raise ApiError(ErrorCode.UNAUTHENTICATED, "the token isn't one of this run's pods")
        return identity

    async def _read(self, namespace: str, name: str, uid: str) -> RunView:
        match await self._tools.runs.read(namespace, name):
            case RunView() as view if view.uid == uid:
                return view
            case RunView() | Gone():
                raise ApiError(ErrorCode.RUN_UNKNOWN, f"no run {namespace}/{name} with UID {uid}")
            case Broken(message, _, _):
                raise ApiError(ErrorCode.JOURNAL_CONFLICT, f"the journal is broken: {message}")
            case Unavailable(cause):
                raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)

    def _caller(self, view: RunView, identity: Identity, endpoint: str) -> CurrentWriter:
        """Checks 4 and 5. Only `result` is open after the end, to the pod that spoke last."""
        state = view.state
        if endpoint != "result" and state.outcome is not None:
            raise ApiError(ErrorCode.RUN_TERMINAL, f"the run has ended: {state.outcome.name}")
        if endpoint == "result" and state.finalized_at is not None:
            raise ApiError(ErrorCode.RUN_TERMINAL, "the run is finished")
        writer = state.last_writer if endpoint == "result" else state.writer
        if endpoint == "hello" and writer is not None and writer.pod_uid is None:
            raise ApiError(ErrorCode.NOT_READY, "the pod isn't recorded yet", 1)
        if writer is None or writer.pod_uid != identity.pod_uid:
            self._tools.counters.fenced("writer")
            raise ApiError(
                ErrorCode.NOT_CURRENT_WRITER, f"now speaks: {writer.tag if writer else 'nobody'}"
            )
        if identity.account != self._accounts.of(writer.role):
            raise ApiError(ErrorCode.UNAUTHENTICATED, "the account isn't the one of this role")
        return writer

    def _epoch(self, request: web.Request, caller: CurrentWriter) -> Epoch:
        text = request.headers.get(HEADER_EPOCH, "")
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{HEADER_EPOCH} is a whole number")
        if caller.epoch is None or int(text) != caller.epoch:
            self._tools.counters.fenced("epoch")
            raise ApiError(
                ErrorCode.EPOCH_STALE, f"epoch {text} isn't the current one, {caller.epoch}"
            )
        return caller.epoch


def _check_protocol(request: web.Request, endpoint: str) -> None:
    """`hello` negotiates in its body; everything else names the one version that is served."""
    spoken = request.headers.get(HEADER_PROTOCOL)
    if endpoint != "hello" and spoken != str(PROTOCOL_VERSION):
        raise ApiError(
            ErrorCode.PROTOCOL_UNSUPPORTED, f"protocol {PROTOCOL_VERSION} is served, not {spoken}"
        )
