"""A result that is requested on xpu is on xpu, or an error; never a CPU tensor.

The ordinals that a mapping does not have: tests/bad_input/test_missing_ordinals.py.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import xpurt
from xpurt.errors import MappingError

Maker = Callable[[str], object]

MAKERS: dict[str, Maker] = {
    "empty": lambda d: torch.empty(2, device=d),
    "empty_strided": lambda d: torch.empty_strided((2, 2), (1, 2), device=d),
    "zeros": lambda d: torch.zeros(2, device=d),
    "full": lambda d: torch.full((2,), 3, device=d),
    "arange": lambda d: torch.arange(3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "rand": lambda d: torch.rand(3, device=d),
    "randint": lambda d: torch.randint(3, (3,), device=d),
    "randperm": lambda d: torch.randperm(3, device=d),
    "normal": lambda d: torch.normal(0.0, 1.0, (3,), device=d),
    "tril_indices": lambda d: torch.tril_indices(3, 3, device=d),
    "hann_window": lambda d: torch.hann_window(3, device=d),
    "tensor": lambda d: torch.tensor([1, 2], device=d),
    "tensor of a number": lambda d: torch.tensor(1, device=d),
    "as_tensor": lambda d: torch.as_tensor([1, 2], device=d),
    "as_tensor of numpy": lambda d: torch.as_tensor(np.ones(2), device=d),
    "asarray": lambda d: torch.asarray(np.ones(2), device=d),
    "sparse": lambda d: torch.sparse_coo_tensor([[0]], [1.0], (2,), device=d),
    "sparse_csr": lambda d: torch.sparse_csr_tensor([0, 1], [0], [1.0], device=d),
    "nested": lambda d: torch.nested.nested_tensor([torch.ones(2)], device=d),
    "quantized": lambda d: torch.quantize_per_tensor(
        torch.ones(2, device=d), 0.1, 0, torch.qint8
    ),
    "like": lambda d: torch.ones_like(torch.ones(2), device=d),
    "rand_like": lambda d: torch.rand_like(torch.ones(2), device=d),
    "new_zeros": lambda d: torch.ones(2).new_zeros(2, device=d),
    "new_tensor": lambda d: torch.ones(2).new_tensor([1.0], device=d),
    "to": lambda d: torch.ones(2).to(d),
    "to, lazily": lambda d: torch.ones(2).to(d, non_blocking=True),
    "to of nothing": lambda d: torch.ones(0).to(d),
    "to of a number": lambda d: torch.tensor(1.0).to(d),
    "to with a dtype": lambda d: torch.ones(2).to(d, torch.half),
    "module": lambda d: nn.Linear(2, 2).to(d).weight,
    "module made there": lambda d: nn.Linear(2, 2, device=d).weight,
    "buffer": lambda d: nn.BatchNorm1d(2, device=d).running_mean,
    "parameter": lambda d: nn.Parameter(torch.ones(2)).to(d),
    "packed": lambda d: nn.utils.rnn.pack_sequence([torch.ones(2)]).to(d).data,
    "storage": lambda d: torch.UntypedStorage(8, device=d),
    "generator": torch.Generator,
    "fft frequencies": lambda d: torch.fft.fftfreq(3, device=d),
    "cartesian": lambda d: torch.meshgrid(torch.ones(2, device=d), indexing="ij")[0],
    "complex": lambda d: torch.zeros(2, dtype=torch.complex64, device=d),
    "scalar_tensor": lambda d: torch.scalar_tensor(1.0, device=d),
    "sparse, moved": lambda d: torch.zeros(2, 2).to_sparse().to(d),
}


@pytest.mark.parametrize("make", MAKERS)
def test_it_is_there(make: str, xpu: torch.device) -> None:
    made = MAKERS[make]("xpu")
    assert made.device == xpu  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", MAKERS)
def test_an_ordinal_that_is_missing(make: str, xpu: torch.device) -> None:
    missing = torch.xpu.device_count() + 2
    with pytest.raises(MappingError) as caught:
        MAKERS[make](f"xpu:{missing}")
    mapping = xpurt.get_xpu_mapping()
    assert f'xpu:{missing} is out of range: mapping "{mapping}" has' in str(
        caught.value
    )
    assert torch.xpu.current_device() == 0


# Results of many forms, some of which PyTorch computes on the host in part.
OPS: dict[str, Callable[[torch.Tensor], object]] = {
    "add a CPU number": lambda x: x + torch.tensor(2.0),
    "unique": lambda x: x.unique(return_inverse=True, return_counts=True),
    "nonzero": lambda x: x.nonzero(as_tuple=True),
    "topk": lambda x: x.topk(2),
    "svd": lambda x: torch.linalg.svd(x),
    "eig": lambda x: torch.linalg.eigvals(x),
    "lu": lambda x: torch.linalg.lu_factor_ex(x),
    "histogram": lambda x: x.histc(3),
    "stft": lambda x: torch.stft(x.flatten(), 4, return_complex=True),
    "fft": lambda x: torch.fft.rfft(x),
    "multinomial": lambda x: x.abs().multinomial(2),
    "bernoulli": lambda x: x.bernoulli(0.5),
    "dropout": lambda x: torch.dropout(x, 0.5, True),
    "split": lambda x: x.split(1),
    "sparse": lambda x: x.to_sparse().coalesce().indices(),
    "index by the CPU": lambda x: x[torch.tensor([0, 1])],
    "searchsorted": lambda x: torch.searchsorted(x, x),
    "lstm": lambda x: nn.LSTM(3, 2, device=x.device)(x),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x),
    "ctc": lambda x: nn.functional.ctc_loss(
        x[:, None].log_softmax(-1), torch.ones(1, 1).long(), (3,), (1,)
    ),
    "embedding_bag": lambda x: nn.functional.embedding_bag(
        torch.zeros(2, 2, dtype=torch.long, device=x.device), x
    ),
    "grid_sample": lambda x: nn.functional.grid_sample(
        x[None, None], x.new_zeros(1, 2, 2, 2), align_corners=False
    ),
    "from_dlpack": torch.from_dlpack,
}


@pytest.mark.parametrize("op", OPS)
def test_results_stay(op: str, xpu: torch.device) -> None:
    results = OPS[op](torch.rand(3, 3, device=xpu))
    leaves = torch.utils._pytree.tree_leaves(results)
    assert leaves
    assert {leaf.device for leaf in leaves} == {xpu}
