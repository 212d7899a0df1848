"""Storages whose memory lies inside that of another storage have its copies."""

from collections.abc import Callable

import pytest
import torch
import torch.utils.dlpack

import xpurt
from auto.choices import Choices
from xpurt import _C

ELEMENTS, SKIPPED = 40, 7
BYTES = 4 * SKIPPED

Tensor = torch.Tensor

pytestmark = pytest.mark.usefixtures("own_stream")


def over(storage: torch.UntypedStorage) -> Tensor:
    """A float tensor over the whole storage."""
    return torch.empty(0, device=storage.device).set_(
        torch.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True)
    )


def of_numpy(x: Tensor) -> Tensor:
    return xpurt.share(torch.from_numpy(xpurt.share(x).numpy()[SKIPPED:]), "xpu")


def of_an_address(x: Tensor) -> Tensor:
    made = torch._C._construct_storage_from_data_pointer(
        x.data_ptr() + BYTES, x.device, x.nbytes - BYTES
    )
    return over(made)


# Each makes a tensor over the bytes of x[SKIPPED:].
WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "slice": lambda x: over(x.untyped_storage()[BYTES:]),
    "slice of a slice": lambda x: over(x.untyped_storage()[8:][BYTES - 8 :]),
    "dlpack": lambda x: torch.from_dlpack(x[SKIPPED:]),
    "capsule": lambda x: torch.from_dlpack(torch.utils.dlpack.to_dlpack(x[SKIPPED:])),
    "usm": lambda x: xpurt.from_usm(x[SKIPPED:]),
    "shared twice": lambda x: xpurt.share(
        over(xpurt.share(x).untyped_storage()[BYTES:]), "xpu"
    ),
    "numpy": of_numpy,
    "address": of_an_address,
}


def natively(write: Callable[[], object]) -> None:
    with xpurt.kernel_policy("native"):
        write()


# Each adds 1 to the elements, and is given a function that chooses the device.
WRITES: dict[str, Callable[[Tensor, Choices], object]] = {
    "gpu": lambda t, choices: (choices.gpu(), t.add_(1)),
    "cpu": lambda t, choices: (choices.cpu(), t.add_(1)),
    "host": lambda t, choices: natively(lambda: t.add_(1)),
    "part on gpu": lambda t, choices: (
        choices.gpu(),
        t[:3].add_(1),
        choices.cpu(),
        t[3:].add_(1),
    ),
    "copy": lambda t, choices: t.copy_(t.cpu() + 1),
    "copy between": lambda t, choices: (choices.gpu(), t.copy_(t + 1)),
    "out": lambda t, choices: (choices.gpu(), torch.add(t, 1, out=t)),
    "strided on host": lambda t, choices: natively(
        lambda: (t[::2].add_(1), t[1::2].add_(1))
    ),
}


def bytes_as_floats(storage: torch.UntypedStorage) -> list[float]:
    return over(storage.cpu()).tolist()


def on(kind: str, choices: Choices, read: Callable[[], Tensor]) -> list[float]:
    choices.only(kind)
    return read().cpu().tolist()


READS: dict[str, Callable[[Tensor, Choices], list[float]]] = {
    "cpu": lambda t, choices: t.cpu().tolist(),
    "tolist": lambda t, choices: t.tolist(),
    "storage": lambda t, choices: bytes_as_floats(t.untyped_storage()),
    "kernel on gpu": lambda t, choices: on("gpu", choices, lambda: t * 1),
    "kernel on cpu": lambda t, choices: on("cpu", choices, lambda: t * 1),
    "clone": lambda t, choices: on("gpu", choices, t.clone),
    "items": lambda t, choices: [each.item() for each in t],
    "into a CPU tensor": lambda t, choices: torch.zeros(len(t)).copy_(t).tolist(),
    "host kernel": lambda t, choices: torch.flip(torch.flip(t, [0]), [0]).tolist(),
    "share": lambda t, choices: xpurt.share(t).tolist(),
    "dlpack": lambda t, choices: torch.from_dlpack(t).tolist(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("way", WAYS)
def test_both_have_the_same_bytes(
    choices: Choices, way: str, write: str, read: str
) -> None:
    x = torch.arange(float(ELEMENTS)).to("xpu")
    expected = torch.arange(float(ELEMENTS))
    for valid_on in ("gpu", "cpu"):
        choices.only(valid_on)
        x.mul_(2)
        expected.mul_(2)
        inside = WAYS[way](x)
        assert inside.device == x.device
        WRITES[write](x, choices)
        expected.add_(1)
        assert READS[read](inside, choices) == expected[SKIPPED:].tolist()
        WRITES[write](inside, choices)
        expected[SKIPPED:].add_(1)
        assert READS[read](x, choices) == expected.tolist()


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_copy_on_write_clones_share_copies_until_a_write(
    choices: Choices, kind: str
) -> None:
    x = torch.zeros(ELEMENTS, device="xpu")
    torch.xpu.synchronize()
    choices.only(kind)
    x.add_(1)
    clone = x._lazy_clone()
    assert clone.tolist() == [1.0] * ELEMENTS
    choices.gpu()
    assert (clone * 2).tolist() == [2.0] * ELEMENTS
    choices.only(kind)
    x.add_(1)
    assert clone.tolist() == [1.0] * ELEMENTS
    clone.add_(5)
    assert (x.tolist(), clone.tolist()) == ([2.0] * ELEMENTS, [6.0] * ELEMENTS)


@pytest.mark.parametrize("end", [BYTES, 4 * ELEMENTS])
def test_a_storage_that_begins_at_the_same_address(choices: Choices, end: int) -> None:
    x = torch.zeros(ELEMENTS, device="xpu")
    inside = over(x.untyped_storage()[:end])
    choices.gpu()
    inside.add_(1)  # this one is in the table before the storage that owns the memory
    x.add_(1)
    expected = [2.0] * (end // 4) + [1.0] * (ELEMENTS - end // 4)
    assert x.tolist() == expected
    assert inside.tolist() == [2.0] * (end // 4)


def test_a_storage_inside_another_may_leave_home(choices: Choices) -> None:
    x = torch.zeros(ELEMENTS, device="xpu")
    inside = over(x.untyped_storage()[BYTES:])
    torch.xpu.synchronize()
    choices.gpu()
    inside.add_(1)
    assert {device.split(":")[1] for device in xpurt.where(x)} == {"gpu"}
    assert xpurt.where(inside) == xpurt.where(x)
    assert x.tolist() == [0.0] * SKIPPED + [1.0] * (ELEMENTS - SKIPPED)


@pytest.mark.parametrize("way", ["dlpack", "usm", "numpy", "address"])
def test_an_address_of_a_part_keeps_the_whole_at_home(
    choices: Choices, way: str
) -> None:
    x = torch.zeros(ELEMENTS, device="xpu")
    part = over(x.untyped_storage()[8:])
    choices.gpu()
    x.add_(1)
    WAYS[way](part)
    choices.gpu()
    x.add_(1)
    assert {device.split(":")[1] for device in xpurt.where(x)} == {"cpu"}


def test_the_table_forgets_a_storage_inside_another(choices: Choices) -> None:
    """The entry is that of the allocation, and is dropped when this one is freed."""
    position = choices.kinds.index("gpu")
    before = _C.testing.replica_bytes(0, position)
    x = torch.zeros(ELEMENTS, device="xpu")
    inside = over(x.untyped_storage()[BYTES:])
    choices.gpu()
    inside.add_(1)
    torch.xpu.synchronize()
    assert _C.testing.replica_bytes(0, position) > before
    del x
    assert inside.tolist() == [1.0] * (ELEMENTS - SKIPPED)
    del inside
    assert _C.testing.replica_bytes(0, position) == before
