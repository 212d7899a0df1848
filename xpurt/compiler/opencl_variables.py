"""The variables of a kernel: a value that is used again is computed once."""

from typing import Any

import torch
from torch._inductor.codegen.common import CSE
from torch._inductor.utils import IndentedBuffer

from xpurt.compiler.opencl_types import computed, value_type


class TypedCSE(CSE[Any, Any]):
    """Declares each variable with its type, which OpenCL C cannot deduce. The same text
    is a variable per type: 0 is an integer and a bool."""

    _dtype: torch.dtype | None = None  # of the variable that is being generated

    def generate(
        self, buffer: IndentedBuffer, expr: Any, *, dtype: Any = None, **more: Any
    ) -> Any:
        if isinstance(dtype, torch.dtype):
            self._dtype = dtype = computed(dtype)
            self.prefix = f"const {value_type(dtype)} "
        try:
            return super().generate(buffer, expr, dtype=dtype, **more)
        finally:
            self._dtype = None

    def augment_key(self, cache_key: str) -> Any:
        return cache_key, self._dtype
