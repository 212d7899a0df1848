"""DLPack, and the array interface of SYCL's Python packages. Nothing is copied."""

import gc
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from own_process import output

import xpurt
from xpurt import _C

ONE_API = 14  # DLPack's kDLOneAPI


@pytest.fixture(params=["CPU", "GPU", "AUTO"])
def mapping(request: pytest.FixtureRequest) -> Iterator[str]:
    gc.collect()
    if request.param == "GPU" and not any(
        d.kind == "gpu" for d in xpurt.physical_devices()
    ):
        pytest.skip("needs the virtual GPU")
    with xpurt.xpu_mapping(request.param):
        yield request.param
        gc.collect()


def live() -> tuple[int, int]:
    gc.collect()
    return _C.live_memory()


def test_dlpack_gives_the_same_memory(mapping: str) -> None:
    before = live()
    x = torch.arange(12.0, device="xpu").reshape(3, 4)
    assert x.__dlpack_device__() == (ONE_API, 0)
    y = torch.from_dlpack(x[1:])
    assert y.device == x.device
    assert y.data_ptr() == x[1:].data_ptr()
    y.fill_(7)
    assert x.cpu().sum().item() == 6 + 8 * 7
    del x
    assert y.cpu().unique().tolist() == [7.0]
    del y
    assert live() == before


def test_a_capsule_is_consumed_as_an_xpu_tensor(mapping: str) -> None:
    x = torch.arange(5, device="xpu")
    for capsule in (
        x.__dlpack__(),
        x.__dlpack__(max_version=(1, 0)),
        torch.utils.dlpack.to_dlpack(x),
    ):
        y = torch.utils.dlpack.from_dlpack(capsule)
        assert y.device == x.device
        assert y.data_ptr() == x.data_ptr()
        assert y.tolist() == [0, 1, 2, 3, 4]


def test_dlpack_of_nothing(mapping: str) -> None:
    for x in (
        torch.empty(0, 3, device="xpu", dtype=torch.int16),
        torch.ones(4, 3, device="xpu")[4:],
        torch.ones(4, 0, 2, device="xpu").transpose(0, 2),
    ):
        for y in (
            torch.from_dlpack(x),
            torch.from_dlpack(x, copy=True),
            torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)),
            torch.from_dlpack(x.__dlpack__(max_version=(1, 0))),
        ):
            assert y.device == x.device
            assert y.dtype == x.dtype
            assert y.shape == x.shape
        assert torch.from_dlpack(x, device="cpu").device.type == "cpu"
    with pytest.raises(RuntimeError, match="capsule"):
        torch._C._from_dlpack(object())


def test_shared_bytes_go_through_dlpack_too(mapping: str) -> None:
    if mapping == "GPU":
        pytest.skip("a GPU and the host share nothing")
    cpu = torch.arange(6.0)
    x = torch.from_dlpack(xpurt.share(cpu)[2:])
    assert x.device.type == "xpu"
    assert x.data_ptr() == cpu[2:].data_ptr()
    with np.errstate(all="raise"):
        array = np.from_dlpack(xpurt.share(x))
    array[0] = 9
    assert x.tolist() == [9, 3, 4, 5]
    del x


def test_the_interface_is_for_xpu_tensors(mapping: str) -> None:
    assert not hasattr(torch.zeros(1), "__sycl_usm_array_interface__")
    x = torch.zeros(3, 2, device="xpu").t()
    found = x.__sycl_usm_array_interface__
    assert found["data"] == (x.data_ptr(), False)
    assert (found["shape"], found["strides"]) == ((2, 3), (1, 2))
    assert found["typestr"] == "<f4"
    half = torch.zeros(1, dtype=torch.bfloat16, device="xpu")
    assert not hasattr(half, "__sycl_usm_array_interface__")


def test_the_interface_can_be_taken_away() -> None:
    from xpurt.sharing.share import install_usm_interface

    undo = install_usm_interface()
    undo()
    try:
        assert "__sycl_usm_array_interface__" not in vars(torch.Tensor)
    finally:
        install_usm_interface()


def test_dpctl_takes_a_tensor(mapping: str) -> None:
    memory = pytest.importorskip("dpctl.memory")
    x = torch.arange(4, dtype=torch.int32, device="xpu")
    taken = memory.as_usm_memory(x)
    assert taken._pointer == x.data_ptr()
    assert taken.sycl_context == taken.sycl_queue.sycl_context
    host = np.empty(4, np.int32)
    taken.copy_to_host(host.view("u1"))
    assert host.tolist() == [0, 1, 2, 3]
    taken.copy_from_host(np.array([5, 6, 7, 8], np.int32).view("u1"))
    assert x.tolist() == [5, 6, 7, 8]


def test_memory_of_dpctl_as_a_tensor(mapping: str) -> None:
    memory = pytest.importorskip("dpctl.memory")
    import xpurt.streams

    before = live()
    queue = xpurt.streams.sycl_queue()
    owner = memory.MemoryUSMDevice(40, queue=queue)
    owner.copy_from_host(np.arange(40, dtype="u1"))
    x = xpurt.from_usm(owner)
    assert (x.dtype, x.shape, x.device.type) == (torch.uint8, (40,), "xpu")
    assert x.data_ptr() == owner._pointer
    assert live() == (before[0] + 1, before[1] + 40)
    del owner
    assert x.tolist() == list(range(40))
    x.add_(1)
    assert x.cpu()[:3].tolist() == [1, 2, 3]
    del x
    assert live() == before


class ArrayOfOthers:
    """The protocols of an array of dpnp: DLPack's methods and SYCL's interface."""

    def __init__(self, values: list[float], queue: object) -> None:
        import dpctl.memory

        self.memory = dpctl.memory.MemoryUSMShared(4 * len(values), queue=queue)
        self.memory.copy_from_host(np.array(values, np.float32).view("u1"))
        self.__sycl_usm_array_interface__ = {
            **self.memory.__sycl_usm_array_interface__,
            "shape": (len(values),),
            "strides": None,
            "typestr": "|f4",  # as dpnp writes it
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return ONE_API, 0

    def __dlpack__(self, **options: object) -> object:
        raise AssertionError("a capsule names no queue to wait for")


def test_from_dlpack_takes_arrays_of_other_packages(mapping: str) -> None:
    pytest.importorskip("dpctl.memory")
    import xpurt.streams

    array = ArrayOfOthers([1, 2, 3], xpurt.streams.sycl_queue())
    x = torch.from_dlpack(array)
    assert (x.device, x.dtype) == (torch.device("xpu", 0), torch.float32)
    assert x.data_ptr() == array.memory._pointer
    assert torch.utils.dlpack.from_dlpack(array, copy=False).data_ptr() == x.data_ptr()
    copied = torch.from_dlpack(array, copy=True)
    x.mul_(2)
    assert x.tolist() == [2, 4, 6]
    assert copied.tolist() == [1, 2, 3]
    assert torch.from_dlpack(array, device="cpu").tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="copy=False forbids"):
        torch.from_dlpack(array, device="cpu", copy=False)
    del x, copied, array


def test_an_array_of_dpnp() -> None:
    pytest.importorskip("dpnp")
    code = """
    import dpnp, torch, xpurt
    torch.xpu.init()
    x = torch.from_dlpack(dpnp.arange(5, dtype="float32") * 2)
    print(x.device, x.tolist())
    print(dpnp.asnumpy(dpnp.from_dlpack(x + 1)).tolist())
    """
    # Without the virtual GPU, beside which dpnp's own kernels crash.
    assert output(code, XPURT_VIRTUAL_GPU="").splitlines() == [
        "xpu:0 [0.0, 2.0, 4.0, 6.0, 8.0]",
        "[1.0, 3.0, 5.0, 7.0, 9.0]",
    ]


def test_a_tensor_there_and_back(mapping: str) -> None:
    x = torch.arange(12.0, device="xpu").reshape(3, 4)[:, 1:]
    y = xpurt.from_usm(x)
    assert y.data_ptr() == x.data_ptr()
    assert y.stride() == x.stride()
    y.mul_(2)
    assert x.cpu().tolist() == [[2, 4, 6], [10, 12, 14], [18, 20, 22]]


def test_memory_of_another_context(mapping: str) -> None:
    dpctl = pytest.importorskip("dpctl")
    memory = pytest.importorskip("dpctl.memory")
    device = dpctl.SyclDevice("gpu" if mapping == "GPU" else "cpu")
    # A list makes a context of its own; a device alone gives its platform's.
    other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    foreign = memory.MemoryUSMDevice(8, queue=other)
    with pytest.raises(ValueError, match="is not USM of a device behind an xpu"):
        xpurt.from_usm(foreign)


def test_an_array_that_reaches_behind_its_memory(mapping: str) -> None:
    memory = pytest.importorskip("dpctl.memory")
    import xpurt.streams

    owner = memory.MemoryUSMDevice(4096, queue=xpurt.streams.sycl_queue())
    tensor = torch.zeros(1000, device="xpu")
    for whole, too_long in ((owner, 4097), (tensor, 1025)):
        found = whole.__sycl_usm_array_interface__
        odd = SimpleNamespace(__sycl_usm_array_interface__=dict(found))
        xpurt.from_usm(odd)
        for wrong in (
            {"shape": (too_long,), "strides": None},
            {"shape": (2,), "strides": (too_long - 1,)},
            {"offset": 200},
        ):
            odd.__sycl_usm_array_interface__ = {**found, **wrong}
            with pytest.raises(ValueError, match="but the allocation that it names"):
                xpurt.from_usm(odd)


def test_what_has_no_interface(mapping: str) -> None:
    with pytest.raises(
        TypeError, match="with __sycl_usm_array_interface__; found ndarray"
    ):
        xpurt.from_usm(np.zeros(3))
    x = torch.zeros(3, device="xpu")

    odd = SimpleNamespace(__sycl_usm_array_interface__=None)
    found = x.__sycl_usm_array_interface__
    odd.__sycl_usm_array_interface__ = {**found, "typestr": ">f4"}
    with pytest.raises(TypeError, match=">f4"):
        xpurt.from_usm(odd)
    for shape, strides in (((3,), (-1,)), ((1, 3), (3, -1))):
        odd.__sycl_usm_array_interface__ = {
            **found,
            "shape": shape,
            "strides": strides,
        }
        with pytest.raises(ValueError, match="negative strides"):
            xpurt.from_usm(odd)
