"""The runner's phases before and around the loop: start, prelude, recovery, end (upgrade-run.md §3, §13)."""
