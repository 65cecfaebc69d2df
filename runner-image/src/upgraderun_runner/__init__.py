"""The runner and the publisher. Start reading at `main`; the map is `docs/architecture.md`."""
