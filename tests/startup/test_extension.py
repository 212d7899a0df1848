"""The extension loads into the PyTorch it was built for; else there is a reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from own_process import run

import xpurt
from xpurt import _built_for
from xpurt.startup import driver

PACKAGE = Path(xpurt.__file__).parent
UNTOUCHED = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
DOCTOR = "import runpy, sys; sys.argv = ['-m', 'doctor']; sys.orig_argv = ['xpurt'];"
DOCTOR += "runpy.run_module('xpurt', run_name='__main__', alter_sys=True)"


def copy_of_the_package(folder: Path) -> Path:
    """A folder with xpurt in it that differs where the test writes into it, and with
    the metadata that lets `import torch` find it."""
    (folder / "xpurt").mkdir()
    for entry in PACKAGE.iterdir():
        if entry.name not in ("__pycache__", "_built_for.py"):
            (folder / "xpurt" / entry.name).symlink_to(entry)
    autoload = PACKAGE.parent / "xpurt_autoload.py"
    if autoload.exists():
        (folder / autoload.name).symlink_to(autoload)
    metadata = folder / "xpurt-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: xpurt\nVersion: 0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[torch.backends]\nxpurt = xpurt_autoload:load\n"
    )
    return folder


def built_for(folder: Path, torch_version: str, cxx11_abi: bool) -> Path:
    package = copy_of_the_package(folder)
    (package / "xpurt" / "_built_for.py").write_text(
        f"TORCH = {torch_version!r}\nCXX11_ABI = {cxx11_abi}\n"
    )
    return package


def in_copy(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


OF_COPY = "import sys; sys.path.insert(0, '{}'); import torch; "


@pytest.fixture
def another_torch(tmp_path: Path) -> Path:
    return built_for(tmp_path, "2.12.0", _built_for.CXX11_ABI)


def test_it_was_built_for_this_torch_whatever_its_local_version() -> None:
    assert torch.__version__.partition("+")[0] == _built_for.TORCH
    assert "+" not in _built_for.TORCH
    assert torch.compiled_with_cxx11_abi() == _built_for.CXX11_ABI


def test_another_torch_is_refused(another_torch: Path) -> None:
    done = run(f"{OF_COPY.format(another_torch)}import xpurt", **UNTOUCHED)
    found = torch.__version__.partition("+")[0]
    assert done.returncode == 1
    assert "ImportError: xpurt was built for PyTorch 2.12.0; found " in done.stderr
    assert f"found {found}. Install torch==2.12.0, or build xpurt" in done.stderr


def test_import_torch_goes_on_with_an_extension_for_another(
    another_torch: Path,
) -> None:
    code = (
        "import torch, xpurt_autoload\n"
        "print(torch.xpu.is_available(), torch.ones(2).sum().item())\n"
        "print(xpurt_autoload.failure)\n"
    )
    done = in_copy(another_torch, "-c", code)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "False 2.0"
    assert "xpurt was built for PyTorch 2.12.0" in second
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("environment", [{}, UNTOUCHED], ids=["autoload", "explicit"])
def test_the_doctor_tells_of_another_torch(
    another_torch: Path, environment: dict[str, str]
) -> None:
    done = in_copy(another_torch, "-m", "xpurt", "doctor", **environment)
    assert done.returncode == 1
    assert "FAIL  extension    not loaded: xpurt was built for PyTorch 2.12.0" in (
        done.stdout
    )
    assert "Traceback" not in done.stderr


def test_another_abi_is_refused(tmp_path: Path) -> None:
    ours = _built_for.CXX11_ABI
    package = built_for(tmp_path, _built_for.TORCH, not ours)
    done = run(f"{OF_COPY.format(package)}import xpurt", **UNTOUCHED)
    assert done.returncode == 1
    assert (
        f"ImportError: xpurt was built with _GLIBCXX_USE_CXX11_ABI={not ours:d}; this "
        f"PyTorch has {ours:d}. Build xpurt again" in done.stderr
    )


def test_a_torch_with_an_xpu_of_its_own_is_left_alone() -> None:
    code = """
    import torch
    stub, names = torch.xpu, set(dir(torch._C))
    torch._C._has_xpu = True
    import xpurt
    print(torch.xpu is stub, set(dir(torch._C)) == names)
    print(torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "XPU"))
    print(torch.accelerator.current_accelerator(check_available=True))
    for use in (xpurt.set_xpu_mapping, lambda: xpurt.set_xpu_mapping("CPU"),
                lambda: xpurt.xpu_mapping("CPU").__enter__()):
        try:
            use()
        except xpurt.MappingError as error:
            print(error)
    try:
        xpurt.op_report()
    except RuntimeError as error:
        print(error)
    """
    ended = run(code, **UNTOUCHED)
    assert ended.returncode == 0, ended.stderr
    untouched, kernels, accelerator, *refusals = ended.stdout.splitlines()
    assert untouched == "True True"
    assert (kernels, accelerator) == ("False", "None")
    assert len(refusals) == 4
    for refusal in refusals:
        assert "this PyTorch has XPU compiled in" in refusal


def test_the_doctor_tells_of_an_xpu_of_torch_s_own() -> None:
    ended = run(f"import torch; torch._C._has_xpu = True; {DOCTOR}", **UNTOUCHED)
    assert ended.returncode == 1
    assert "not loaded: this PyTorch has XPU compiled in" in ended.stdout
    assert "Traceback" not in ended.stderr


HIDE = """
import sys
sys.prefix = {prefix!r}  # beside dpctl and here, the libraries are looked for
sys.path.insert(0, {packages!r})
import torch
"""


def without_libraries(folder: Path, kept: tuple[str, ...]) -> str:
    """Code that hides SYCL's libraries, all but those that are kept."""
    libraries = driver.library_directory()
    assert libraries is not None
    dpctl = Path(str(driver.find_spec("dpctl").origin)).parent
    packages = folder / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "dpctl").symlink_to(dpctl)
    for name in kept:
        (folder / "lib" / name).symlink_to(libraries / name)
    return HIDE.format(prefix=str(folder), packages=str(packages))


def test_without_sycl_the_import_names_what_to_install(tmp_path: Path) -> None:
    code = without_libraries(tmp_path, kept=())
    ended = run(code + "import xpurt", **UNTOUCHED)
    assert ended.returncode == 1
    message = ended.stderr.splitlines()[-1]
    assert message.startswith("ImportError: lib")
    assert "cannot open shared object file" in message
    assert "Not found beside the SYCL runtime: libintlc.so.5" in message
    assert message.endswith("Install xpurt's dependencies: pip install xpurt")


def test_a_single_library_that_is_missing_is_named(tmp_path: Path) -> None:
    kept = tuple(name for name in driver.LIBRARIES if "dnnl" not in name)
    code = without_libraries(tmp_path, kept)
    ended = run(code + "import xpurt", **UNTOUCHED)
    assert ended.returncode == 1
    assert "Not found beside the SYCL runtime: libdnnl.so.3." in ended.stderr


def test_the_doctor_tells_of_libraries_that_are_missing(tmp_path: Path) -> None:
    code = without_libraries(tmp_path, kept=())
    ended = run(code + DOCTOR, **UNTOUCHED)
    assert ended.returncode == 1
    assert "FAIL  loader" in ended.stdout
    assert "FAIL  extension    not loaded: lib" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_kernels_of_others_are_not_replaced_in_silence() -> None:
    """One that is registered in C++ before xpurt is loaded loses to xpurt's, with a
    warning. An op that xpurt has no function of its own for keeps it."""
    ended = run(
        """
        import sys
        import warnings
        import torch

        theirs = torch._C._dispatch_library("IMPL", "aten", "XPU")
        theirs.impl("mul.Tensor", "XPU", lambda a, b: a)
        theirs.impl("special_i1e", "XPU", lambda a: a)
        assert "xpurt" not in sys.modules
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            x = torch.full((2,), 0.5, device="xpu")
        told = [str(each.message) for each in found if "before xpurt" in str(each.message)]
        assert len(told) == 1 and "aten::mul.Tensor on XPU" in told[0], found
        assert "i1e" not in told[0]
        assert (x * x).tolist() == [0.25] * 2
        assert torch.special.i1e(x).tolist() == [0.5] * 2
        """
    )
    assert ended.returncode == 0, ended.stderr
