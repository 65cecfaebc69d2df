"""Runs on the session's API server, with a forge in a process of its own."""

from support.plays import cluster as cluster  # noqa: PLC0414  a fixture, made visible
from support.plays import desk as desk  # noqa: PLC0414  as above
from support.plays import host as host  # noqa: PLC0414  as above
from support.plays import make as make  # noqa: PLC0414  as above
