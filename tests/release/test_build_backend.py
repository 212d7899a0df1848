"""The build backend requests PyTorch only where none that fits is installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from release_tools import ROOT, build_backend

TORCH = "torch==2.13.*"


def install(folder: Path, name: str, version: str) -> None:
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )


def test_the_pytorch_that_is_installed_is_not_requested(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.13.0+cpu")
    install(tmp_path, "onednn_devel", "2026.1.0")
    wanted = [TORCH, "onednn-devel>=2026.1", "dpctl>=0.22.1,<0.23"]
    assert build_backend.missing(wanted, [str(tmp_path)]) == ["dpctl>=0.22.1,<0.23"]


def test_another_pytorch_does_not_do(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.12.1")
    assert build_backend.missing([TORCH], [str(tmp_path)]) == [TORCH]


def test_what_is_compiled_against_is_pinned_as_at_run_time() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = build_backend.compile_requirements()
    assert TORCH in wanted
    assert len(wanted) == len(build_backend.COMPILED_AGAINST + build_backend.HEADERS)
    assert set(wanted) - set(build_backend.HEADERS) < {
        *project["project"]["dependencies"]
    }


def test_isolation_brings_no_pytorch() -> None:
    """What is listed there is downloaded, whatever is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = " ".join(project["build-system"]["requires"])
    assert not any(name in listed for name in build_backend.COMPILED_AGAINST)


def test_without_pytorch_nothing_is_compiled_and_the_error_names_the_version(
    tmp_path: Path,
) -> None:
    """A wheel without the extension would be the worse answer."""
    code = (
        "import runpy, sys, importlib.util as util; found = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'torch' "
        "else found(name, *more)\n"
        f"sys.argv = ['setup.py', '-q', 'build_ext', '--build-lib', {str(tmp_path)!r}]\n"
        "runpy.run_path('setup.py', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert 'has none: pip install "torch==2.13.*"' in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("hook", ["wheel", "editable"])
def test_the_hooks_that_compile_request_the_same(hook: str) -> None:
    requested = getattr(build_backend, f"get_requires_for_build_{hook}")()
    installed = build_backend.environment()
    wanted = build_backend.compile_requirements()
    assert requested == build_backend.missing(wanted, installed)
    assert TORCH not in requested  # these tests run with one
