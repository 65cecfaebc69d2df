"""The demo: one upgrade on a whole cluster, watched from outside. `hack/demo` starts it."""
