"""Ops that take functions. Each module is imported by its name."""
