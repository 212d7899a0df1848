"""Text to request: valid texts, and the errors for others."""

import pytest

from xpurt.errors import MappingError
from xpurt.mapping.spec import (
    DeviceFilter,
    MappingSpec,
    parse,
    parse_filter,
    parts_in_compute_units,
)

GPU = DeviceFilter(kind="gpu")
CPU = DeviceFilter(kind="cpu")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("AUTO", MappingSpec("AUTO")),
        ("auto", MappingSpec("AUTO")),
        ("Explicit", MappingSpec("explicit")),
        (" cpu ", MappingSpec("CPU")),
        ("gPu", MappingSpec("GPU")),
        ("AUTO:GPU,CPU", MappingSpec("AUTO", include=(GPU, CPU))),
        ("auto: cpu , gpu", MappingSpec("AUTO", include=(CPU, GPU))),
        ("AUTO:GPU,gpu", MappingSpec("AUTO", include=(GPU,))),
        ("AUTO:-GPU", MappingSpec("AUTO", exclude=(GPU,))),
        (
            "AUTO:GPU,CPU,-opencl:gpu:1",
            MappingSpec(
                "AUTO", include=(GPU, CPU), exclude=(DeviceFilter("opencl", "gpu", 1),)
            ),
        ),
    ],
)
def test_mapping_names(text: str, spec: MappingSpec) -> None:
    assert parse(text) == spec


@pytest.mark.parametrize(
    "text", ["AUTO", "explicit", "CPU", "GPU", "AUTO:GPU,CPU", "AUTO:-gpu:1,-CPU"]
)
def test_the_text_of_a_spec_is_the_text_that_makes_it(text: str) -> None:
    assert parse(text).mapping == text
    assert parse(parse(text).mapping) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GPUS", 'did you mean "GPU"'),
        ("explicti", 'did you mean "explicit"'),
        ("fastest", "There are explicit, CPU, GPU, AUTO"),
        ("", 'mapping "" is unknown'),
        ("AUTO:", "empty place"),
        ("AUTO:GPU,,CPU", "empty place"),
        ("AUTO:-", "empty place"),
        ("AUTO:GPUU", 'mapping "AUTO:GPUU".*did you mean "gpu"'),
        ("AUTO:NPU", "kinds: gpu, accelerator, cpu"),
        ("CPU:0", "only AUTO takes a list"),
        ("explicit:gpu,cpu", r"devices=\['gpu', 'cpu'\]"),
    ],
)
def test_unknown_mappings(text: str, message: str) -> None:
    with pytest.raises(MappingError, match=message):
        parse(text)


@pytest.mark.parametrize("overflow", ["host", "HOST"])
def test_overflow(overflow: str) -> None:
    assert parse("GPU", overflow=overflow) == MappingSpec("GPU", overflow="host")
    assert str(parse("GPU", overflow=overflow)) == '"GPU", overflow="host"'
    assert parse("AUTO", overflow="off") == parse("AUTO")


@pytest.mark.parametrize("mapping", ["CPU", "AUTO", "AUTO:GPU", "explicit"])
def test_overflow_belongs_to_the_mapping_gpu(mapping: str) -> None:
    with pytest.raises(ValueError, match='belongs to the mapping "GPU"'):
        parse(mapping, overflow="host")


def test_an_unknown_overflow() -> None:
    with pytest.raises(ValueError, match=r'did you mean "host".*off or host'):
        parse("GPU", overflow="hosts")
    with pytest.raises(TypeError, match="overflow= wants a word"):
        parse("GPU", overflow=True)  # type: ignore[arg-type]


def test_a_mapping_is_a_string() -> None:
    with pytest.raises(TypeError, match="not NoneType"):
        parse(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("gpu", GPU),
        ("CPU", CPU),
        ("accelerator:1", DeviceFilter(kind="accelerator", number=1)),
        ("opencl:cpu:0", DeviceFilter("opencl", "cpu", 0)),
        ("Level_Zero:GPU:1", DeviceFilter("level_zero", "gpu", 1)),
        ("opencl", DeviceFilter("opencl")),
        ("opencl:2", DeviceFilter("opencl", None, 2)),
        ("1", DeviceFilter(number=1)),
    ],
)
def test_filter_strings(text: str, one: DeviceFilter) -> None:
    assert parse_filter(text) == one
    assert parse_filter(str(one)) == one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '"" is not understood'),
        ("opencl:", '"" is not understood'),
        ("cpu:opencl", '"opencl" is not understood'),
        ("0:cpu", '"cpu" is not understood'),
        ("cpu:-1", '"-1" is not understood'),
        ("cpu:0:0", '"0" is not understood'),
        ("cpu:²", "is not understood"),
        ("opencl:cpuu:0", 'did you mean "cpu"'),
        ("levelzero:gpu", 'did you mean "level_zero"'),
    ],
)
def test_unknown_filter_strings(text: str, message: str) -> None:
    with pytest.raises(MappingError, match=message):
        parse_filter(text)


def test_devices_are_one_string_or_several() -> None:
    assert parse(devices="gpu").devices == (GPU,)
    assert parse(devices=["cpu", "gpu", "CPU"]).devices == (CPU, GPU)
    assert parse(devices=iter(["cpu"])).devices == (CPU,)
    with pytest.raises(MappingError, match="leaves no device"):
        parse(devices=[])
    with pytest.raises(TypeError, match="not int: 0"):
        parse(devices=[0])  # type: ignore[list-item]


def test_partitions() -> None:
    assert parse(partition=4).partition == 4
    assert parse(partition=[1, 3]).partition == (1, 3)
    assert parse(partition="NUMA").partition == "numa"
    assert parse().partition is None


@pytest.mark.parametrize("partition", [0, -1, [], [2, 0], [-1]])
def test_impossible_partitions(partition: int | list[int]) -> None:
    with pytest.raises(MappingError, match="at least one"):
        parse(partition=partition)


def test_unknown_partitions() -> None:
    with pytest.raises(MappingError, match='or "numa"'):
        parse(partition="L3_cache")
    for partition in (True, 1.5, [1.0], [True]):
        with pytest.raises(TypeError):
            parse(partition=partition)  # type: ignore[arg-type]


def test_parts_are_counted_where_sycl_counts_their_units() -> None:
    assert parts_in_compute_units(2, 8, "it") == (4, 4)
    assert parts_in_compute_units(8, 8, "it") == (1,) * 8
    assert parts_in_compute_units(1, 8, "it") == (8,)
    assert parts_in_compute_units((1, 3), 8, "it") == (1, 3)


def test_parts_divide_the_device() -> None:
    with pytest.raises(MappingError, match=r"8 compute units of it.* 2, 4, 8 equal"):
        parts_in_compute_units(3, 8, "it")
    with pytest.raises(MappingError, match="partition=16 does not divide"):
        parts_in_compute_units(16, 8, "it")
    with pytest.raises(MappingError, match="wants 9 compute units; it has 8"):
        parts_in_compute_units((4, 5), 8, "it")


def test_a_spec_is_shown_as_it_is_set() -> None:
    spec = parse("explicit", ["opencl:cpu:0"], [1, 1])
    assert str(spec) == "\"explicit\", devices=['opencl:cpu:0'], partition=[1, 1]"
