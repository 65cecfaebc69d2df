"""One external effect per function."""
