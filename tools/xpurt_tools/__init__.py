"""Tools that import xpurt, and that xpurt loads for a command alone: benchmarks, the
conformance run, the simulator, a vendor's first package."""
