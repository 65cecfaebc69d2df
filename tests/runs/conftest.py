"""Whole runs: a real API server, operator processes, pods as processes, real git and uv."""

from support.apiserver import api_server as api_server  # noqa: PLC0414  a fixture, made visible
from support.wholeruns import folder as folder  # noqa: PLC0414  the same
from support.wholeruns import kube as kube  # noqa: PLC0414  the same
from support.wholeruns import outside as outside  # noqa: PLC0414  the same
from support.wholeruns import platform as platform  # noqa: PLC0414  the same
from support.wholeruns import runner as runner  # noqa: PLC0414  the same
