"""A second process compiles nothing that the first one did."""

from pathlib import Path

import pytest
from own_process import compiling_run as run

PROGRAM = """
import logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
from torch._dynamo.utils import counters
xpurt.lazy.init(compile="always")
x = torch.linspace(0, 1, 50)
found = (x.to("lazy").sin() * 1.5).cpu()
torch.testing.assert_close(found, x.sin() * 1.5)
(row,) = xpurt.lazy.compilations()
assert not row.error and "def call(" in row.code, row
hits, misses = (
    sum(of.get(name, 0) for of, name in (
        (counters["inductor"], f"fxgraph_cache_{each}"),
        (counters["aot_autograd"], f"autograd_cache_{each}"),
    ))
    for each in ("hit", "miss")
)
print(hits, misses)
"""


def ran(folder: Path) -> tuple[int, int]:
    """The hits and the misses of the caches on disk in a process of its own."""
    ended = run(
        PROGRAM,
        timeout=240,
        TORCHINDUCTOR_CACHE_DIR=str(folder),
    )
    assert ended.returncode == 0, ended.stderr
    hits, misses = ended.stdout.split()
    return int(hits), int(misses)


def built(folder: Path) -> dict[Path, int]:
    """What the C++ compiler made in the folder, and when."""
    return {each: each.stat().st_mtime_ns for each in folder.rglob("*.so")}


@pytest.mark.rest
def test_a_second_process_compiles_nothing_that_the_first_one_did(
    tmp_path: Path,
) -> None:
    hits, misses = ran(tmp_path)
    assert hits == 0
    assert misses > 0
    libraries = built(tmp_path)
    assert libraries
    hits, misses = ran(tmp_path)
    assert hits > 0
    assert misses == 0
    assert built(tmp_path) == libraries
