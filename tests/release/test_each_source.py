"""Each source of the extension includes what it needs.

By default the build compiles several sources as one, after the precompiled headers, and
one of them may use what another includes. A build through a compiler cache does not.
"""

import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest
from release_tools import ROOT, compile_extension
from torch.utils import cpp_extension

EXTENSION = compile_extension.extension()


@pytest.mark.slow
@pytest.mark.parametrize("source", EXTENSION.sources)
def test_a_source_is_compiled_by_itself(source: str) -> None:
    folders = [*EXTENSION.include_dirs, sysconfig.get_path("include")]
    done = subprocess.run(
        [
            *shlex.split(cpp_extension.get_cxx_compiler()),
            *EXTENSION.extra_compile_args,
            *(f"-I{Path(folder).resolve()}" for folder in folders),
            "-DTORCH_EXTENSION_NAME=_C",
            "-fsyntax-only",
            source,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
