"""The demo: one upgrade in the whole cluster, watched from outside. `hack/demo` starts it."""
