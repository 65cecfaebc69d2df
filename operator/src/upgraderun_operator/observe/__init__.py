"""Readers: what the cluster, approvals and leases show now."""
