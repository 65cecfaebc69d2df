"""Tests here run pods on a real cluster."""

from support.cluster import cluster as cluster  # noqa: PLC0414  a fixture, made visible
