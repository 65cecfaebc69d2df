"""Every end of a guarded write has its answer; errors are bounded (runner-protocol.md §1.4)."""

import json

import pytest

from support.journal_story import Story
from upgraderun_operator.api.context import done_or_refuse
from upgraderun_operator.api.errors import MESSAGE_MAX, ApiError
from upgraderun_operator.api.ports import Clock
from upgraderun_operator.api.rate import PODS_MAX, RateLimit
from upgraderun_operator.journal.guards import (
    AttemptIs,
    EpochIs,
    Guard,
    GuardFailure,
    MayPublish,
    NoVerdict,
    SeqIs,
    WriterIs,
)
from upgraderun_operator.journal.writes import (
    Broken,
    Contended,
    Contradicted,
    Done,
    EpochFell,
    Full,
    Gone,
    GuardFailed,
    Unavailable,
    WriteResult,
)
from upgraderun_protocol.ids import EntryId, Epoch, PodUid, WriterTag
from upgraderun_protocol.limits import ERROR_BODY_BYTES_MAX
from upgraderun_protocol.messages import ErrorCode

VIEW = Story().view


def failed(guard: Guard) -> GuardFailed:
    return GuardFailed(GuardFailure(guard, "something else"), VIEW)


@pytest.mark.parametrize(
    ("result", "code", "retry_after"),
    [
        (failed(NoVerdict()), "run_terminal", None),
        (failed(WriterIs(PodUid("u"))), "not_current_writer", None),
        (failed(AttemptIs(WriterTag("a1"), None)), "not_current_writer", None),
        (failed(EpochIs(Epoch(1))), "epoch_stale", None),
        (failed(MayPublish(EntryId("pr/1"), "c")), "publication_held", None),
        (failed(SeqIs(1)), "journal_conflict", None),
        (EpochFell(Epoch(1), VIEW), "epoch_stale", None),
        (Contradicted("x", VIEW), "journal_conflict", None),
        (Full(1, VIEW), "journal_full", None),
        (Gone(), "run_unknown", None),
        (Broken("x", too_new=False, raw={}), "journal_conflict", None),
        (Contended(), "contended", 1),
        (Unavailable("x"), "store_unavailable", 2),
    ],
    ids=lambda item: type(item).__name__,
)
def test_what_isn_t_done_is_refused(
    result: WriteResult, code: str, retry_after: int | None
) -> None:
    with pytest.raises(ApiError) as caught:
        done_or_refuse(result)

    assert caught.value.code.value == code
    assert caught.value.retry_after == retry_after


def test_what_is_done_is_given_back() -> None:
    done = Done(VIEW, (), wrote=False)

    assert done_or_refuse(done) is done


def test_an_error_body_is_bounded_whatever_it_says() -> None:
    error = ApiError(ErrorCode.TOO_LARGE, "x")
    body = error.body("\U0001f600" * 5000)

    assert error.status == 413
    assert len(json.loads(body)["error"]["message"]) <= 2 * MESSAGE_MAX
    assert len(error.body('"' * 5000)) <= ERROR_BODY_BYTES_MAX
    assert len(error.body("ü" * 5000)) <= 2 * ERROR_BODY_BYTES_MAX


class Still:
    """A clock that stands."""

    def monotonic(self) -> float:
        return 5.0


def test_the_least_recently_seen_pods_are_forgotten() -> None:
    clock: Clock = Still()  # type: ignore[assignment]  # rates need only monotonic
    limit = RateLimit(clock)
    for _ in range(40):
        limit.spend(PodUid("first"))
    with pytest.raises(ApiError):
        limit.spend(PodUid("first"))
    for number in range(PODS_MAX):
        limit.spend(PodUid(str(number)))

    limit.spend(PodUid("first"))
