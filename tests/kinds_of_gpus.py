"""What GPUs of a kind have less of than the CPU's driver, for the virtual GPU: variables
without XPURT_VIRTUAL_GPU_."""

from typing import Final

# Without vectors, kernels take the forms for GPUs.
INTEL: Final = {
    "LIMITS": "vector_width=1,sub_groups=16+32,work_group=1024,local_memory=65536",
}
# Tiger Lake and Alchemist.
INTEL_WITHOUT_DOUBLES: Final = {**INTEL, "FP64": "0"}
NVIDIA: Final = {
    "LIMITS": "vector_width=1,opencl=1.2,sub_groups=0,work_group=1024,local_memory=49152",
    "FP16": "0",
}
# Its sub-groups have no shuffles.
AMD: Final = {
    "LIMITS": "vector_width=1,opencl=2.0,sub_groups=0,work_group=256,local_memory=65536",
}
