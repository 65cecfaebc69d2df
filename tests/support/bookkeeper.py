"""The operator's runner API over an in-memory journal: what a runner needs to live, nothing more.

It keeps the rules that a runner relies on (replay keys, all or none, artifacts first, epochs, one
verdict) through the protocol's own fold and kinds. The real API is tested against the same runner
elsewhere; here a whole run takes seconds and needs no API server.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft, Entry, EntryState, draft_from_json, entry_from_draft
from upgraderun_protocol.fold import ChainError, Fold
from upgraderun_protocol.ids import EntryId, Epoch, Sha256
from upgraderun_protocol.kinds import Writer, check_draft
from upgraderun_protocol.messages import STATUS_OF, ErrorCode, Verdict
from upgraderun_protocol.records import from_json, to_bytes

AT = "2026-11-30T12:00:00Z"


@dataclass
class Bookkeeper:
    """One run's journal and artifacts. `writes` counts what would be writes of status.

    `appends` are the entries that pods sent, one line per write: `s0/decision done + s0 intent`.
    """

    bundle: Bundle
    fold: Fold = field(default_factory=Fold)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    writes: int = 0
    appends: list[str] = field(default_factory=list)
    epoch: int = 0
    suspend: bool = False
    cancel: bool = False
    held: bool = False
    terminal: bool = False
    on_append: Callable[[Entry], None] | None = None
    url: str = ""
    _claims: dict[str, int] = field(default_factory=dict)
    _runner: web.AppRunner | None = None

    async def start(self) -> "Bookkeeper":
        """Serve on a free port of 127.0.0.1."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/runner/{ns}/{run}/{uid}/{endpoint}", self._serve)
        app.router.add_route("*", "/runner/{ns}/{run}/{uid}/{endpoint}/{rest}", self._serve)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    def copy(self, bundle: Bundle) -> "Bookkeeper":
        """Another one for this bundle that knows the same journal and artifacts; not yet serving."""
        kept = dict(self.artifacts)
        return Bookkeeper(
            bundle, self.fold.extended(()), kept, list(self.verdicts), epoch=self.epoch
        )

    async def stop(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()

    def record(self, draft: Draft, tag: str = "a0") -> None:
        """Append an entry of the operator itself."""
        self._add(draft, tag)

    def grant(self) -> None:
        """Journal what the operator does with the approval, before a publisher exists."""
        delivery = self.bundle.delivery
        assert delivery is not None
        data = {
            "branch": delivery.branch,
            "commit": delivery.commit,
            "proposal": delivery.proposal_digest,
        }
        self.record(Draft(EntryId("push/1"), "push", EntryState.INTENT, data))

    def deliver(self, bundle: Bundle) -> None:
        """Let another pod speak for the run."""
        self.bundle = bundle
        self._claims.clear()

    def artifact(self, role: str, kind: str) -> bytes:
        """Content of the artifact that the last entry of a kind names under a role."""
        entry = self.fold.last(kind, EntryState.DONE)
        assert entry is not None, f"no {kind} is done"
        return self.artifacts[entry.artifacts[role]]

    @property
    def story(self) -> list[str]:
        """The journal in short: id and state."""
        return [_brief(entry) for entry in self.fold]

    async def _serve(self, request: web.Request) -> web.Response:
        endpoint = request.match_info["endpoint"]
        if self.terminal and endpoint != "result":
            return _error(ErrorCode.RUN_TERMINAL)
        handler = getattr(self, f"_{request.method.lower()}_{endpoint}")
        if endpoint not in {"hello", "bundle", "result"} and request.headers.get(
            "UpgradeRun-Epoch"
        ) != str(self.epoch):
            return _error(ErrorCode.EPOCH_STALE)
        response: web.Response = await handler(request)
        return response

    async def _post_hello(self, request: web.Request) -> web.Response:
        nonce = (await request.json())["bootNonce"]
        if nonce not in self._claims:
            self.epoch += 1
            self._claims[nonce] = self.epoch
            self._add(
                Draft(
                    EntryId(f"{self.bundle.writer}/i{self.epoch}"),
                    "incarnation",
                    EntryState.DONE,
                    {"podUID": "pod-1", "nonce": nonce, "protocol": "1"},
                ),
                self.bundle.writer,
            )
        content = to_bytes(self.bundle)
        return _json(
            {
                "protocol": 1,
                "writer": self.bundle.writer,
                "epoch": self.epoch,
                "leaseSeconds": 30,
                "bundle": {"sha256": sha256_of(content), "size": len(content)},
                "cloneCredential": "mounted",
                "serverTime": AT,
            }
        )

    async def _get_bundle(self, _request: web.Request) -> web.Response:
        return _bytes(to_bytes(self.bundle))

    async def _post_workspace(self, request: web.Request) -> web.Response:
        value = await request.json()
        known = self.fold.done("base")
        data = {"commit": value["baseCommit"], "tree": value["baseTree"]}
        if known is None:
            self._add(Draft(EntryId("base"), "base", EntryState.DONE, data), self.bundle.writer)
        elif dict(known.data) != data:
            return _error(ErrorCode.WORKSPACE_BASE_MISMATCH)
        return _json(value)

    async def _post_journal(self, request: web.Request) -> web.Response:
        drafts = [draft_from_json(value) for value in (await request.json())["entries"]]
        trial = Fold(self.fold)
        accepted = []
        try:
            for draft in drafts:
                replay = trial.replay_of(draft)
                if replay is None:
                    check_draft(draft, self._writer)
                    trial.add(self._entry(draft, trial.seq + 1, self.bundle.writer))
                seq = replay.seq if replay else trial.seq
                accepted.append(
                    {"id": draft.id, "seq": seq, "digest": draft.content, "replayed": bool(replay)}
                )
        except ChainError:
            return _error(ErrorCode.JOURNAL_CONFLICT)
        if missing := [
            digest
            for draft in drafts
            for digest in draft.artifacts.values()
            if digest not in self.artifacts
        ]:
            return _error(ErrorCode.ARTIFACT_MISSING, str(missing))
        fresh = list(trial)[len(self.fold) :]
        if self.held and any(
            entry.kind in {"push", "pullRequest"} and entry.state is EntryState.INTENT
            for entry in fresh
        ):
            return _error(ErrorCode.PUBLICATION_HELD)
        self.fold = trial
        if fresh:
            self.writes += 1
            self.appends.append(" + ".join(_brief(entry) for entry in fresh))
        for entry in fresh:
            if self.on_append is not None:
                self.on_append(entry)
        return _json({"accepted": accepted, "head": self._head})

    async def _get_journal(self, request: web.Request) -> web.Response:
        after = int(request.query.get("after", "0"))
        entries = [entry.to_json() for entry in self.fold if entry.seq > after][:100]
        return _json({"entries": entries, "head": self._head})

    async def _put_artifacts(self, request: web.Request) -> web.Response:
        content = await request.read()
        if sha256_of(content) != request.match_info["rest"]:
            return _error(ErrorCode.DIGEST_MISMATCH)
        self.artifacts[sha256_of(content)] = content
        return _json({"sha256": sha256_of(content), "size": len(content)})

    async def _get_artifacts(self, request: web.Request) -> web.Response:
        content = self.artifacts.get(request.match_info["rest"])
        return _error(ErrorCode.ARTIFACT_UNKNOWN) if content is None else _bytes(content)

    async def _head_artifacts(self, request: web.Request) -> web.Response:
        return await self._get_artifacts(request)

    async def _put_lease(self, request: web.Request) -> web.Response:
        nonce = (await request.json())["bootNonce"]
        if self._claims.get(nonce) != self.epoch:
            return _error(ErrorCode.LEASE_LOST)
        return _json(
            {
                "epoch": self.epoch,
                "expiresAt": AT,
                "serverTime": AT,
                "suspend": self.suspend,
                "cancel": self.cancel,
            }
        )

    async def _post_result(self, request: web.Request) -> web.Response:
        if self.terminal:
            return _error(ErrorCode.RUN_TERMINAL)
        verdict = from_json(Verdict, await request.json())
        if self.verdicts and self.verdicts[-1].verdict_id != verdict.verdict_id:
            last = self.verdicts[-1]
            if last.writer == verdict.writer:
                return _error(ErrorCode.VERDICT_CONFLICT)
        self.verdicts.append(verdict)
        self.writes += 1
        return _json({"verdictId": verdict.verdict_id, "recorded": True, "finalized": False})

    @property
    def _writer(self) -> Writer:
        return Writer.RUNNER if self.bundle.role == "run" else Writer.PUBLISHER

    @property
    def _head(self) -> dict[str, Any]:
        return {"seq": self.fold.seq, "digest": Sha256("0" * 64), "epoch": self.epoch}

    def _entry(self, draft: Draft, seq: int, tag: str) -> Entry:
        return entry_from_draft(draft, seq=seq, at=AT, attempt=tag, epoch=Epoch(self.epoch))

    def _add(self, draft: Draft, tag: str) -> None:
        self.fold.add(self._entry(draft, self.fold.seq + 1, tag))
        self.writes += 1


def _brief(entry: Entry) -> str:
    return f"{entry.id} {entry.state.value}"


def next_attempt(bundle: Bundle, number: int) -> Bundle:
    """The bundle of a later attempt of the same run."""
    return replace(bundle, writer=f"a{number}")


def _json(value: object) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


def _bytes(content: bytes) -> web.Response:
    return web.Response(body=content, headers={"UpgradeRun-SHA256": sha256_of(content)})


def _error(code: ErrorCode, text: str = "") -> web.Response:
    body: dict[str, Any] = {
        "error": {"code": code.value, "message": text or code.value, "details": {}}
    }
    return web.Response(
        status=STATUS_OF[code], body=json.dumps(body).encode(), content_type="application/json"
    )
