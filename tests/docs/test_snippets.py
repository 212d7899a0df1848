"""Every block of Python in README and in the pages, run as a reader would run it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from own_process import run
from pages import PAGES, ROOT, Block, blocks, blocks_of

PYTHON = blocks("python")
PROGRAMS = [each for each in PYTHON if each.reason is None and each.included is None]
FRAGMENTS = [each for each in PYTHON if each.reason is not None]
INCLUDED = [each for each in blocks("python", "cpp", "yaml") if each.included]


def run_block(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with the default mapping."""
    if "def test_" in block.text:
        script = folder / "test_block.py"
        script.write_text(block.text)
        command = [sys.executable, "-m", "pytest", "-p", "pytest_xpurt", str(script)]
        command += ["--xpu-mapping", "CPU", "--xpu-required", f"--rootdir={folder}"]
        return subprocess.run(
            command, env=os.environ, capture_output=True, text=True, timeout=120
        )
    program = f"import os\nos.chdir({str(folder)!r})\n{block.text}"
    # A page may ask for the virtual GPU itself.
    own_gpu = "virtual_gpu(" in block.text
    return run(
        program,
        timeout=120,
        XPURT_MAPPING="",
        XPURT_VIRTUAL_GPU="" if own_gpu else os.environ["XPURT_VIRTUAL_GPU"],
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_a_program_runs(block: Block, tmp_path: Path) -> None:
    done = run_block(block, tmp_path)
    assert done.returncode == 0, (
        f"{block.page}:{block.line}\n{done.stdout}{done.stderr}"
    )


@pytest.mark.parametrize("block", FRAGMENTS, ids=str)
def test_a_fragment_is_python(block: Block) -> None:
    ast.parse(block.text)


def test_fragments_are_few() -> None:
    """A block that does not run may be wrong: most have to be whole programs."""
    assert len(FRAGMENTS) <= len(PROGRAMS) // 4


@pytest.mark.parametrize("block", INCLUDED, ids=str)
def test_an_included_file_is_an_example(block: Block) -> None:
    """Those are run by tests/examples."""
    assert block.included.is_file()
    assert block.included.is_relative_to(ROOT / "examples")


def test_a_block_has_a_language() -> None:
    """A block without one would not be checked."""
    known = {"python", "sh", "cpp", "yaml", "text"}
    every = [block for page in PAGES for block in blocks_of(page)]
    assert [str(block) for block in every if block.language not in known] == []


def test_there_is_a_program_for_each_mapping() -> None:
    of_page = [block.text for block in PROGRAMS if block.page.stem == "mappings"]
    named = {name for text in of_page for name in re.findall(r'mapping\("(\w+)"', text)}
    assert {"explicit", "CPU", "GPU", "AUTO"} <= named


def test_the_first_program_prints_its_loss_on_a_line_of_its_own() -> None:
    program = blocks_of(ROOT / "README.md")[0].text
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    loss, head, rule, *_ = done.stdout.splitlines()
    assert float(loss) > 0
    assert head.split()[:2] == ["op", "tier"]
    assert set(rule) == {"-", " "}


BROKEN = """
Text.

```python
import xpurt
xpurt.no_such_function()
```

<!-- fragment: two lines of a larger program -->
```python
host = t.cpu()
```

1. In a list:

    ```python
    print("in a list")
    ```
"""


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    broken, fragment, indented = blocks_of(tmp_path / "page.md", BROKEN)
    done = run_block(broken, tmp_path)
    assert done.returncode == 1
    assert "no_such_function" in done.stderr
    assert broken.line == 5
    assert broken.reason is None
    assert fragment.reason == "two lines of a larger program"
    assert indented.reason is None
    assert indented.text == 'print("in a list")\n'
