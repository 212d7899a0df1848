"""Measured costs of ops: their curves, the table that is shipped, and the one that is
kept for this machine. Imports the cache alone."""
