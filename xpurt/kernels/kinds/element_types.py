"""Element types by the letters that name them in kernel keys, and their OpenCL C.

float16 and bfloat16 are types of storage; values are computed in float.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ElementType:
    """How values of one dtype are stored in memory, and computed with."""

    dtype: str  # torch's name
    storage: str  # type of an element in memory
    compute: str  # type of a value in a register
    loaded: str = "{p}[{i}]"  # expression that reads element i of pointer p
    stored: str = "{p}[{i}] = {v}"  # statement that writes value v to it


TYPES = {
    "f": ElementType("float32", "float", "float"),
    "d": ElementType("float64", "double", "double"),
    "h": ElementType(
        "float16",
        "half",
        "float",
        "vload_half({i}, {p})",
        "vstore_half_rte({v}, {i}, {p})",
    ),
    "b": ElementType(
        "bfloat16",
        "ushort",
        "float",
        "from_bfloat16({p}[{i}])",
        "{p}[{i}] = bfloat16_of({v})",
    ),
    "c": ElementType("int8", "char", "char"),
    "s": ElementType("int16", "short", "short"),
    "i": ElementType("int32", "int", "int"),
    "l": ElementType("int64", "long", "long"),
    "u": ElementType("uint8", "uchar", "uchar"),
    "t": ElementType("bool", "uchar", "uchar"),
    "x": ElementType("complex64", "float2", "float2"),
    "z": ElementType("complex128", "double2", "double2"),
}

FLOATS = "fdhb"
INTS = "csilu"
BOOL = "t"
COMPLEX = "xz"


_BY_WAY_OF = {"u": "long", "c": "int", "s": "int"}


def is_floating(letter: str) -> bool:
    return letter in FLOATS


def is_complex(letter: str) -> bool:
    return letter in COMPLEX


def real_of(letter: str) -> str:
    """The type of a complex number's parts; `letter` itself for a type that is real."""
    return {"x": "f", "z": "d"}.get(letter, letter)


def converted(value: str, source: str, target: str) -> str:
    """Expression for `value`, of type `source` in a register, as type `target`."""
    if target == BOOL:
        return f"any(({value}) != 0)" if is_complex(source) else f"(({value}) != 0)"
    if is_complex(target):
        return _as_complex(value, source, target)
    if TYPES[source].compute == TYPES[target].compute and source != BOOL:
        return value
    if target in _BY_WAY_OF and is_floating(source):
        # C leaves it undefined what a number out of range becomes. PyTorch's kernels for
        # CPUs convert to a wider type, and drop the upper bits.
        wider = _BY_WAY_OF[target]
        return f"(({TYPES[target].compute})({wider})({value}))"
    return f"(({TYPES[target].compute})({value}))"


def _as_complex(value: str, source: str, target: str) -> str:
    type_ = TYPES[target].compute
    if source == target:
        return value
    if is_complex(source):
        return f"convert_{type_}({value})"
    return f"(({type_})(({TYPES[real_of(target)].compute})({value}), 0))"


def load(pointer: str, index: str, stored_as: str, wanted: str) -> str:
    """Expression that reads an element as a value of type `wanted`."""
    value = TYPES[stored_as].loaded.format(p=pointer, i=index)
    return converted(value, stored_as, wanted)


def store(
    pointer: str, index: str, value: str, computed_as: str, stored_as: str
) -> str:
    """Statement that writes a value of type `computed_as` as an element."""
    kind = TYPES[stored_as]
    # The value of an expression may be wider than the type of the computation.
    exact = f"({TYPES[computed_as].compute})({value})"
    return kind.stored.format(
        p=pointer, i=index, v=converted(exact, computed_as, stored_as)
    )
