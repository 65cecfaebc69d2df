"""What the benchmarks of `hack/bench` share: worlds in processes, counts, readings of `/proc`."""
