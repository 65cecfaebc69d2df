"""Tests here talk to the session's API server."""

from support.apiserver import api_server as api_server  # noqa: PLC0414  a fixture, made visible
