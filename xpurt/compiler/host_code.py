"""Inductor's code for the CPU, called with xpu tensors.

Note [Two keys for one graph]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Inductor keeps compiled graphs on disk, by a key made from the graph. A graph for the
host is equal to that of the same program on CPU tensors, but its results belong on xpu.
So the key has to name their home, and the form of the graph: xpu:0 of one mapping may be
compiled for the host, and that of another one to kernels. Inductor asks each device for
a pass of its own, and puts the pass's uuid into the key: xpu's pass changes nothing, and
its uuid is the form and the home of the graph that is being compiled. AOTAutograd's
cache has a key of the same parts, which is made before a graph has a home. The home is
an attribute of the compiled graph, so it is kept on disk with it.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.exc import InvalidCxxCompiler
from torch._inductor.utils import get_donated_idxs

from xpurt import _C
from xpurt.compiler.host_graph import Home
from xpurt.functional.winograd import convolution_precision

_home: ContextVar[Home | None] = ContextVar("xpurt_home", default=None)
_form: ContextVar[str] = ContextVar("xpurt_form", default="")


def why_none() -> str:
    """Why code for the host can't be compiled on this machine; "" if it can."""
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        tried = " or ".join(repr(name) for name in config.cpp.cxx if name)
        return (
            f"code for the host needs a C++ compiler, and {tried} does not work (install "
            "g++, or name one by the variable CXX)"
        )
    return ""


class KeyOfHome(CustomGraphModulePass):
    """Adds the form of a graph, and what it depends on, to Inductor's key. Changes no
    graph."""

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        pass

    def uuid(self) -> object:
        # Without a uuid Inductor keeps no graph on disk.
        return f"xpurt {_form.get()} {_home.get()}"


@functools.cache
def _sources(*rooms: str) -> str:
    """A digest of rooms of xpurt: other sources may compile to other code."""
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted(Path(__file__).parents[1].joinpath(room).rglob("*")):
            if path.suffix in (".py", ".cl"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def compiling_form(form: str, index: int) -> Iterator[None]:
    """Within it, graphs of tensors on xpu:index are compiled in that form."""
    rooms = ("compiler", "functional", *(["kernels"] if form == "sycl" else []))
    properties = torch.xpu.get_device_properties(index)
    found: tuple[object, ...] = (
        properties.name,
        properties.driver_version,
        properties.max_compute_units,
        torch.get_num_threads(),
        convolution_precision(),
    )
    if form == "sycl":
        found += tuple(_C.device_costs(index))  # a graph is planned by them
    token = _form.set(f"{form} {_sources(*rooms)} {found}")
    try:
        yield
    finally:
        _form.reset(token)


@contextmanager
def compiling(home: Home | None) -> Iterator[None]:
    """Within it, graphs are compiled whose outputs belong to `home`."""
    token = _home.set(home)
    try:
        yield
    finally:
        _home.reset(token)


def keep_home(compiled: Any, *, is_backward: bool) -> Any:
    """Adds the home of the graph that is being compiled to its compiled form.

    The code of a backward graph may write to saved tensors, whose last use it is: a
    gradient may be in the memory of one.
    """
    compiled.xpurt_home = _home.get()
    donated = get_donated_idxs() if is_backward else None
    compiled.xpurt_donated = frozenset(donated or ())
    return compiled


def has_home(compiled: Any) -> bool:
    """Whether the results of a compiled graph for the host belong on xpu."""
    return getattr(compiled, "xpurt_home", None) is not None


def take_xpu_tensors(compiled: Any) -> None:
    """Makes a compiled graph with a home one of xpu tensors."""
    if has_home(compiled):
        home: Home = compiled.xpurt_home
        written = compiled.xpurt_donated.union(compiled.mutated_input_idxs)
        compiled.current_callable = host_code(
            compiled.current_callable, home, sorted(written)
        )


def host_code(
    function: Callable[[list[Any]], Any], home: Home, written: list[int]
) -> Callable[[list[Any]], list[Any]]:
    """A function of xpu tensors that calls `function` with CPU tensors over the same
    bytes. See Note [Compiled host code].

    written: the positions of the inputs that `function` writes to, ascending.
    """
    return _C.HostCode(
        function, home.index, written, list(home.on_device), list(home.returned)
    )


def boxed(
    code: Callable[[list[Any]], Sequence[Any]],
) -> Callable[[list[Any]], Sequence[Any]]:
    """`code` as a function that AOTAutograd gives its arguments in one list."""

    def call(inputs: list[Any]) -> Sequence[Any]:
        return code(inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
