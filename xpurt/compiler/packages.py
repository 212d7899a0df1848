"""AOTInductor's packages of models on xpu.

A package has a library for the CPU. Its metadata tell which tensors were on xpu, so a
loaded package computes on the bytes of xpu tensors, as a compiled graph does. The
constants of the model are in the library.
"""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import ModuleType
from typing import Any, Final

import torch

from xpurt.compiler.host_code import host_code
from xpurt.compiler.host_graph import Home, on_host, written_inputs

_KEY: Final = "xpurt"  # of our metadata


def change(package: ModuleType) -> None:
    """Makes packages that were compiled on xpu take xpu tensors once they are loaded."""
    model = package.AOTICompiledModel
    model.__init__ = _load(model.__init__)


@contextmanager
def described(graph: torch.fx.GraphModule, home: Home) -> Iterator[None]:
    """Within it, a package that is made of the graph gets the metadata of its home."""
    from torch._inductor import config
    from torch._inductor.virtualized import V

    if not V.aot_compilation:
        yield
        return
    described = {"home": asdict(home), "written": written_inputs(graph)}
    metadata = {**config.aot_inductor.metadata, _KEY: json.dumps(described)}
    with config.patch("aot_inductor.metadata", metadata):
        yield


def refuse(reason: str) -> None:
    """Raises RuntimeError if a package is being made: it has code for the host."""
    from torch._inductor.virtualized import V

    if V.aot_compilation:
        raise RuntimeError(
            f"AOTInductor can't compile this model for xpu: {reason}. Move the model and "
            'its inputs to the CPU before torch.export.export, or use the mapping "CPU".'
        )


class LoaderOnXpu:
    """AOTInductor's loader of a package, for xpu tensors."""

    def __init__(self, loader: Any, described: dict[str, Any]) -> None:
        self._loader = loader
        self._constants: dict[str, torch.Tensor] = {}
        home = described["home"]
        self._run = host_code(
            loader.boxed_run,
            Home(home["index"], tuple(home["on_device"]), tuple(home["returned"])),
            described["written"],
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def boxed_run(self, inputs: list[Any]) -> list[Any]:
        return self._run(inputs)

    def run(self, inputs: list[Any]) -> list[Any]:
        return self._run(list(inputs))

    def load_constants(
        self,
        constants: dict[str, torch.Tensor],
        use_inactive: bool,
        check_full_update: bool,
        user_managed: bool = False,
        allow_h2d_copy: bool = False,
    ) -> None:
        # The library keeps what it is given: copies, except where the program manages
        # the constants itself.
        form = on_host if user_managed else _copied
        on_cpu = {name: form(value) for name, value in constants.items()}
        self._loader.load_constants(
            on_cpu, use_inactive, check_full_update, user_managed, allow_h2d_copy
        )
        if user_managed:
            self._constants.update(on_cpu)


def _copied(value: torch.Tensor) -> torch.Tensor:
    """A copy in memory of the CPU: `cpu()` may share the bytes until one is written."""
    return torch.empty_like(value, device="cpu").copy_(value)


def _load(before: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(before)
    def init(self: Any, loader: Any) -> None:
        if not isinstance(loader, LoaderOnXpu):
            described = loader.get_metadata().get(_KEY)
            if described is not None:
                loader = LoaderOnXpu(loader, json.loads(described))
        before(self, loader)

    return init
