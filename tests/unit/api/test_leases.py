"""Who may take the run Lease, and what it says afterwards (runner-protocol.md §1.6)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from upgraderun_operator.api.run_lease import SIGHTINGS_MAX, Sightings
from upgraderun_operator.build.leases import (
    Claim,
    Held,
    LeaseView,
    Replay,
    Take,
    claim,
    holder_of,
    lease_view,
    renewed,
    taken,
)
from upgraderun_protocol.ids import Epoch, PodUid

OURS, THEIRS = holder_of(PodUid("pod-1"), "n" * 32), holder_of(PodUid("pod-2"), "m" * 32)
NOW = datetime(2026, 11, 30, 8, 0, 0, 5, tzinfo=UTC)


def lease(
    holder: str | None = None, transitions: Any = 0, uid: str = "u", **spec: Any
) -> LeaseView:
    known = {"leaseTransitions": transitions, "leaseDurationSeconds": 30, **spec}
    if holder is not None:
        known["holderIdentity"] = holder
    return lease_view({"metadata": {"uid": uid}, "spec": known})


class TestClaim:
    """Free, ours, expired or gone; else held. The new epoch is above both known ones."""

    @pytest.mark.parametrize(
        ("found", "journal", "may_take_over", "expected"),
        [
            (lease(), 0, False, Take(Epoch(1))),
            (lease("", 4), 2, False, Take(Epoch(5))),
            (lease("", 0), 7, False, Take(Epoch(8))),
            (lease(OURS, 3), 3, False, Replay(Epoch(3))),
            (lease(OURS, 3), 2, True, Replay(Epoch(3))),
            (lease(OURS, 3), 9, False, Take(Epoch(10))),
            (lease(THEIRS, 3), 3, True, Take(Epoch(4))),
            (lease(THEIRS, 3), 3, False, Held(PodUid("pod-2"), "unknown")),
        ],
    )
    def test_table(
        self, found: LeaseView, journal: int, may_take_over: bool, expected: Claim
    ) -> None:
        assert claim(found, OURS, Epoch(journal), may_take_over=may_take_over) == expected

    def test_a_refusal_names_the_expiry(self) -> None:
        held = lease(THEIRS, 1, renewTime="2026-11-30T08:00:00.000000Z")

        assert claim(held, OURS, Epoch(1), may_take_over=False) == Held(
            PodUid("pod-2"), "2026-11-30T08:00:30Z"
        )


class TestObjects:
    """Times are for people; holder and transitions are what counts."""

    def test_taking_sets_holder_epoch_and_times(self) -> None:
        body = taken(lease(THEIRS, 3, acquireTime="x"), OURS, Epoch(4), NOW)

        assert body["spec"] == {
            "leaseTransitions": 4,
            "leaseDurationSeconds": 30,
            "holderIdentity": OURS,
            "acquireTime": "2026-11-30T08:00:00.000005Z",
            "renewTime": "2026-11-30T08:00:00.000005Z",
        }

    def test_renewing_moves_the_time_only(self) -> None:
        before = lease(OURS, 3, acquireTime="x", renewTime="y")
        body = renewed(before, NOW)

        assert body["spec"] == {**before.raw["spec"], "renewTime": "2026-11-30T08:00:00.000005Z"}

    def test_what_isn_t_of_our_form_counts_as_absent(self) -> None:
        odd = lease_view({"metadata": {"uid": "u"}})

        assert (odd.holder, odd.epoch, odd.renewed_at) == ("", 0, "")
        assert lease(OURS, "3").epoch == 0


class TestSightings:
    """Unchanged for its duration on our own monotonic clock (DESIGN §7)."""

    def test_time_counts_from_the_first_sight_of_this_state(self) -> None:
        sightings = Sightings()

        assert sightings.saw(lease(THEIRS, renewTime="a"), 100) == 0
        assert sightings.saw(lease(THEIRS, renewTime="a"), 129) == 29
        assert sightings.saw(lease(THEIRS, renewTime="b"), 130) == 0
        assert sightings.saw(lease(THEIRS, renewTime="b"), 165) == 35

    @pytest.mark.parametrize(
        "other",
        [lease(OURS), lease(THEIRS, 1), lease(THEIRS, renewTime="x"), lease(THEIRS, uid="v")],
    )
    def test_any_other_state_starts_anew(self, other: LeaseView) -> None:
        sightings = Sightings()
        sightings.saw(lease(THEIRS), 0)

        assert sightings.saw(other, 100) == 0

    def test_a_deleted_lease_is_forgotten(self) -> None:
        sightings = Sightings()
        sightings.saw(lease(THEIRS), 0)
        sightings.forget("u")
        sightings.forget("never seen")

        assert sightings.saw(lease(THEIRS), 100) == 0

    def test_it_is_bounded_and_the_oldest_goes_first(self) -> None:
        sightings = Sightings()
        for number in range(SIGHTINGS_MAX + 1):
            sightings.saw(lease(THEIRS, uid=str(number)), 0)

        assert sightings.saw(lease(THEIRS, uid="0"), 100) == 0
        assert sightings.saw(lease(THEIRS, uid=str(SIGHTINGS_MAX)), 100) == 100
