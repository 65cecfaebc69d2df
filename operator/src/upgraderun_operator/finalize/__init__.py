"""The ordered end of a run."""
