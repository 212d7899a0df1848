"""What Inductor takes for granted of xpu by its name, as of Intel's build of PyTorch."""

import functools
from collections.abc import Callable

from xpurt.compiler import host_code


def define() -> None:
    """Changes Inductor."""
    _leave_triton()
    _compute_beside_numbers()
    _ask_the_cpu_for_convolutions()


def _leave_triton() -> None:
    """Inductor compiles for its list of GPUs by Triton, which has no xpu without
    Intel's driver."""
    from torch._inductor import utils
    from torch._inductor.codegen import common

    utils.GPU_TYPES.remove("xpu")
    common.init_backend_registration()
    common.custom_backend_passes["xpu"] = host_code.KeyOfHome()


def _compute_beside_numbers() -> None:
    """The result of an op of a CPU tensor without dimensions and of tensors on a GPU is
    on the GPU, whichever is the first operand."""
    from torch._inductor import lowering

    before = vars(lowering)["is_gpu"]
    vars(lowering)["is_gpu"] = lambda device: device == "xpu" or before(device)


def _ask_the_cpu_for_convolutions() -> None:
    """Inductor packs weights for oneDNN's convolutions and products, which the CPU's
    kernels compute for xpu tensors, too. Of bfloat16 and float16 it expects that every
    xpu device has them, but a CPU without AVX-512 has not."""
    from torch._inductor.fx_passes import mkldnn_fusion

    fusion = vars(mkldnn_fusion)
    bf16 = fusion["is_mkldnn_bf16_supported"]
    fp16 = fusion["is_mkldnn_fp16_supported"]
    fusion["is_mkldnn_bf16_supported"] = functools.partial(_of_the_cpu, bf16)
    fusion["is_mkldnn_fp16_supported"] = functools.partial(_of_the_cpu, fp16)


def _of_the_cpu(before: Callable[[str], bool], device_type: str) -> bool:
    return before("cpu" if device_type.startswith("xpu") else device_type)
