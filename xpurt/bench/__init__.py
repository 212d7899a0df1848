"""`python -m xpurt bench`: the same work on stock CPU tensors and on xpu."""

from xpurt.bench.auto import AUTO, run_auto
from xpurt.bench.command import run_bench
from xpurt.bench.layer_times import measured_layers
from xpurt.bench.models import MODELS, Case
from xpurt.bench.ranks import RankGroup
from xpurt.bench.request import Request
from xpurt.bench.row import BadRequest
from xpurt.bench.suites import SUITES

__all__ = [
    "AUTO",
    "BadRequest",
    "Case",
    "MODELS",
    "RankGroup",
    "Request",
    "SUITES",
    "measured_layers",
    "run_auto",
    "run_bench",
]
