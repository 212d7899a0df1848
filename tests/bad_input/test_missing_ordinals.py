"""A device that the mapping does not have: every use of it raises with the reason."""

import copy
import io
import threading
from collections.abc import Callable, Iterator

import pytest
import torch

import xpurt
from xpurt.errors import MappingError


@pytest.fixture(autouse=True)
def under_cpu() -> Iterator[None]:
    with xpurt.xpu_mapping("CPU"):
        yield


def load_onto(device: str) -> object:
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    return torch.load(file, map_location=device)


def enter(context: torch.device | torch.xpu.device) -> object:
    with context:
        return torch.ones(2, device="xpu")


USES: dict[str, Callable[[], object]] = {
    "empty": lambda: torch.empty(2, device="xpu:1"),
    "rand": lambda: torch.rand(2, device="xpu:1"),
    "tensor": lambda: torch.tensor([1.0], device="xpu:1"),
    "storage": lambda: torch.UntypedStorage(8, device="xpu:1"),
    "to": lambda: torch.ones(2).to("xpu:1"),
    "to from xpu": lambda: torch.ones(2, device="xpu").to("xpu:1"),
    "xpu": lambda: torch.ones(2).xpu(1),
    "like": lambda: torch.empty_like(torch.ones(2), device="xpu:1"),
    "module": lambda: torch.nn.Linear(2, 2).to("xpu:1"),
    "share": lambda: xpurt.share(torch.ones(2), "xpu:1"),
    "set_device": lambda: torch.xpu.set_device(1),
    "accelerator": lambda: torch.accelerator.set_device_index(1),
    "xpu.device": lambda: enter(torch.xpu.device(1)),
    "Generator": lambda: torch.Generator("xpu:1"),
    "get_rng_state": lambda: torch.xpu.get_rng_state(1),
    "set_rng_state": lambda: torch.xpu.set_rng_state(torch.xpu.get_rng_state(), 1),
    "Stream": lambda: torch.xpu.Stream(device=1),
    "torch.Stream": lambda: torch.Stream("xpu:1"),
    "current_stream": lambda: torch.xpu.current_stream(1),
    "synchronize": lambda: torch.xpu.synchronize(1),
    "properties": lambda: torch.xpu.get_device_properties(1),
    "name": lambda: torch.xpu.get_device_name(1),
    "capability": lambda: torch.xpu.get_device_capability(1),
    "memory_allocated": lambda: torch.xpu.memory_allocated(1),
    "mem_get_info": lambda: torch.xpu.mem_get_info(1),
    "fraction": lambda: torch.xpu.set_per_process_memory_fraction(0.5, 1),
    "peer": lambda: torch.xpu.can_device_access_peer(0, 1),
}


@pytest.mark.parametrize("use", USES.values(), ids=list(USES))
def test_a_second_ordinal_under_cpu(use: Callable[[], object]) -> None:
    with pytest.raises(MappingError) as caught:
        use()
    assert str(caught.value) == (
        'xpu:1 is out of range: mapping "CPU" has one device, xpu:0'
    )
    assert torch.xpu.current_device() == 0
    assert torch.ones(2, device="xpu").get_device() == 0


def test_a_device_as_context() -> None:
    with (
        pytest.raises(MappingError, match="xpu:1 is out of range"),
        torch.device("xpu:1"),
    ):
        torch.ones(2)
    assert torch.ones(2).device.type == "cpu"


def test_a_default_device() -> None:
    torch.set_default_device("xpu:1")
    try:
        with pytest.raises(MappingError, match="xpu:1 is out of range"):
            torch.ones(2)
    finally:
        torch.set_default_device(None)


def test_torch_load_has_words_of_its_own() -> None:
    with pytest.raises(RuntimeError, match=r"device 1 but.*device_count.* is 1"):
        load_onto("xpu:1")


def test_numbers_that_pytorch_keeps_in_a_byte() -> None:
    for index in (100, 200):
        with pytest.raises((MappingError, RuntimeError), match=f"{index}"):
            torch.empty(2, device=f"xpu:{index}")


def test_an_autograd_thread_carries_the_error_home() -> None:
    class Strays(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x.clone()

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            return grad.to("xpu:1")

    x = torch.ones(2, device="xpu", requires_grad=True)
    with pytest.raises(MappingError, match="xpu:1 is out of range"):
        Strays.apply(x).sum().backward()


def halves() -> dict[str, object]:
    cpu = next(d for d in xpurt.physical_devices() if d.kind == "cpu")
    if cpu.compute_units % 2:
        pytest.skip(f"{cpu.compute_units} compute units have no two equal parts")
    return {"devices": "cpu", "partition": 2}


def test_the_count_is_told_where_there_are_two() -> None:
    with xpurt.xpu_mapping("explicit", **halves()):  # type: ignore[arg-type]
        with pytest.raises(MappingError) as caught:
            torch.empty(1, device="xpu:2")
        assert str(caught.value) == (
            'xpu:2 is out of range: mapping "explicit" has 2 devices, xpu:0 to xpu:1'
        )


def test_the_current_device_goes_with_its_mapping() -> None:
    wait, go = threading.Event(), threading.Event()
    found: list[object] = []

    def other() -> None:
        torch.xpu.set_device(1)
        wait.set()
        go.wait(30)
        found.append(torch.xpu.current_device())
        found.append(torch.ones(1, device="xpu").get_device())

    thread = threading.Thread(target=other)
    with xpurt.xpu_mapping("explicit", **halves()):  # type: ignore[arg-type]
        thread.start()
        assert wait.wait(30)
        torch.xpu.set_device(1)
    go.set()
    thread.join(30)
    assert torch.xpu.current_device() == 0
    assert torch.ones(1, device="xpu").get_device() == 0
    assert found == [0, 0]


def mix_two_ordinals() -> None:
    here, there = (torch.ones(3, 3, device=f"xpu:{i}") for i in range(2))
    untouched = there.tolist()
    ops: list[Callable[[], object]] = [
        lambda: here + there,
        lambda: there + here,
        lambda: here.add_(there),
        lambda: here @ there,
        lambda: torch.cat([here, there]),
        lambda: torch.where(here > 0, here, there),
        lambda: torch.exp(here, out=there),
        lambda: torch.sum(here, 0, out=there[0]),
        lambda: torch.mm(here, here, out=there),
        lambda: torch.nn.functional.linear(here, there),
        lambda: here + there[0, 0],
        lambda: here[torch.tensor([0], device="xpu:1")],
    ]
    for policy in ("auto", "sycl", "native"):
        with xpurt.kernel_policy(policy):
            for op in ops:
                with pytest.raises(
                    RuntimeError, match=r"same device.*xpu:[01].*Move it: \.to"
                ):
                    op()
    assert there.tolist() == untouched
    # Copies go from one to the other.
    assert here.copy_(there).tolist() == untouched
    assert copy.deepcopy(there).get_device() == 1


def test_tensors_of_two_ordinals() -> None:
    with xpurt.xpu_mapping("explicit", **halves()):  # type: ignore[arg-type]
        mix_two_ordinals()
