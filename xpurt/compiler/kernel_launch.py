"""The launchers of kernels, which the generated Python code of a compiled graph makes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xpurt import _C
from xpurt.kernels import Functions, keep_source

PREFIX = "opencl_kernel"


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
    planned: int = -1,
) -> Callable[..., Any]:
    """The launcher of a kernel, which is built by build_all(), or at its first launch on
    a device.

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
        planned=planned,
    )


def build_all(code: Any, indices: Iterable[int]) -> None:
    """Builds the kernels of a compiled graph for these ordinals. Raises
    KernelBuildError.

    code: the function of the generated module.
    """
    names = getattr(code, "__globals__", {})
    launchers = [each for name, each in names.items() if name.startswith(PREFIX)]
    for index in indices:
        for launcher in launchers:
            _C.build_launcher(launcher, index)
