"""Measured costs of ops on the tiers of a device: their types, and their text format.

Pure functions: they use no device and no file.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any

FORMAT = 1  # of the text; increases with each change that old readers misread
LAYOUTS = ("alike", "mixed", "strided", "across", "long")
MOST_POINTS = 64


class BadCosts(ValueError):
    """Raised for a text without valid costs, or with those of another device, PyTorch
    or number of threads. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What times depend on beside the op: the device with its driver, the PyTorch whose
    kernels are the native tier, and the number of threads of these kernels."""

    device: str
    platform: str
    driver: str
    compute_units: int
    processor: str
    torch: str
    threads: int


@dataclass(frozen=True, slots=True)
class Point:
    """Microseconds until an op on this number of elements has finished, per tier."""

    elements: float
    native_us: float
    kernel_us: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The cost curve of a cost class (`xpurt.kernels.rows.cost_classes`), in one
    element type and one layout of the operands.

    letter: the type, as in kernel keys.
    layout: "alike" (dense, of one size and order), "mixed" (of several sizes),
        "strided", "across" (dense; the op runs along a dimension that is not the
        innermost), "long" (dense; the op runs along the innermost dimension, in lines
        of more than 512 elements).
    points: sorted by elements.
    """

    cost_class: str
    letter: str
    layout: str
    points: tuple[Point, ...]

    def crossover(self) -> float | None:
        """The number of elements from which on the kernel is faster than the native
        kernel; None if there is no such number.

        Between points the logarithms are interpolated linearly.
        """
        behind = [point for point in self.points if point.kernel_us >= point.native_us]
        if not behind:
            return 0.0
        last = self.points.index(behind[-1])
        if last + 1 == len(self.points):
            return None
        a, b = self.points[last], self.points[last + 1]
        before = math.log(a.kernel_us / a.native_us)
        after = math.log(b.kernel_us / b.native_us)
        share = before / (before - after)
        return a.elements * math.exp(share * math.log(b.elements / a.elements))

    def described(self) -> tuple[str, str, str, list[tuple[float, float, float]]]:
        """The curve in the form that the extension reads."""
        points = [(p.elements, p.native_us, p.kernel_us) for p in self.points]
        return self.cost_class, self.letter, self.layout, points


@dataclass(frozen=True, slots=True)
class Rates:
    """The best rates of a device. Times in microseconds, rates per microsecond.

    launch_us: a kernel of one element, from its submission to the end of the wait.
    native_call_us: PyTorch's CPU kernel on one element. This and the other native
        numbers are 0 if the host can't read the device's memory.
    bytes_per_us: an addition of large tensors; counts reads and writes.
    flops_per_us: a product of float32 matrices.
    copy_launch_us, copy_bytes_per_us: a copy from host memory.
    """

    launch_us: float
    native_call_us: float
    bytes_per_us: float
    native_bytes_per_us: float
    flops_per_us: float
    native_flops_per_us: float
    copy_launch_us: float
    copy_bytes_per_us: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """All measurements of one device. `measured`: the day and the method, as text."""

    identity: Identity
    measured: str
    rates: Rates
    curves: tuple[Curve, ...]


def to_text(calibration: Calibration) -> str:
    """The text of a calibration. Its first line is a hash of the rest, which reveals
    damage."""
    content = {
        "format": FORMAT,
        "measured": calibration.measured,
        "identity": asdict(calibration.identity),
        "rates": asdict(calibration.rates),
        "curves": [
            {
                "class": curve.cost_class,
                "type": curve.letter,
                "layout": curve.layout,
                "points": [astuple(point) for point in curve.points],
            }
            for curve in calibration.curves
        ],
    }
    # A line per curve.
    curves = ",\n".join(json.dumps(curve) for curve in content.pop("curves"))  # type: ignore[attr-defined]
    head = json.dumps(content, indent=1).removesuffix("\n}")
    text = f'{head},\n "curves": [\n{curves}\n]}}\n'
    return f"{_hash(text)}\n{text}"


def from_text(text: str) -> Calibration:
    """The inverse of `to_text`. Raises BadCosts."""
    digest, _, rest = text.partition("\n")
    if _hash(rest) != digest:
        raise BadCosts("it is damaged")
    try:
        content = json.loads(rest)
        if content["format"] != FORMAT:
            raise BadCosts(
                f"it has format {content['format']}, and this xpurt reads {FORMAT}"
            )
        return Calibration(
            _identity(content["identity"]),
            str(content["measured"]),
            Rates(**{f.name: _number(content["rates"][f.name]) for f in fields(Rates)}),
            tuple(_curve(each) for each in content["curves"]),
        )
    except BadCosts:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadCosts(f"it is damaged ({type(error).__name__}: {error})") from None


def merged(first: Iterable[Curve], second: Iterable[Curve]) -> tuple[Curve, ...]:
    """The curves of both. For a class that both have, those of the second."""
    later = tuple(second)
    known = {curve.cost_class for curve in later}
    return (*(curve for curve in first if curve.cost_class not in known), *later)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(given: dict[str, Any]) -> Identity:
    return Identity(**{f.name: given[f.name] for f in fields(Identity)})


def _number(given: object, *, least: float = 0.0) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadCosts(f"it is damaged: {given!r} is no number")
    if not (math.isfinite(given) and given >= least):
        raise BadCosts(f"it is damaged: {given!r} is no time, rate or size")
    return float(given)


def _curve(given: dict[str, Any]) -> Curve:
    rows: Sequence[Sequence[object]] = given["points"]
    if not 0 < len(rows) <= MOST_POINTS:
        raise BadCosts(f"it is damaged: a curve of {len(rows)} points")
    points = tuple(
        Point(*(_number(number, least=1e-6) for number in row)) for row in rows
    )
    if any(a.elements >= b.elements for a, b in itertools.pairwise(points)):
        raise BadCosts("it is damaged: sizes that do not grow")
    letter, layout = str(given["type"]), str(given["layout"])
    if len(letter) != 1 or layout not in LAYOUTS:
        raise BadCosts(f"it is damaged: type {letter!r}, layout {layout!r}")
    return Curve(str(given["class"]), letter, layout, points)
