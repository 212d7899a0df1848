"""The values for the templates of matrix products."""

from collections.abc import Sequence

from xpurt.kernels.kinds.element_types import TYPES, is_complex, load, store

# T is the type of `value`: a vector, or one element of it.
_ACTIVATIONS = {
    "": "value",
    "relu": "value > 0 || value != value ? value : (T)(0)",
    "gelu": "value * 0.5 * (1 + erf(value * 0.7071067811865476))",
}
# Expressions that read the elements from index i on as a vector of the computation's
# type, and statements that write such a vector.
_LOADED = {
    "f": "vload{n}(0, {p} + i)",
    "d": "vload{n}(0, {p} + i)",
    "h": "vload_half{n}(0, {p} + i)",
    "b": "as_float{n}(convert_uint{n}(vload{n}(0, {p} + i)) << 16)",
    "c": "convert_int{n}(vload{n}(0, {p} + i))",
}
_STORED = {
    "f": "vstore{n}(value, 0, p + i)",
    "d": "vstore{n}(value, 0, p + i)",
    "h": "vstore_half{n}_rte(value, 0, p + i)",
    "b": "vstore{n}(bfloat16_of_vector(value), 0, p + i)",
    "i": "vstore{n}(value, 0, p + i)",
}


def _activation(name: str, type_: str) -> str:
    return _ACTIVATIONS[name].replace("(T)", f"({type_})")


def _product(computed_as: str) -> str:
    """A product of numbers, without a call, so that it can be contracted with the
    sum."""
    return "fused_times(value, other)" if is_complex(computed_as) else "value * other"


def matmul_values(template: str, fields: Sequence[str]) -> dict[str, object]:
    """Fields: for vectors, "lanes,rows in registers,rows,columns,depth", where the last
    three are of a block ("16,12,144,160,128"); for tiles, work-items along a side; types
    of the result, the computation and the operands; "adds" if the first operand is added;
    the activation."""
    blocks, types, adds, activation = fields
    stored_as, computed_as, letter = tuple(types)
    storage = TYPES[letter].storage
    params = [f"__global {TYPES[stored_as].storage}* p"]
    params += [f"__global const {storage}* p{k}" for k in (1, 2, 3) if k < 3 or adds]
    params += ["const C alpha"] + (["const C beta"] if adds else [])
    values: dict[str, object] = {
        "params": ", ".join(params),
        "items": blocks,
        "adds": int(bool(adds)),
        "product": _product(computed_as),
        "activation": _activation(activation, "C"),
        "store": store("p", "i", "value", computed_as, stored_as),
        "load": load("p", "i", letter, computed_as),
    }
    for k in (1, 2, 3):
        values[f"load{k}"] = load(f"p{k}", "i", letter, computed_as)
    if template == "matmul_vectors":
        lanes, strip, rows, columns, depth = blocks.split(",")
        values |= {
            "lanes": lanes,
            "strip": strip,
            "rows": rows,
            "columns": columns,
            "depth": depth,
            "arguments": ", ".join(param.split()[-1].strip("*") for param in params),
            "storage": storage,
            "narrow": int(stored_as == "b"),
            "vector": f"{TYPES[computed_as].compute}{lanes}",
            "activation_vector": _activation(activation, "Vector"),
            "load_vector": _LOADED[letter].format(n=lanes, p="p"),
            "load_vector3": _LOADED[letter].format(n=lanes, p="p3"),
            "store_vector": _STORED[stored_as].format(n=lanes),
        }
    return values
