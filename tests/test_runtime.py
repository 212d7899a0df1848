"""register_runtime, on the real PyTorch with modules that are made up."""

import importlib
import sys
from types import ModuleType

import pytest
import torch

from xpurt.accelerator_runtime import faults_of
from xpurt.runtime import (
    REQUIRED,
    AcceleratorRuntime,
    add_to_torch,
    register_runtime,
)


def made_up(name: str = "my_runtime", *, without: tuple[str, ...] = ()) -> ModuleType:
    """A module with the functions of a runtime; current_device tells its name."""
    module = ModuleType(name)
    for function in REQUIRED:
        if function not in without:
            setattr(module, function, lambda *_: name)
    return module


def everything_at(name: str) -> dict[str, object]:
    """torch.<name> and all that is imported below it."""
    root = f"torch.{name}"
    found: dict[str, object] = {
        path: module
        for path, module in sys.modules.items()
        if path == root or path.startswith(f"{root}.")
    }
    if name in vars(torch):
        found["attribute"] = vars(torch)[name]
    return found


@pytest.mark.parametrize("name", ["hpu", "ipu", "maia", "xpu", "mtia"])
def test_pytorch_finds_the_module_and_loses_it_again(name: str) -> None:
    before = everything_at(name)
    module = made_up()
    handle = register_runtime(name, module)
    try:
        assert getattr(torch, name) is module
        assert torch.get_device_module(name) is module
        assert torch.get_device_module(torch.device(name, 0)) is module
        assert importlib.import_module(f"torch.{name}") is module
        assert torch.get_device_module(name).current_device() == "my_runtime"
    finally:
        handle.remove()
    assert everything_at(name) == before
    handle.remove()
    assert everything_at(name) == before


def test_it_is_a_context_manager() -> None:
    def fail() -> None:
        assert torch.hpu is not None
        raise KeyError

    with pytest.raises(KeyError), register_runtime("hpu", made_up()):
        fail()
    assert not hasattr(torch, "hpu")
    assert "torch.hpu" not in sys.modules


def test_submodules_come_and_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.xpu.streams  # what the wheel has there

    before = everything_at("xpu")
    assert "torch.xpu.streams" in before
    module = made_up()
    module.streams = ModuleType("my_runtime.streams")
    monkeypatch.setitem(sys.modules, "my_runtime", module)
    monkeypatch.setitem(sys.modules, "my_runtime.streams", module.streams)
    with register_runtime("xpu", module):
        assert importlib.import_module("torch.xpu.streams") is module.streams
        # Parts of the runtime from before do not shine through.
        assert "torch.xpu.random" not in sys.modules
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torch.xpu.random")
    assert everything_at("xpu") == before
    assert torch.xpu.streams is before["torch.xpu.streams"]


def test_a_module_under_torchs_own_name_keeps_its_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = made_up("torch.hpu")
    module.random = ModuleType("torch.hpu.random")
    monkeypatch.setitem(sys.modules, "torch.hpu", module)
    monkeypatch.setitem(sys.modules, "torch.hpu.random", module.random)
    monkeypatch.setitem(sys.modules, "torch.hpu.stale", ModuleType("torch.hpu.stale"))
    before = everything_at("hpu")
    with register_runtime("hpu", module):
        assert sys.modules["torch.hpu.random"] is module.random
        assert "torch.hpu.stale" not in sys.modules
    assert everything_at("hpu") == before


def test_registrations_nest_and_end_in_any_order() -> None:
    first, second = made_up("first"), made_up("second")
    one = register_runtime("hpu", first)
    two = register_runtime("hpu", second)
    assert torch.hpu is second
    one.remove()
    assert torch.hpu is second
    two.remove()
    assert not hasattr(torch, "hpu")

    with register_runtime("hpu", first):
        with register_runtime("hpu", second):
            assert torch.hpu is second
        assert torch.hpu is first
    assert not hasattr(torch, "hpu")


def test_what_is_missing_is_listed_and_nothing_is_changed() -> None:
    before = everything_at("xpu")
    module = made_up(without=("stream", "_lazy_init"))
    with pytest.raises(TypeError) as caught:
        register_runtime("xpu", module)
    assert str(caught.value) == (
        "my_runtime cannot be the runtime torch.xpu, as PyTorch calls functions that it "
        "does not have:\n"
        "- stream is missing: define stream(stream) to return a context manager in which "
        "`stream` is current; None changes nothing\n"
        "- _lazy_init is missing: define _lazy_init() to start the device at its first "
        "use, or do nothing"
    )
    assert everything_at("xpu") == before


@pytest.mark.parametrize("function", REQUIRED)
def test_each_function_is_asked_for_and_documented(function: str) -> None:
    with pytest.raises(TypeError, match=f"- {function} is missing: define {function}"):
        register_runtime("hpu", made_up(without=(function,)))
    assert f"``{function}``" in str(register_runtime.__doc__)


def test_an_attribute_that_is_no_function_is_missing() -> None:
    module = made_up()
    module.device_count = 1
    with pytest.raises(TypeError, match="device_count is 1, which can't be called"):
        register_runtime("hpu", module)
    with pytest.raises(TypeError, match="None cannot be the runtime"):
        register_runtime("hpu", None)


def test_a_function_that_cannot_take_the_arguments_is_named() -> None:
    module = made_up()
    module.set_device = lambda: None
    with pytest.raises(TypeError) as caught:
        register_runtime("hpu", module)
    assert (
        "- set_device() can't be called as set_device(device), too many positional "
        "arguments: define set_device(device) to make it this thread's device"
    ) in str(caught.value)


def test_the_protocol_is_that_of_typing() -> None:
    assert getattr(AcceleratorRuntime, "_is_protocol", False)
    # The runtime of xpu, and that of a prototype, are such.
    assert faults_of(torch.xpu) == []
    assert faults_of(torch.cuda) == []


def test_torch_gets_the_function_by_a_call_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not hasattr(torch, "register_runtime")
    add_to_torch()
    try:
        add_to_torch()
        assert torch.register_runtime is register_runtime
        monkeypatch.setattr(torch, "register_runtime", print)
        with pytest.raises(RuntimeError, match=r"Call xpurt\.register_runtime"):
            add_to_torch()
    finally:
        monkeypatch.undo()
        delattr(torch, "register_runtime")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("xpuu", 'did you mean "xpu"'),
        ("XPU", 'did you mean "xpu"'),
        ("xpu:0", "no device type"),
        ("gpu", "It knows cpu, cuda, ipu, xpu"),
        ("", "no device type"),
        ("nn", "no device type"),
    ],
)
def test_an_unknown_device_type_lists_the_known(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register_runtime(name, made_up())


def test_a_device_type_is_a_string() -> None:
    with pytest.raises(TypeError, match="not device"):
        register_runtime(torch.device("xpu"), made_up())  # type: ignore[arg-type]


def test_the_known_device_types_are_those_of_this_pytorch() -> None:
    from xpurt.runtime import _DEVICE_TYPES

    with pytest.raises(RuntimeError) as caught:
        torch.device("unheard")
    listed = str(caught.value).partition("one of ")[2].partition(" device type")[0]
    assert sorted(listed.split(", ")) == sorted(_DEVICE_TYPES)
