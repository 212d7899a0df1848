"""Scaled dot product attention, and its gradients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xpurt.kernels.kinds.element_types import TYPES, load, store
from xpurt.kernels.kinds.row import FLOATING_ONLY, BaseRow, Kind


@dataclass(frozen=True, slots=True)
class Attention(BaseRow):
    """Attention in blocks, so that the scores of all queries and keys never exist
    together (Dao, Fu, Ermon, Rudra and Ré, 2022). It is computed by oneDNN's matrix
    products with a kernel between them, or by tiles. C++ handles the arguments."""

    template: ClassVar[str] = "attention"

    aten: str
    kind: Kind = FLOATING_ONLY
    flops: float = 4


# The templates that each template needs before it.
_BEFORE = {
    "attention_softmax": ("across", "attention_lines"),
    "attention_change": ("across", "attention_lines"),
    "attention_forward": ("attention_tiles",),
    "attention_queries": ("attention_tiles",),
    "attention_keys": ("attention_tiles",),
}


def templates_of(template: str) -> tuple[str, ...]:
    return "attention_layout", *_BEFORE[template], template


def attention_values(fields: Sequence[str]) -> dict[str, object]:
    """The values for the templates. Fields: size of a head; types of the tensors and
    of the computation; type of the mask, if there is one; "causal" or nothing."""
    _, types, mask, _ = fields
    letter, computed_as = tuple(types)
    mask_as = mask or letter
    return {
        "storage": TYPES[letter].storage,
        "load": load("p", "i", letter, computed_as),
        "store": store("p", "i", "value", computed_as, letter),
        "masked": int(bool(mask)),
        "mask_type": TYPES[mask_as].storage,
        "mask_load": load("mask", "i", mask_as, computed_as),
    }


ROWS = (
    Attention("_scaled_dot_product_flash_attention_for_cpu"),
    Attention("_scaled_dot_product_flash_attention_for_cpu_backward", flops=10),
)
