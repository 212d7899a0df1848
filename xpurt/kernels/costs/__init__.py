"""Measured costs of ops: their curves, the shipped table, and the calibration that is
kept for this machine. Imports the cache alone."""
