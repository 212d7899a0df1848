"""torch.xpu is PyTorch's own layer, in the modules where PyTorch expects it."""

import ast
import importlib
import inspect
import pathlib
import sys

import pytest
import torch
from own_process import output

import xpurt
from xpurt.xpu import names


def test_all_public_names_are_there() -> None:
    assert len(torch.xpu.__all__) >= 63  # of 2.13
    assert [name for name in torch.xpu.__all__ if not hasattr(torch.xpu, name)] == []


@pytest.mark.parametrize(
    "name", ["_utils", "streams", "memory", "random", "graphs", "_gpu_trace"]
)
def test_the_submodules(name: str) -> None:
    module = importlib.import_module(f"torch.xpu.{name}")
    assert module.__name__ == f"torch.xpu.{name}"
    if hasattr(torch.xpu, name):
        assert getattr(torch.xpu, name) is module


def test_it_is_the_wheel_s_own_source() -> None:
    folder = pathlib.Path(torch.__file__).parent / "xpu"
    assert pathlib.Path(torch.xpu.__file__).parent == folder
    assert torch.xpu is sys.modules["torch.xpu"] is torch.get_device_module("xpu")
    assert torch.xpu.Stream.__module__ == "torch.xpu.streams"
    assert torch.xpu.Stream is sys.modules["torch.xpu.streams"].Stream


def test_every_name_that_the_source_takes_is_set() -> None:
    """Reads the wheel's source for ``torch._C._xpu_...`` and its kin."""
    folder = pathlib.Path(torch.__file__).parent / "xpu"
    text = "\n".join(path.read_text() for path in folder.glob("*.py"))
    words = {word.strip("\"'`.,:()[]") for word in text.replace(".", " ").split()}
    wanted = {
        word.split("(")[0]
        for word in words
        if word.startswith(("_xpu_", "_XPU", "_Xpu")) and word.isidentifier()
    }
    defined_there = {"_XPUAllocator"}
    assert len(wanted) > 20
    set_by_us = set(names.names(lambda: None))
    assert wanted - set_by_us - defined_there == set()
    assert all(hasattr(torch._C, name) for name in set_by_us)


def declared_in_stubs() -> dict[str, dict[str, list[str]]]:
    """The methods of the classes that `torch.xpu` is written over, with the names of
    their parameters, and functions as the methods of "": from the wheel's stubs."""
    stubs = pathlib.Path(torch.__file__).parent / "_C" / "__init__.pyi"
    found: dict[str, dict[str, list[str]]] = {"": {}}
    for node in ast.parse(stubs.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[""][node.name] = [each.arg for each in node.args.args]
        elif isinstance(node, ast.ClassDef):
            found[node.name] = {
                each.name: [argument.arg for argument in each.args.args][1:]
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            }
    return found


SET_BY_XPURT = names.names(lambda: None)
CLASSES = [name for name, value in SET_BY_XPURT.items() if isinstance(value, type)]
DECLARED = declared_in_stubs()


@pytest.mark.parametrize("name", sorted({*CLASSES} & {*DECLARED}))
def test_a_class_has_the_methods_and_arguments_of_the_stubs(name: str) -> None:
    """Which differ between versions of PyTorch."""
    ours = SET_BY_XPURT[name]
    for method, arguments in DECLARED[name].items():
        value = getattr(ours, method, None)
        assert value is not None, method
        if method in ("__new__", "__init__"):
            inspect.signature(value).bind_partial(**dict.fromkeys(arguments))
        elif inspect.isfunction(value):
            inspect.signature(value).bind_partial(*arguments)


def test_functions_take_the_arguments_of_the_stubs() -> None:
    written_in_python = {
        name: SET_BY_XPURT[name]
        for name in DECLARED[""]
        if inspect.isfunction(SET_BY_XPURT.get(name))
    }
    assert "_xpu_memorySnapshot" in written_in_python
    for name, ours in written_in_python.items():
        inspect.signature(ours).bind(*DECLARED[""][name])


def test_what_no_sycl_event_can_do_is_refused() -> None:
    """PyTorch 2.15 passes it on; it is False there by default."""
    event = SET_BY_XPURT["_XpuEventBase"]
    assert isinstance(event(interprocess=False), torch.Event)
    for call in (
        lambda: event(interprocess=True),
        lambda: event().ipc_handle(),
        lambda: event.from_ipc_handle("xpu", b""),
    ):
        with pytest.raises(RuntimeError, match="can't be shared with another process"):
            call()
    with pytest.raises(RuntimeError, match="no_split=True was asked of a MemPool"):
        SET_BY_XPURT["_XPUMemPool"](no_split=True)


def test_importing_touches_no_device() -> None:
    code = """
    import torch, xpurt
    import torch._dynamo
    def loaded():
        maps = open("/proc/self/maps").read()
        return any(d in maps for d in ("libintelocl", "libze_loader", "igdrcl"))
    print(torch.xpu.is_initialized(), loaded())
    {more}
    print(torch.xpu.is_initialized(), loaded())
    """
    # torch._dynamo queries the number of devices when its interfaces are requested.
    backward = "x = torch.ones(3, requires_grad=True); (2 * x).sum().backward()"
    none = f"{backward}; torch.manual_seed(1)"
    assert output(code.format(more=none)).split() == ["False"] * 4
    assert output(code.format(more="torch.xpu.current_device()")).split() == [
        *["False"] * 2,
        *["True"] * 2,
    ]


def test_dynamo_sees_the_layer() -> None:
    code = """
    import torch
    {order}
    interface = torch._dynamo.device_interface.get_interface_for_device("xpu")
    assert interface.Stream is torch.xpu.Stream
    assert interface.current_device is torch.xpu.current_device
    assert interface.is_available()
    assert interface.get_raw_stream(0) == torch.xpu.current_stream().sycl_queue
    print("seen")
    """
    early = "import xpurt; import torch._dynamo.device_interface"
    late = "import torch._dynamo.device_interface; import xpurt"
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert output(code.format(order=early), **off) == "seen"
    assert output(code.format(order=late), **off) == "seen"


def test_it_can_be_undone_and_done_again() -> None:
    code = """
    import torch
    stub, flag = torch.xpu, torch._C._has_xpu
    import xpurt.xpu
    layer = torch.xpu
    assert layer is not stub and layer.is_available()
    xpurt.xpu.install(xpurt.register_runtime)
    assert torch.xpu is layer
    xpurt.xpu.uninstall()
    assert torch.xpu is stub and torch._C._has_xpu is flag
    assert not torch.xpu.is_available()
    assert not hasattr(torch._C, "_xpu_init")
    import torch.xpu.streams
    assert torch.xpu.streams.Stream is stub.Stream
    xpurt.xpu.uninstall()
    xpurt.xpu.install(xpurt.register_runtime)
    assert torch.xpu is not stub
    torch.xpu.synchronize()
    print("well")
    """
    assert output(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "well"


def test_initialization_from_many_threads() -> None:
    code = """
    import threading, torch, xpurt
    barrier = threading.Barrier(8)
    seen = []
    def use():
        barrier.wait()
        seen.append((torch.xpu.current_device(), torch.xpu.current_stream().stream_id))
        torch.accelerator.synchronize()
    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(len(seen), set(seen))
    """
    assert output(code) == "8 {(0, 0)}"


def test_calls_before_the_first_use_are_kept() -> None:
    code = """
    import torch, xpurt
    torch.manual_seed(7)
    assert not torch.xpu.is_initialized()
    print(torch.xpu.initial_seed())
    """
    assert output(code) == "7"


@pytest.mark.usefixtures("xpu")
def test_the_layer_follows_the_mapping() -> None:
    with xpurt.xpu_mapping("CPU"):
        assert torch.xpu.device_count() == 1
        assert len(torch.xpu.default_generators) == 1
        name = torch.xpu.get_device_name()
        total = torch.xpu.get_device_properties(0).total_memory
        cpu = next(d for d in xpurt.physical_devices() if d.kind == "cpu")
        if cpu.compute_units % 2:
            pytest.skip(f"{cpu.compute_units} compute units have no two equal parts")
        units = torch.xpu.get_device_capability()["max_compute_units"]
        with xpurt.xpu_mapping("explicit", devices="cpu", partition=2):
            assert torch.xpu.device_count() == 2
            assert len(torch.xpu.default_generators) == 2
            assert torch.xpu.get_device_name(1) == name
            parts = [torch.xpu.get_device_properties(i) for i in range(2)]
            assert parts[0].total_memory <= total
            assert torch.xpu.get_device_capability(1)["max_compute_units"] == units // 2
        assert torch.xpu.device_count() == 1
        assert torch.xpu.get_device_capability()["max_compute_units"] == units
        with pytest.raises(RuntimeError, match='"CPU" has'):
            torch.xpu.get_device_properties(1)


@pytest.mark.skipif(
    torch.cuda._is_compiled(), reason="a CUDA build keeps its own versions"
)
def test_the_version_is_that_of_sycl() -> None:
    version = torch.version.xpu
    assert isinstance(version, str)
    assert len(version) == 8
    assert int(version) > 20250000
    code = """
    import torch, xpurt.xpu
    xpurt.xpu.uninstall()
    print(torch.version.xpu)
    """
    assert output(code) == "None"
