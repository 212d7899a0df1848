"""`python -m xpurt bench`: the same work on stock CPU tensors and on xpu, in one run."""

from xpurt.bench.command import Request, run_bench
from xpurt.bench.row import BadRequest, MissingExtra
from xpurt.bench.suites import SUITES

__all__ = ["BadRequest", "MissingExtra", "Request", "SUITES", "run_bench"]
