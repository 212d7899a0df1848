"""What `quantize` did with each layer of a model."""

from dataclasses import dataclass

from xpurt.text.notebook import ShownInNotebooks
from xpurt.text.table import table


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer of the model.

    name: as in `named_modules()`; "" is the model itself.
    layer: the class that it had.
    quantized: the class that replaced it, or "" if it stayed.
    note: why it stayed, or what was folded into it.
    """

    name: str
    layer: str
    quantized: str = ""
    note: str = ""


@dataclass(frozen=True)
class QuantizationReport(ShownInNotebooks):
    """The layers with weights that `quantize` found, in the model's order, and the
    layers whose work others have taken over. `print` shows a table.
    """

    kind: str
    layers: tuple[LayerReport, ...]

    @property
    def quantized(self) -> list[LayerReport]:
        """The layers that were replaced."""
        return [layer for layer in self.layers if layer.quantized]

    @property
    def kept(self) -> list[LayerReport]:
        """The layers that stayed as they were."""
        return [layer for layer in self.layers if not layer.quantized]

    def __str__(self) -> str:
        rows = [(x.name, x.layer, x.quantized or "-", x.note) for x in self.layers]
        head = f"{self.kind}: {len(self.quantized)} of {len(self.layers)} layers\n"
        return head + table(("name", "layer", "quantized", "note"), rows)
