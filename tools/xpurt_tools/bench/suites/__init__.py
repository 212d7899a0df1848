"""The suites of `python -m xpurt bench`. A row is a line: name, op, shapes."""

from xpurt_tools.bench.row import Suite
from xpurt_tools.bench.suites.attention import ATTENTION
from xpurt_tools.bench.suites.compile import COMPILE, COMPILE_EAGER, COMPILE_SYCL
from xpurt_tools.bench.suites.compile_train import COMPILE_TRAIN
from xpurt_tools.bench.suites.conv import CONV
from xpurt_tools.bench.suites.cpu_kernels import CPU_KERNELS
from xpurt_tools.bench.suites.dispatch import DISPATCH
from xpurt_tools.bench.suites.distributed import DISTRIBUTED
from xpurt_tools.bench.suites.gemm import GEMM, GEMM_BF16
from xpurt_tools.bench.suites.language import LANGUAGE
from xpurt_tools.bench.suites.lazy import LAZY
from xpurt_tools.bench.suites.optimize import OPTIMIZE, OPTIMIZE_COMPILED
from xpurt_tools.bench.suites.optimize_train import OPTIMIZE_TRAIN
from xpurt_tools.bench.suites.pointwise import POINTWISE
from xpurt_tools.bench.suites.reduce import REDUCE
from xpurt_tools.bench.suites.train import TRAIN
from xpurt_tools.bench.suites.transfer import TRANSFER, TRANSFER_LAZY

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
    COMPILE_TRAIN,
    TRANSFER,
    TRANSFER_LAZY,
    DISTRIBUTED,
    LAZY,
    OPTIMIZE,
    OPTIMIZE_COMPILED,
    OPTIMIZE_TRAIN,
    CPU_KERNELS,
    LANGUAGE,
)

__all__ = ["SUITES"]
