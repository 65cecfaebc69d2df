"""Arithmetic on stored times: how long a run has been active. Pure."""

from upgraderun_operator.decide.observation import Observation, read_time


def active_seconds(seen: Observation) -> float:
    """Seconds with a live attempt so far; waiting for people or queues is free (§3).

    Counts each attempt from its intent to its end, or to now. Example: a1 ran 10 min and was lost,
    a2 started a minute later and has run for 5 min: 900 s.
    """
    total = 0.0
    for attempt in seen.state.attempts:
        start = read_time(attempt.planned_at)
        end = read_time(attempt.end.at) if attempt.end is not None else seen.now
        if start is not None and end is not None:
            total += max(0.0, (end - start).total_seconds())
    return total


def active_seconds_left(seen: Observation) -> float:
    """Seconds until `activeDeadlineSeconds`; never below 1, so that a wake-up isn't a loop."""
    return max(1.0, seen.run.spec.active_deadline_seconds - active_seconds(seen))
