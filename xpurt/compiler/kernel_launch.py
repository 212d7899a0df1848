"""What the generated Python code of a compiled graph imports."""

from collections.abc import Callable, Sequence
from typing import Any

from xpurt import _C
from xpurt.kernels import Functions, keep_source


def kernel(
    name: str,
    text: str,
    *,
    functions: Sequence[tuple[str, tuple[str, ...]]],
    templates: Sequence[str],
    arguments: str,
    group: tuple[int, int, int],
    lanes: bool,
    faults: bool,
    flops: float,
    sizes: Sequence[int],
) -> Callable[..., Any]:
    """The launcher of a kernel, which is built at its first launch on a device.

    functions, templates: what the text uses, see `xpurt.kernels.keep_source`. The other
    arguments are those of CompiledKernelSpec, in rows/compiled_kernel.h. `sizes`: of the
    range; if there are none, a call passes them after its other arguments.
    """
    needed = [Functions(letter, tuple(names)) for letter, names in functions]
    return _C.make_launcher(
        key=keep_source(name, text, needed, templates),
        arguments=arguments,
        group=group,
        lanes=lanes,
        faults=faults,
        flops=flops,
        sizes=sizes,
    )
