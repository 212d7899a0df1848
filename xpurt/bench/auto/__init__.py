"""The suite `auto`: AUTO against each device alone."""

from xpurt.bench.auto.run import AUTO, run_auto

__all__ = ["AUTO", "run_auto"]
