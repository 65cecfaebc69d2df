"""Ordered chains of named predicates. Pure and total."""
