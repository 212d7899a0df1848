"""mode="reduce-overhead": a compiled graph of kernels is recorded, and replayed.

Note [Recorded compiled graphs]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A replay of an XPU graph submits all kernels at once, but only to the addresses that they
were recorded with. So, as with PyTorch's CUDA graph trees:
- Parameters, buffers, saved tensors and inputs that are written are read where they are.
  Their addresses are a part of a recording's key: with others the graph is recorded
  anew. Other inputs are copied to buffers that belong to the recording.
- Sizes that change are a part of the key, too; and the stream, since the memory of a
  result is used again in the order of one stream.
- The first call with a key is not recorded. It builds kernels and tunes primitives.
- Results, and what lies between, are in a memory pool of the recording.

A replay overwrites the results of the one before. CUDA graph trees raise an error if
such a tensor is read later. Here no live result is overwritten: the storages of the
results are counted, and a recording is free if nobody else holds one of them. `y =
f(x)` in a loop holds one result while the next one is computed, so a key has two
recordings, which take turns. If both have live results the call runs as in the default
mode. The price is the memory of two sets of results.
Rejected: a copy of each result, which costs a kernel per result and call; and an error,
which a program of two live results does not deserve.
"""

import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from xpurt.compiler.warn_once import warn_once

# Of one compiled graph. A program that passes them calls with ever other addresses or
# sizes.
MOST_RECORDINGS = 16
PER_KEY = 2
MOST_SEEN = 64

Code = Callable[[list[Any]], Sequence[Any]]

_wanted: ContextVar[bool | None] = ContextVar("xpurt_recording", default=None)
_one_capture = threading.Lock()


@contextmanager
def recording(*, wanted: bool) -> Iterator[None]:
    """Within it, compiled graphs are recorded, or not."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def is_wanted(default: object) -> bool:
    """default: what Inductor was told, for graphs that come from a cache."""
    wanted = _wanted.get()
    return bool(default) if wanted is None else wanted


def _tell_once(reason: str) -> None:
    warn_once(
        f'mode="reduce-overhead" records no XPU graph: {reason.removesuffix(".")}. The '
        "compiled code is called as in the default mode"
    )


def recorded(compiled: Any) -> Code:
    """The code of a compiled graph of xpu tensors, which records itself."""
    code: Code = compiled.current_callable
    if set(compiled.device_types) - {"xpu", "meta"} or len(compiled.device_idxs) != 1:
        _tell_once("a graph has parts on other devices")
        return code
    (index,) = compiled.device_idxs
    try:
        with torch.xpu.device(index):
            torch.xpu.XPUGraph()
    except NotImplementedError as error:
        _tell_once(str(error))
        return code
    fixed = {*compiled.fx_kwargs["static_input_idxs"], *compiled.mutated_input_idxs}
    return RecordedCode(code, index, frozenset(fixed))


class Recording:
    """One capture of the code, with inputs and results of its own."""

    def __init__(
        self, code: Code, inputs: list[Any], fixed: frozenset[int], index: int
    ) -> None:
        self.copied = [
            place
            for place, each in enumerate(inputs)
            if isinstance(each, Tensor) and place not in fixed
        ]
        given = list(inputs)
        for place in self.copied:
            given[place] = _buffer_like(inputs[place])
        self.buffers = [_elements(given[place]) for place in self.copied]
        self.graph = torch.xpu.XPUGraph()
        with torch.xpu.device(index), warnings.catch_warnings():
            # A graph of views alone submits nothing.
            warnings.filterwarnings("ignore", "The XPU Graph is empty")
            with torch.xpu.graph(self.graph):
                results = list(code(list(given)))
        # A result may be an input: then it is that of the call.
        places = {
            id(each): i for i, each in enumerate(given) if isinstance(each, Tensor)
        }
        self.results = [places.get(id(each), each) for each in results]
        self.is_input = [id(each) in places for each in results]
        kept = {_storage(given[i]) for i in fixed if isinstance(given[i], Tensor)}
        del results, given, places
        made = {
            _storage(each)
            for each in self.results
            if isinstance(each, Tensor) and _storage(each) not in kept
        }
        self.uses = {each: torch._C._storage_Use_Count(each) for each in made}

    def is_free(self) -> bool:
        """Whether nobody holds a result of the replay before."""
        return all(
            torch._C._storage_Use_Count(each) == count
            for each, count in self.uses.items()
        )

    def replay(self, inputs: list[Any]) -> list[Any]:
        if self.copied:
            sources = [_elements(inputs[place]) for place in self.copied]
            torch._foreach_copy_(self.buffers, sources)
        self.graph.replay()
        found = [
            inputs[each]
            if is_input
            else each.detach()
            if isinstance(each, Tensor)
            else each
            for each, is_input in zip(self.results, self.is_input, strict=True)
        ]
        inputs.clear()
        return found


class RecordedCode:
    """Compiled code of one device. See Note [Recorded compiled graphs].

    fixed: the positions of inputs that are not copied.
    """

    _boxed_call = True

    def __init__(self, code: Code, index: int, fixed: frozenset[int]) -> None:
        self.code = code
        self.index = index
        self.fixed = fixed
        self.recordings: dict[Hashable, list[Recording]] = {}
        self.seen: set[Hashable] = set()
        self.lock = threading.Lock()
        self.records = True

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if not self.records or torch.xpu.is_current_stream_capturing():
            return self.code(inputs)
        with self.lock:
            chosen = self._choose(inputs)
            if chosen is not None:
                return chosen.replay(inputs)
        return self.code(inputs)

    def _choose(self, inputs: list[Any]) -> Recording | None:
        """A recording for these inputs; None: the code is to be called."""
        key = self._key(inputs)
        for each in self.recordings.get(key, ()):
            if each.is_free():
                return each
        if key not in self.seen:
            if len(self.seen) >= MOST_SEEN:
                self.seen = set(self.recordings)
            self.seen.add(key)
            return None
        if len(self.recordings.get(key, ())) == PER_KEY:
            return None
        if sum(map(len, self.recordings.values())) >= MOST_RECORDINGS:
            _tell_once(
                f"a graph has {MOST_RECORDINGS} recordings already, of other sizes or "
                "addresses"
            )
            return None
        return self._record(key, inputs)

    def _key(self, inputs: list[Any]) -> Hashable:
        stream = torch.xpu.current_stream(self.index)
        key: list[Hashable] = [stream.stream_id, torch.is_inference_mode_enabled()]
        for place, each in enumerate(inputs):
            if not isinstance(each, Tensor):
                key.append(each)
            elif place in self.fixed:
                key.append(each.data_ptr())
        return tuple(key)

    def _record(self, key: Hashable, inputs: list[Any]) -> Recording | None:
        for each in inputs:
            if isinstance(each, Tensor) and each.device.index != self.index:
                self.records = False
                _tell_once("a graph has inputs on other devices")
                return None
        # A capture waits for earlier work, whose errors are none of the recording.
        torch.xpu.synchronize(self.index)
        try:
            with _one_capture:
                made = Recording(self.code, inputs, self.fixed, self.index)
        except RuntimeError as error:
            self.records = False
            _tell_once(str(error).strip().splitlines()[0])
            return None
        self.recordings.setdefault(key, []).append(made)
        return made


def _buffer_like(tensor: Tensor) -> Tensor:
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )


def _elements(tensor: Tensor) -> Tensor:
    """The tensor without the repetitions of expanded dimensions."""
    strides = tensor.stride()
    if 0 not in strides:
        return tensor.detach()
    sizes = [
        min(size, 1) if stride == 0 else size
        for size, stride in zip(tensor.shape, strides, strict=True)
    ]
    return tensor.detach().as_strided(sizes, strides)


def _storage(tensor: Tensor) -> int:
    found: int = tensor.untyped_storage()._cdata
    return found
