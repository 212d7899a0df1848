"""Sparse and quantized tensors for the ops of their layouts."""

from collections.abc import Callable

import torch

Make = Callable[[torch.Tensor], torch.Tensor]

_PATTERN = torch.tensor(
    [[0.5, 0.0, 0.25, 0.0], [0.0, 0.75, 0, 0], [0, 0, 0, 0], [0.1, 0, 0, 0.6]]
)
LAYOUTS = {
    "coo": torch.sparse_coo,
    "csr": torch.sparse_csr,
    "csc": torch.sparse_csc,
    "bsr": torch.sparse_bsr,
    "bsc": torch.sparse_bsc,
}
KEYS = {"coo": "SparseCPU"}  # the others: SparseCsrCPU

# Arguments that are dense tensors, whatever `self` is.
_DENSE = {"mat2", "dense", "vec", "tensor1", "batch1", "batch2", "values"}


def sparse(layout: str, make: Make, factor: float = 1.0) -> torch.Tensor:
    """Four by four; made of parts that are on the device."""
    dense = _PATTERN * factor
    if layout == "coo":
        on_cpu = dense.to_sparse()
        return torch.sparse_coo_tensor(
            make(on_cpu.indices()), make(on_cpu.values()), (4, 4), is_coalesced=True
        )
    block = (2, 2) if layout in ("bsr", "bsc") else None
    on_cpu = dense.to_sparse(layout=LAYOUTS[layout], blocksize=block)
    by_rows = layout in ("csr", "bsr")
    compressed = on_cpu.crow_indices() if by_rows else on_cpu.ccol_indices()
    others = on_cpu.col_indices() if by_rows else on_cpu.row_indices()
    return torch.sparse_compressed_tensor(
        make(compressed),
        make(others),
        make(on_cpu.values()),
        (4, 4),
        layout=LAYOUTS[layout],
    )


def sparse_tensors(layout: str, make: Make) -> Callable[[str], torch.Tensor]:
    def tensor(name: str) -> torch.Tensor:
        if name in _DENSE:
            return make(torch.arange(16.0).reshape(4, 4) / 8)
        if name == "index":
            return make(torch.tensor([1, 3]))
        return sparse(layout, make, 1.0 if name in ("self", "out") else 0.5)

    return tensor


def quantized(
    make: Make, shape: tuple[int, ...] = (2, 4, 4, 4), shift: float = 0.0
) -> torch.Tensor:
    count = torch.Size(shape).numel()
    source = (torch.arange(float(count)) % 23 / 5 - 2 + shift).reshape(shape)
    return torch.quantize_per_tensor(make(source), 0.05, 3, torch.quint8)


def quantized_tensors(
    make: Make, shape: tuple[int, ...]
) -> Callable[[str], torch.Tensor]:
    def tensor(name: str) -> torch.Tensor:
        if name in ("index", "indices"):
            return make(torch.tensor([1, 0]))
        if name == "mask":
            return make(torch.arange(torch.Size(shape).numel()) % 3 == 0).view(shape)
        if name == "value":
            return make(torch.tensor(0.5))
        return quantized(make, shape, 0.0 if name == "self" else 0.5)

    return tensor
