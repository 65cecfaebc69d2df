"""Python with uv: `pyproject.toml` and `uv.lock`."""
