"""A small Kubernetes for development and tests, made from binaries and no container engine.

Callers: `hack/cluster`, `hack/images` and the test support code. Standard library only, so that it
runs before anything is installed. Product code never imports it.
"""
