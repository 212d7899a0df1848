"""Ways in which a program writes to a tensor of float32, of four rows of six."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import xpurt

Way = Callable[[Tensor], object]


def _index(t: Tensor) -> None:
    t[1:3, 2] = 7


def _out(t: Tensor) -> None:
    torch.add(torch.ones_like(t), 3, out=t)


def _view(t: Tensor) -> None:
    t.view(2, 12)[1].add_(5)


def _overlapping_view(t: Tensor) -> None:
    t.as_strided((3, 6), (6, 1), 3).mul_(3)


def _scatter(t: Tensor) -> None:
    t.scatter_(1, torch.zeros(4, 1, dtype=torch.int64, device=t.device), 9)


def _index_put(t: Tensor) -> None:
    t.index_put_(
        (torch.tensor([0, 2], device=t.device),), torch.ones(6, device=t.device)
    )


def _split(t: Tensor) -> None:
    for each in t.split(2):
        each.neg_()


def _running_mean(t: Tensor) -> None:
    images = torch.randn(8, 24, device=t.device) + 3
    F.batch_norm(images, t.view(-1), torch.ones(24, device=t.device), training=True)


def _noise(t: Tensor) -> None:
    torch.ops.aten.rrelu_with_noise(torch.randn_like(t) - 9, t, 0.1, 0.3, True)


def _foreach(t: Tensor) -> None:
    torch._foreach_add_([t, torch.ones_like(t)], 2.0)


def _steps(optimizer: Any, **options: Any) -> Way:
    def step(t: Tensor) -> None:
        parameter = nn.Parameter(t)
        parameter.grad = torch.ones_like(t)
        optimizer([parameter], lr=0.5, **options).step()

    return step


def _momentum(t: Tensor) -> None:
    parameter = nn.Parameter(torch.zeros_like(t))
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
    optimizer.state[parameter]["momentum_buffer"] = t
    parameter.grad = torch.ones_like(t)
    optimizer.step()


def _state(t: Tensor) -> None:
    layer = nn.Linear(6, 4, bias=False, device=t.device)
    layer.weight = nn.Parameter(t)
    layer.load_state_dict({"weight": torch.ones(4, 6)})


def _gradient(t: Tensor) -> None:
    parameter = torch.ones(4, 6, device=t.device, requires_grad=True)
    parameter.grad = t
    (parameter * 2).sum().backward()


def _clipped(t: Tensor) -> None:
    parameter = torch.ones(4, 6, device=t.device, requires_grad=True)
    parameter.grad = t
    nn.utils.clip_grad_norm_([parameter], 0.5)


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.add_(4)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


@torch.library.custom_op("xpurt_ways::fill", mutates_args={"x"})
def _custom_op(x: Tensor) -> None:
    x.fill_(8)


def _scripted(t: Tensor) -> None:
    graph = torch.jit.CompilationUnit("def f(x: Tensor):\n    x += 3\n    return x\n")
    graph.f(t)


def _storage_item(t: Tensor) -> None:
    t.untyped_storage()[5] = 66


def _storage_copy(t: Tensor) -> None:
    t.untyped_storage().copy_(torch.ones(24).untyped_storage())


def _byteswap(t: Tensor) -> None:
    t.untyped_storage().byteswap(torch.float32)


def _buffer(t: Tensor) -> None:
    memoryview(t.numpy()).cast("B")[3] = 65


def _dlpack(t: Tensor) -> None:
    torch.from_dlpack(t).add_(2)


def _dlpack_capsule(t: Tensor) -> None:
    torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(t)).add_(2)


def _pointer(t: Tensor) -> None:
    ctypes.memset(t.data_ptr(), 1, 8)


def _storage_pointer(t: Tensor) -> None:
    ctypes.memset(t.untyped_storage().data_ptr(), 1, 8)


def _usm(t: Tensor) -> None:
    xpurt.from_usm(t).add_(2)


def _other_data(t: Tensor) -> None:
    t.data = torch.full_like(t, 3.0)


def _set(t: Tensor) -> None:
    t.set_(torch.full_like(t, 3.0))


def _swapped(t: Tensor) -> None:
    torch.utils.swap_tensors(t, torch.full_like(t, 3.0))


def _resized(t: Tensor) -> None:
    t.resize_(8, 6).fill_(2)
    t.resize_(4, 6)


def _from_set(t: Tensor) -> None:
    torch.empty(0, device=t.device).set_(t.untyped_storage()).fill_(6)


def _type_view(t: Tensor) -> None:
    t.view(torch.int32).bitwise_xor_(1)


def _complex_view(t: Tensor) -> None:
    torch.view_as_complex(t.view(4, 3, 2)).mul_(2)


def _vmap(t: Tensor) -> None:
    torch.vmap(lambda row: row.mul_(2))(t)


def _parallel(t: Tensor) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: each.add_(1), t.unbind()))


WAYS: dict[str, Way] = {
    "add_": lambda t: t.add_(1),
    "fill_": lambda t: t.fill_(3),
    "zero_": lambda t: t.zero_(),
    "copy_": lambda t: t.copy_(torch.ones_like(t)),
    "copy_ from the other side": lambda t: t.copy_(torch.ones(4, 6)),
    "normal_": lambda t: t.normal_(),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "masked_fill_": lambda t: t.masked_fill_(t > 5, 0),
    "index": _index,
    "index_put_": _index_put,
    "scatter_": _scatter,
    "out=": _out,
    "a view": _view,
    "a view of overlapping rows": _overlapping_view,
    "a view of another type": _type_view,
    "a complex view": _complex_view,
    "split": _split,
    "detach": lambda t: t.detach().add_(1),
    ".data": lambda t: t.data.add_(1),
    "batch_norm": _running_mean,
    "rrelu_with_noise": _noise,
    "relu(inplace=True)": lambda t: F.dropout(t, 0.5, True, inplace=True),
    "_foreach_add_": _foreach,
    "SGD": _steps(torch.optim.SGD),
    "Adam": _steps(torch.optim.Adam),
    "fused Adam": _steps(torch.optim.Adam, fused=True),
    "a momentum buffer": _momentum,
    "load_state_dict": _state,
    "an initialization": nn.init.xavier_uniform_,
    "accumulated gradients": _gradient,
    "clip_grad_norm_": _clipped,
    "an autograd.Function": _InPlace.apply,
    "a custom op": _custom_op,
    "TorchScript": _scripted,
    "vmap": _vmap,
    "threads": _parallel,
    "a compiled function": lambda t: torch.compile(lambda x: x.add_(1))(t),
    "storage[i]": _storage_item,
    "storage.copy_": _storage_copy,
    "storage.fill_": lambda t: t.untyped_storage().fill_(65),
    "set_ to the storage": _from_set,
    "resize_": _resized,
    "data = other": _other_data,
    "set_": _set,
    "swap_tensors": _swapped,
    "DLPack": _dlpack,
    "DLPack's capsule": _dlpack_capsule,
    "data_ptr": _pointer,
    "the storage's data_ptr": _storage_pointer,
    "share": lambda t: xpurt.share(t).add_(2),
}

OF_CPU: dict[str, Way] = {
    "numpy": lambda t: t.numpy().fill(4),
    "np.asarray": lambda t: np.asarray(t).__setitem__(0, 5),
    "np.from_dlpack": lambda t: np.from_dlpack(t).__iadd__(1),
    "a buffer": _buffer,
    "byteswap": _byteswap,
    "share_memory_": lambda t: t.share_memory_().add_(1),
}

OF_XPU: dict[str, Way] = {"__sycl_usm_array_interface__": _usm}
