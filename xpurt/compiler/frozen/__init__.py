"""Graphs with frozen parameters: which form they take, and primitives with packed weights."""
