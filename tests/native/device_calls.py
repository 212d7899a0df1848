"""Calls of every aten op that takes a device, on a tensor of every layout."""

from collections.abc import Callable
from typing import Any

import torch

DENSE = torch.arange(24.0).reshape(4, 6) - 5
PARTS = [torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3)]

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "strided": lambda: DENSE.clone(),
    "transposed": lambda: DENSE.t(),
    "zero_size": lambda: torch.empty(0, 3),
    "complex": lambda: torch.complex(DENSE, DENSE),
    "conjugate": lambda: torch.complex(DENSE, DENSE).conj(),
    "negative": lambda: torch._neg_view(DENSE),
    "coo": lambda: DENSE.to_sparse(),
    "csr": lambda: DENSE.to_sparse_csr(),
    "csc": lambda: DENSE.to_sparse_csc(),
    "bsr": lambda: DENSE.to_sparse_bsr((2, 2)),
    "bsc": lambda: DENSE.to_sparse_bsc((2, 2)),
    "per_tensor": lambda: torch.quantize_per_tensor(DENSE, 0.1, 3, torch.qint8),
    "per_channel": lambda: torch.quantize_per_channel(
        DENSE, torch.full((4,), 0.1), torch.zeros(4, dtype=torch.long), 0, torch.qint8
    ),
    "nested": lambda: torch.nested.nested_tensor(PARTS),
    "jagged": lambda: torch.nested.nested_tensor(PARTS, layout=torch.jagged),
}

# Arguments that have no default, by their names. One tensor, "self", has the layout.
PLAIN_ARGUMENTS: dict[str, object] = {
    "size": [2, 3],
    "stride": [3, 1],
    "fill_value": 2,
    "low": 0,
    "high": 5,
    "n": 4,
    "m": 3,
    "start": 0,
    "end": 5,
    "steps": 4,
    "step": 1,
    "base": 2.0,
    "window_length": 6,
    "periodic": True,
    "alpha": 0.5,
    "beta": 0.5,
    "s": 1.5,
    "mean": 0.0,
    "std": 1.0,
    "row": 3,
    "col": 4,
    "physical_layout": [0, 1],
    "generator": None,
    "pin_memory": None,
}

# Two rows, of one and of two elements; as indices of the columns of a COO tensor, too.
ROWS, COLUMNS = torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2])
BLOCK_ROWS, BLOCK_COLUMNS = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
VALUES, BLOCKS = torch.tensor([3.0, 4.0, 5.0]), torch.arange(8.0).reshape(2, 2, 2)
COO = torch.tensor([[0, 1, 1], [2, 0, 2]])

COMPRESSED = {"csr": (ROWS, COLUMNS, VALUES, (2, 3)), "csc": (ROWS, COLUMNS % 2, VALUES, (2, 2)),
              "bsr": (BLOCK_ROWS, BLOCK_COLUMNS, BLOCKS, (4, 4)),
              "bsc": (BLOCK_ROWS, BLOCK_COLUMNS, BLOCKS, (4, 4))}  # fmt: skip

# By op: arguments that the rules above don't make. Tensors among them are given on the
# device that the op is called for.
MADE: dict[str, tuple[object, ...]] = {
    "empty_quantized": ([2, 3], "self"),
    "_empty_affine_quantized": ([2, 3],),
    "_empty_per_channel_affine_quantized": (
        [2, 3],
        torch.full((2,), 0.1),
        torch.zeros(2, dtype=torch.long),
        0,
    ),
    "_nested_tensor_from_tensor_list": (PARTS,),
    "sparse_coo_tensor.size": ([2, 3],),
    "sparse_coo_tensor.indices": (COO, VALUES),
    "sparse_coo_tensor.indices_size": (COO, VALUES, [2, 3]),
    "_sparse_coo_tensor_unsafe": (COO, VALUES, [2, 3]),
    "_sparse_coo_tensor_with_dims": (2, 0, [2, 3]),
    "_sparse_coo_tensor_with_dims_and_tensors": (2, 0, [2, 3], COO, VALUES),
    "_sparse_compressed_tensor_with_dims": (3, 0, [2, 3], [], torch.long),
    "linspace.Tensor_Tensor": (torch.tensor(0.0), torch.tensor(5.0), 4),
    "linspace.Tensor_Scalar": (torch.tensor(0.0), 5, 4),
    "linspace.Scalar_Tensor": (0, torch.tensor(5.0), 4),
    "logspace.Tensor_Tensor": (torch.tensor(0.0), torch.tensor(2.0), 4),
    "logspace.Tensor_Scalar": (torch.tensor(0.0), 2, 4),
    "logspace.Scalar_Tensor": (0, torch.tensor(2.0), 4),
    "randint_like.Tensor": ("self", torch.tensor(5)),
    "randint_like.Tensor_generator": ("self", torch.tensor(5)),
}
MORE: dict[str, dict[str, object]] = {
    "_empty_affine_quantized": {"dtype": torch.qint8, "scale": 0.1},
    "_empty_per_channel_affine_quantized": {"dtype": torch.qint8},
    "_sparse_compressed_tensor_with_dims": {"layout": torch.sparse_csr},
    "_sparse_coo_tensor_with_dims": {"layout": torch.sparse_coo},
    "_sparse_coo_tensor_with_dims_and_tensors": {"layout": torch.sparse_coo},
}
for kind, (first, second, values, whole) in COMPRESSED.items():
    short = {"csr": "crow_col", "csc": "ccol_row", "bsr": "crow_col", "bsc": "ccol_row"}
    MADE[f"sparse_{kind}_tensor.{short[kind]}_value"] = (first, second, values)
    MADE[f"sparse_{kind}_tensor.{short[kind]}_value_size"] = (
        first,
        second,
        values,
        list(whole),
    )
    MADE[f"_sparse_{kind}_tensor_unsafe"] = (first, second, values, list(whole))
for each in ("comp_plain_value", "comp_plain_value_size"):
    MADE[f"sparse_compressed_tensor.{each}"] = (ROWS, COLUMNS, VALUES) + (
        ([2, 3],) if each.endswith("size") else ()
    )
    MORE[f"sparse_compressed_tensor.{each}"] = {"layout": torch.sparse_csr}
MADE["_sparse_compressed_tensor_unsafe"] = (ROWS, COLUMNS, VALUES, [2, 3])
MORE["_sparse_compressed_tensor_unsafe"] = {"layout": torch.sparse_csr}

# Constructors whose result is where its parts are: PyTorch's functions move them there
# first, see test_sparse_tensors_from_parts_elsewhere.
OF_PARTS = ("sparse_coo", "sparse_cs", "sparse_bs", "sparse_compressed")

# Ops whose device is not where the result goes, or that have no result.
NOT_CALLED = {
    "_assert_tensor_metadata": "compares the device, returns nothing",
    "_cudnn_init_dropout_state": "of CUDA alone",
    "_make_dep_token": "a token, for compilers; PyTorch has no kernel that runs",
    "_nested_tensor_from_tensor_list.out": "the result is the argument out",
    "_pin_memory": "the device of the pinning; see test_pinning",
    "_pin_memory.out": "the device of the pinning; the result is the argument out",
    "_resize_output": "compares the device with the tensor's",
    "_resize_output.out": "compares the device with the tensor's",
    "_resize_output_": "compares the device with the tensor's",
    "from_file": "needs a file; see test_from_file",
    "is_pinned": "the device of the pinning; see test_pinning",
    "pin_memory": "the device of the pinning; see test_pinning",
}

# Their values are not those of the same call elsewhere.
UNTOLD = ("empty", "rand", "normal", "_sparse_compressed_tensor_with_dims")


def device_ops() -> dict[str, torch._C.FunctionSchema]:
    present = set(torch._C._dispatch_get_all_op_names())
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name + (schema.overload_name and f".{schema.overload_name}")
        takes = any("Device" in str(argument.type) for argument in schema.arguments)
        if name.startswith("aten::") and name in present and takes:
            found[name.removeprefix("aten::")] = schema
    return found


OPS = device_ops()


def overload(name: str) -> Any:
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def there(value: object, device: torch.device) -> object:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, list):
        return [there(each, device) for each in value]
    return value


def call(name: str, of: torch.Tensor, asked: torch.device) -> torch.Tensor:
    """Calls the op with `of` as its tensor and the device `asked` for its result."""
    positional: list[object] = []
    named = dict(MORE.get(name, {}))
    arguments = OPS[name].arguments
    if name in MADE:
        of_parts = name.lstrip("_").startswith(OF_PARTS)
        place = asked if of_parts else of.device
        if name.startswith("randint_like"):  # its bound is to be on the CPU
            place = torch.device("cpu")
        positional = [of if each == "self" else there(each, place)
                      for each in MADE[name]]  # fmt: skip
    for argument in arguments:
        if argument.name == "device":
            named["device"] = asked
        elif name not in MADE and not argument.has_default_value():
            is_tensor = "Tensor" in str(argument.type)
            value = of if is_tensor else PLAIN_ARGUMENTS.get(argument.name)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                positional.append(value)
    if name == "to.device":
        return overload(name)(of, asked, of.dtype)  # type: ignore[no-any-return]
    return overload(name)(*positional, **named)  # type: ignore[no-any-return]


def takes_layout(name: str) -> bool:
    if name in MADE:
        return "self" in [v for v in MADE[name] if isinstance(v, str)]
    return any("Tensor" in str(a.type) for a in OPS[name].arguments)
