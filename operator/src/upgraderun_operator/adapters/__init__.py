"""The only I/O and the only nondeterminism. Imported by main only."""
