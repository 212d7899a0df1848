"""The request: which devices are to stand behind which xpu ordinals.

Everything here turns text into data; no device is used. A request is written as

    mapping    "explicit" | "CPU" | "GPU" | "AUTO", in any case; "AUTO:GPU,CPU" takes
               these only and in this order, "AUTO:-GPU" takes all but these
    devices    SYCL filter strings: "gpu", "opencl:cpu:0", "level_zero:gpu:1"
    partition  n (equal parts), [a, b, ...] (compute units per part) or "numa"
    overflow   "off" or, under GPU, "host"
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from xpurt.arguments import wrong_type
from xpurt.config import OVERFLOWS, Overflow
from xpurt.errors import MappingError, nearest

MappingName = Literal["explicit", "CPU", "GPU", "AUTO"]
MAPPING_NAMES: Final[tuple[MappingName, ...]] = get_args(MappingName)

Kind = Literal["gpu", "accelerator", "cpu"]
# The order is that of the ordinals under "explicit".
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# In the order of preference for a device that several backends list: OpenCL C kernels
# build on the first.
BACKENDS: Final = ("opencl", "level_zero", "cuda", "hip")

Partition: TypeAlias = int | tuple[int, ...] | Literal["numa"]


@dataclass(frozen=True, slots=True)
class DeviceFilter:
    """A SYCL filter string, ``backend:kind:number`` with any of the parts left out."""

    backend: str | None = None
    kind: Kind | None = None
    number: int | None = None

    def __str__(self) -> str:
        parts = (self.backend, self.kind, self.number)
        return ":".join(str(part) for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class MappingSpec:
    """A mapping as it was requested.

    include: under AUTO the devices to take, in this order; empty takes all.
    exclude: under AUTO the devices to leave out.
    devices: the filters of ``devices=``; empty takes all.
    partition: a number of equal parts, compute units per part, or "numa".
    overflow: under GPU, where memory is that a GPU has no room for.
    """

    name: MappingName = "AUTO"
    include: tuple[DeviceFilter, ...] = ()
    exclude: tuple[DeviceFilter, ...] = ()
    devices: tuple[DeviceFilter, ...] = ()
    partition: Partition | None = None
    overflow: Overflow = "off"

    @property
    def decides_alone(self) -> bool:
        """Whether it names the devices themselves, so that a launcher's processes do
        not divide them."""
        return bool(
            self.name == "explicit" or self.devices or self.partition is not None
        )

    @property
    def mapping(self) -> str:
        """The text that ``set_xpu_mapping`` takes as its first argument."""
        members = [_member(f) for f in self.include]
        members += ["-" + _member(f) for f in self.exclude]
        return f"{self.name}:{','.join(members)}" if members else self.name

    def __str__(self) -> str:
        text = f'"{self.mapping}"'
        if self.devices:
            text += f", devices={[str(f) for f in self.devices]}"
        if self.partition is not None:
            parts = self.partition
            text += f", partition={list(parts) if isinstance(parts, tuple) else parts}"
        if self.overflow != "off":
            text += f', overflow="{self.overflow}"'
        return text


def parse(
    mapping: str = "AUTO",
    devices: str | Iterable[str] | None = None,
    partition: int | Sequence[int] | str | None = None,
    overflow: str | None = None,
) -> MappingSpec:
    """The spec for the arguments of ``set_xpu_mapping``.

    Raises MappingError on unknown words and impossible numbers, ValueError for an
    overflow that is unknown or not under GPU, TypeError on arguments of another type.
    """
    if not isinstance(mapping, str):
        raise TypeError(f"mapping must be a string, not {type(mapping).__name__}")
    head, colon, tail = mapping.partition(":")
    name = _mapping_name(head.strip(), mapping)
    include: tuple[DeviceFilter, ...] = ()
    exclude: tuple[DeviceFilter, ...] = ()
    if colon:
        if name != "AUTO":
            raise MappingError(
                f'mapping "{mapping}": only AUTO takes a list of devices after the '
                f'colon. Write set_xpu_mapping("{name}", devices={_listed(tail)}).'
            )
        include, exclude = _members(mapping, tail)
    return MappingSpec(
        name,
        include,
        exclude,
        _parse_devices(devices),
        _parse_partition(partition),
        _parse_overflow(overflow, name),
    )


def parse_filter(text: str) -> DeviceFilter:
    """``backend:kind:number`` with any of the parts left out, in any case.

    Raises MappingError if a part is unknown or out of order.
    """
    backend: str | None = None
    kind: Kind | None = None
    number: int | None = None
    for part in text.strip().lower().split(":"):
        if part in BACKENDS and (backend, kind, number) == (None, None, None):
            backend = part
        elif part in KINDS and (kind, number) == (None, None):
            kind = part
        elif part.isascii() and part.isdigit() and number is None:
            number = int(part)
        else:
            raise MappingError(
                f'"{text}" is not a SYCL filter string: "{part}" is not understood'
                f"{_suggest(part, (*BACKENDS, *KINDS))} Write backend:kind:number "
                f"with any part left out; backends: {', '.join(BACKENDS)}; kinds: "
                f"{', '.join(KINDS)}."
            )
    return DeviceFilter(backend, kind, number)


def parts_in_compute_units(
    partition: int | tuple[int, ...], compute_units: int, device: str
) -> tuple[int, ...]:
    """The number of compute units of each part of a device.

    The request counts parts, SYCL counts compute units per part: 8 units in 2 parts are
    (4, 4). `device` is its name in an error. Raises MappingError if the parts do not
    divide the device, or need more units than it has.
    """
    if isinstance(partition, int):
        if compute_units % partition:
            even = [n for n in range(2, compute_units + 1) if compute_units % n == 0]
            raise MappingError(
                f"partition={partition} does not divide the {compute_units} compute "
                f"units of {device}. It can have "
                f"{_short_list(even) if even else 'one part only: 1'} equal parts, or "
                "take a list of compute units per part."
            )
        return (compute_units // partition,) * partition
    if sum(partition) > compute_units:
        raise MappingError(
            f"partition={list(partition)} wants {sum(partition)} compute units; "
            f"{device} has {compute_units}. Ask for fewer."
        )
    return partition


def _mapping_name(head: str, mapping: str) -> MappingName:
    for name in MAPPING_NAMES:
        if head.lower() == name.lower():
            return name
    raise MappingError(
        f'mapping "{mapping}" is unknown{_suggest(head, MAPPING_NAMES)} '
        f"There are {', '.join(MAPPING_NAMES)}, and AUTO with a list of devices, as in "
        '"AUTO:GPU,CPU" or "AUTO:-GPU".'
    )


def _members(
    mapping: str, tail: str
) -> tuple[tuple[DeviceFilter, ...], tuple[DeviceFilter, ...]]:
    include: list[DeviceFilter] = []
    exclude: list[DeviceFilter] = []
    for item in tail.split(","):
        word = item.strip()
        away = word.startswith("-")
        if not word.removeprefix("-").strip():
            raise MappingError(
                f'mapping "{mapping}" has an empty place in its list of devices. '
                'Write "AUTO", "AUTO:GPU,CPU" or "AUTO:-GPU".'
            )
        try:
            (exclude if away else include).append(parse_filter(word.removeprefix("-")))
        except MappingError as error:
            raise MappingError(f'mapping "{mapping}": {error}') from None
    return _once(include), _once(exclude)


def _parse_devices(devices: str | Iterable[str] | None) -> tuple[DeviceFilter, ...]:
    if devices is None:
        return ()
    if not isinstance(devices, Iterable):
        raise wrong_type(
            "devices=",
            "SYCL filter strings",
            devices,
            'Write devices="gpu" or devices=["gpu", "opencl:cpu:0"].',
        )
    texts = [devices] if isinstance(devices, str) else list(devices)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(
                "devices must be SYCL filter strings, not "
                f"{type(text).__name__}: {text!r}"
            )
    if not texts:
        raise MappingError(
            "devices=[] leaves no device. Leave the argument out to take all, or name "
            'some by SYCL filter strings, as in ["gpu", "opencl:cpu:0"].'
        )
    return _once(parse_filter(text) for text in texts)


def _parse_partition(
    partition: int | Sequence[int] | str | None,
) -> Partition | None:
    if partition is None:
        return None
    if isinstance(partition, str):
        if partition.strip().lower() == "numa":
            return "numa"
        raise MappingError(
            f'partition="{partition}" is unknown. It may be a number of equal parts, '
            'a list of compute units per part, or "numa".'
        )
    if not isinstance(partition, int | Sequence):
        raise wrong_type(
            "partition=",
            "a number of equal parts, or compute units per part",
            partition,
            'Write partition=2, partition=[2, 6] or partition="numa".',
        )
    counts: list[Any] = [partition] if isinstance(partition, int) else [*partition]
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(
                f"partition takes whole numbers, not {type(count).__name__}: {count!r}"
            )
    if not counts or min(counts) < 1:
        raise MappingError(
            f"partition={partition} makes no sense: a device has at least one part, "
            "and a part at least one compute unit."
        )
    return partition if isinstance(partition, int) else tuple(counts)


def _parse_overflow(overflow: str | None, name: MappingName) -> Overflow:
    if overflow is None:
        return "off"
    if not isinstance(overflow, str):
        raise wrong_type("overflow=", "a word", overflow, 'Write overflow="host".')
    for known in OVERFLOWS:
        if overflow.lower() == known and (known == "off" or name == "GPU"):
            return known
    if overflow.lower() in OVERFLOWS:
        raise ValueError(
            f'overflow="{overflow}" belongs to the mapping "GPU", and "{name}" was given. '
            'Use set_xpu_mapping("GPU", overflow="host"), or leave it out: under "AUTO" '
            "what has no room on a device is in the host's memory anyway."
        )
    raise ValueError(
        f'overflow="{overflow}" is unknown{_suggest(overflow, OVERFLOWS)} It may be '
        f"{' or '.join(OVERFLOWS)}."
    )


def _member(one: DeviceFilter) -> str:
    """Bare kinds are written as in "AUTO:GPU,CPU"."""
    return str(one).upper() if one == DeviceFilter(kind=one.kind) else str(one)


def _once(filters: Iterable[DeviceFilter]) -> tuple[DeviceFilter, ...]:
    return tuple(dict.fromkeys(filters))


def _listed(tail: str) -> str:
    return str([word.strip().lower() for word in tail.split(",")])


def _suggest(word: str, known: Sequence[str]) -> str:
    """``; did you mean "GPU"?``, or a full stop if no known word is near."""
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else "."


def _short_list(numbers: Sequence[int]) -> str:
    shown = [str(n) for n in numbers[:6]] + (["..."] if len(numbers) > 6 else [])
    return ", ".join(shown)
