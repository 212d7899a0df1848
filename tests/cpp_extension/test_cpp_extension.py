"""A C++ extension with kernels of its own, as another package would bring it."""

from pathlib import Path

import pytest
from own_process import output, run

from xpurt import cpp_extension

SOURCE = str(Path(__file__).with_name("mine.cpp"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The built extension; it is loaded in processes of their own."""
    build = tmp_path_factory.mktemp("mine")
    code = f"""
from xpurt import cpp_extension
cpp_extension.load("mine", [{SOURCE!r}], build_directory={str(build)!r})
"""
    ended = run(code, timeout=400)
    assert ended.returncode == 0, ended.stderr
    return str(build / "mine.so")


LOAD = """
import torch, xpurt, importlib.util
def load():
    spec = importlib.util.spec_from_file_location("mine", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""


def with_library(library: str, code: str, **environment: str) -> list[str]:
    code = f"library = {library!r}\n{LOAD}{code}"
    return output(code, XPURT_FALLBACK="silent", **environment).splitlines()


ON_ONE_DEVICE = """
mine = load()
x = torch.arange(4096., device="xpu")
stream = torch.xpu.Stream()
with stream:
    y = torch.ops.mine.scaled(x, 3.0)
    print(mine.queue_address() == stream.sycl_queue)
    z = y + 1
    torch.ops.mine.twice_(z)
stream.synchronize()
print(torch.equal(z.cpu(), (torch.arange(4096.) * 3 + 1) * 2))
"""


@pytest.mark.rest
@pytest.mark.parametrize(
    "environment",
    [
        {"XPURT_MAPPING": "CPU"},
        {"XPURT_MAPPING": "GPU", "XPURT_VIRTUAL_GPU": "strict"},
    ],
    ids=["CPU", "GPU"],
)
def test_its_kernels_run_on_the_current_stream(
    library: str, environment: dict[str, str]
) -> None:
    assert with_library(library, ON_ONE_DEVICE, **environment) == ["True", "True"]


BEGIN_AUTO = """
from xpurt import _C, mapping
kinds = [d.kind for d in mapping.current_placement().ordinals[0]]
def only(kind):
    _C.set_device_costs(0, [(0 if k == kind else 1e9, 1e9, 1e9, 0, 1e9) for k in kinds])
xpurt.set_kernel_policy("sycl")
only("gpu")
x = torch.arange(1., 4097., device="xpu")
"""


def auto(library: str, code: str) -> list[str]:
    return with_library(
        library, BEGIN_AUTO + code, XPURT_MAPPING="AUTO", XPURT_VIRTUAL_GPU="strict"
    )


@pytest.mark.rest
def test_what_another_device_wrote_is_there_for_an_op_that_is_loaded_then(
    library: str,
) -> None:
    assert auto(
        library,
        """
y = x * 2
print(xpurt.where(y))
load()
print(torch.ops.mine.first_on_host(y))
""",
    ) == ["('opencl:gpu:0',)", "2.0"]


@pytest.mark.rest
def test_every_call_finds_and_leaves_valid_bytes(library: str) -> None:
    assert auto(
        library,
        """
load()
expected = torch.arange(1., 4097.)
for turn in range(20):
    y = x * 2                           # on the GPU
    torch.ops.mine.twice_(y)            # at home
    z = y + 1                           # on the GPU
    w = torch.ops.mine.scaled(z, 0.5)   # at home
    v = w - 1                           # on the GPU
    assert torch.ops.mine.first_on_host(v) == 1.5, torch.ops.mine.first_on_host(v)
    assert torch.equal(v.cpu(), (expected * 4 + 1) * 0.5 - 1)
print("done")
""",
    ) == ["done"]


@pytest.mark.rest
def test_a_kernel_that_does_not_build_shows_the_log(library: str) -> None:
    ended = run(
        f"library = {library!r}\n{LOAD}\nload()\n"
        "torch.ops.mine.broken(torch.ones(1, device='xpu'))"
    )
    assert ended.returncode == 1
    assert "kernel broken does not build" in ended.stderr
    assert "no_such" in ended.stderr


def test_the_setuptools_form_keeps_what_it_is_given() -> None:
    extension = cpp_extension.xpu_extension(
        "mine", [SOURCE], libraries=["m"], define_macros=[("A", "1")]
    )
    assert extension.libraries[:1] == ["m"]
    assert "sycl" in extension.libraries
    assert ("A", "1") in extension.define_macros
    assert any(Path(p, "xpurt", "queue.h").exists() for p in extension.include_dirs)


def test_a_missing_header_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"intel-sycl-rt.*no\.h"):
        cpp_extension.include_dir("intel-sycl-rt", "no.h")
