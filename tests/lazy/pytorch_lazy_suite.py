"""Runs PyTorch's own tests of lazy tensors (test/lazy in its sources) on xpurt's backend.

    python tests/lazy/pytorch_lazy_suite.py FOLDER

FOLDER is `test/lazy` in PyTorch's sources, which wheels do not have.
Prints the tests of each file that passed, were skipped, and failed, with the last line of
each failure. Each file has a process of its own: a process has one lazy backend.
"""

import contextlib
import io
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def run_file(path: Path) -> None:
    """Runs the tests of one file in this process."""
    import torch._lazy.ts_backend
    from pytorch_sources import load

    import xpurt.lazy

    def init() -> None:
        xpurt.lazy.init(compile="never")

    torch._lazy.ts_backend.init = init  # type: ignore[assignment]
    init()
    sys.path.insert(0, str(path.parent))
    module: Any = load(path.stem)
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()):
        unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    failed = result.errors + result.failures
    skipped = len(result.skipped) + len(result.expectedFailures)
    print(
        f"{path.name}: {result.testsRun - len(failed) - skipped} passed, "
        f"{skipped} skipped, {len(failed)} failed"
    )
    for test, trace in failed:
        print(f"    {test.id()}: {trace.strip().splitlines()[-1][:300]}")


def main(folder: Path) -> None:
    for path in sorted(folder.glob("test_*.py")):
        subprocess.run(
            [sys.executable, __file__, "--file", str(path)],
            env={**os.environ, "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"},
            timeout=600,
        )


if __name__ == "__main__":
    if sys.argv[1] == "--file":
        run_file(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
