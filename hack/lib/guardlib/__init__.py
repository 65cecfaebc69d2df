"""`hack/guards`: take one guard at a time out of a copy of the tree, and see which test notices (reliability.md §8)."""
