"""The build backend requests PyTorch only where none that fits is installed."""

import subprocess
import sys
import tarfile
import tomllib
from email import message_from_bytes, message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from release_tools import ROOT, build_backend, build_ext, package_version

TORCH = "torch>=2.13,<2.16"


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


@pytest.mark.parametrize("version", ["2.13.1", "2.14.0+cpu", "2.15.0"])
def test_each_supported_pytorch_does(tmp_path: Path, version: str) -> None:
    install(tmp_path, "torch", version)
    assert build_backend.missing([TORCH], [str(tmp_path)]) == []


def test_what_is_compiled_against_is_required_as_at_run_time() -> None:
    wanted = build_backend.compile_requirements()
    assert TORCH in wanted
    assert len(wanted) == len(build_backend.COMPILED_AGAINST + build_backend.HEADERS)
    assert set(wanted) - set(build_backend.HEADERS) < {*package_version.dependencies()}


def test_isolation_brings_no_pytorch() -> None:
    """What is listed there is downloaded, whatever is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = " ".join(project["build-system"]["requires"])
    assert not any(name in listed for name in build_backend.COMPILED_AGAINST)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (None, f'xpurt._C is compiled against PyTorch: pip install "{TORCH}"'),
        ("2.12.0", "xpurt is written for PyTorch 2.13, 2.14 and 2.15; found 2.12.0."),
    ],
)
def test_without_a_pytorch_that_fits_nothing_is_compiled(
    tmp_path: Path, version: str | None, reason: str
) -> None:
    """A wheel without the extension would be the worse answer."""
    prepare = (
        "import package_version\n"
        f"package_version.installed_pytorch = lambda: {version!r}"
    )
    done = build_ext(prepare, tmp_path)
    assert done.returncode == 1
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


def metadata_by(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_a_wheel_requires_the_series_that_is_installed(tmp_path: Path) -> None:
    metadata_by("dist_info", "--output-dir", str(tmp_path))
    (file,) = tmp_path.rglob("METADATA")
    found = message_from_string(file.read_text())
    series = package_version.series_to_build_for()
    assert f"torch=={series}.*" in found.get_all("Requires-Dist")
    assert TORCH not in found.get_all("Requires-Dist")
    assert f"+pt{series}" in found["Version"]


def test_a_source_archive_is_for_every_series(tmp_path: Path) -> None:
    metadata_by("sdist", "--dist-dir", str(tmp_path))
    (file,) = tmp_path.glob("xpurt-*.tar.gz")
    with tarfile.open(file) as archive:
        (name,) = (
            n for n in archive.getnames() if n.count("/") == 1 and "PKG-INFO" in n
        )
        member = archive.extractfile(name)
        assert member is not None
        found = message_from_bytes(member.read())
        assert any(n.endswith("/xpurt/torch_versions.py") for n in archive.getnames())
    requirements = map(Requirement, found.get_all("Requires-Dist"))
    assert Requirement(TORCH) in requirements
    assert "pt2." not in found["Version"]


@pytest.mark.parametrize("hook", ["wheel", "editable"])
def test_the_hooks_that_compile_request_the_same(hook: str) -> None:
    requested = getattr(build_backend, f"get_requires_for_build_{hook}")()
    installed = build_backend.environment()
    wanted = build_backend.compile_requirements()
    assert requested == build_backend.missing(wanted, installed)
    assert TORCH not in requested  # these tests run with one
