"""The suite `auto`: AUTO against each device alone."""

from xpurt_tools.bench.auto.run import AUTO, run_auto

__all__ = ["AUTO", "run_auto"]
