"""`python -m xpurt bench`: the same work on stock CPU tensors and on xpu."""

from xpurt_tools.bench.all_suites import MINUTES, run_all
from xpurt_tools.bench.auto import AUTO, run_auto
from xpurt_tools.bench.command import run_bench
from xpurt_tools.bench.instructions import run_instructions
from xpurt_tools.bench.layer_times import measured_layers
from xpurt_tools.bench.models import MODELS, Case
from xpurt_tools.bench.ranks import RankGroup
from xpurt_tools.bench.request import Request
from xpurt_tools.bench.row import BadRequest
from xpurt_tools.bench.suites import SUITES

__all__ = [
    "AUTO",
    "BadRequest",
    "Case",
    "MINUTES",
    "MODELS",
    "RankGroup",
    "Request",
    "SUITES",
    "measured_layers",
    "run_all",
    "run_auto",
    "run_bench",
    "run_instructions",
]
