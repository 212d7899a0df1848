"""The suites of `python -m xpurt bench`. A row is a line: name, op, shapes."""

from xpurt.bench.row import Suite
from xpurt.bench.suites.attention import ATTENTION
from xpurt.bench.suites.compile import COMPILE, COMPILE_EAGER, COMPILE_SYCL
from xpurt.bench.suites.conv import CONV
from xpurt.bench.suites.cpu_kernels import CPU_KERNELS
from xpurt.bench.suites.dispatch import DISPATCH
from xpurt.bench.suites.distributed import DISTRIBUTED
from xpurt.bench.suites.gemm import GEMM, GEMM_BF16
from xpurt.bench.suites.lazy import LAZY
from xpurt.bench.suites.optimize import OPTIMIZE, OPTIMIZE_COMPILED
from xpurt.bench.suites.optimize_train import OPTIMIZE_TRAIN
from xpurt.bench.suites.pointwise import POINTWISE
from xpurt.bench.suites.reduce import REDUCE
from xpurt.bench.suites.train import TRAIN
from xpurt.bench.suites.transfer import TRANSFER, TRANSFER_LAZY

SUITES: tuple[Suite, ...] = (
    DISPATCH,
    *POINTWISE,
    REDUCE,
    GEMM,
    GEMM_BF16,
    CONV,
    ATTENTION,
    TRAIN,
    COMPILE,
    COMPILE_EAGER,
    COMPILE_SYCL,
    TRANSFER,
    TRANSFER_LAZY,
    DISTRIBUTED,
    LAZY,
    OPTIMIZE,
    OPTIMIZE_COMPILED,
    OPTIMIZE_TRAIN,
    CPU_KERNELS,
)

__all__ = ["SUITES"]
