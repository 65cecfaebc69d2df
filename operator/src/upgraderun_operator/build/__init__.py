"""Pods, claims, leases and texts as data. Pure."""
