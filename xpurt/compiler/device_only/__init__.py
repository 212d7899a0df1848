"""Ops that xpu has and the CPU has not. Each module is imported by its name."""
