"""The modules of the folder release, which is no package: it is not installed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "release"))

import build_backend  # noqa: E402
import build_wheels  # noqa: E402
import check_ops  # noqa: E402
import check_release  # noqa: E402
import compile_extension  # noqa: E402
import package_version  # noqa: E402
import wheel_contents  # noqa: E402


def build_ext(prepare: str, into: Path) -> subprocess.CompletedProcess[str]:
    """Runs setup.py's command build_ext after `prepare`, which may change the modules of
    the folder release."""
    code = (
        f"import runpy, sys; sys.path.insert(0, 'release'); {prepare}\n"
        f"sys.argv = ['setup.py', '-q', 'build_ext', '--build-lib', {str(into)!r}]\n"
        "runpy.run_path('setup.py', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )


__all__ = [
    "ROOT",
    "build_backend",
    "build_ext",
    "build_wheels",
    "check_ops",
    "check_release",
    "compile_extension",
    "package_version",
    "wheel_contents",
]
