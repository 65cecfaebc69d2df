"""The operator. Start reading at `reconcile`; the map of the parts is `docs/architecture.md`."""
