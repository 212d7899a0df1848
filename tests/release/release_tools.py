"""The modules of the folder release, which is no package: it is not installed."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "release"))

import build_backend  # noqa: E402
import build_wheels  # noqa: E402
import check_ops  # noqa: E402
import check_release  # noqa: E402
import package_version  # noqa: E402
import wheel_contents  # noqa: E402

__all__ = [
    "ROOT",
    "build_backend",
    "build_wheels",
    "check_ops",
    "check_release",
    "package_version",
    "wheel_contents",
]
