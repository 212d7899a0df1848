#!/usr/bin/env bash
# Runs the tests on a CUDA build of PyTorch: `make test-cuda`. Arguments go to pytest.
#
# The environment, 5 GB, is made once. The extension is the one that stands in the source
# tree, whatever build of the same version it was compiled against: that it runs on both
# is a part of the test. No CUDA GPU is needed.
#
#   CUDA_VENV     the environment; .venv-cuda
#   PYTHON        what makes it, of the version that the extension was built for
#   CUDA_TORCH    what pip takes: a requirement, or the path of a wheel
#   EXTRAS        of the package, whose requirements are installed; "demo test"
#   FILES_OF      extras whose packages are installed without their requirements
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${CUDA_VENV:-.venv-cuda}
python=${PYTHON:-.venv/bin/python}
# "===" compares the text: where an index prefers a build such as 2.13.0+cpu, only the
# plain version, which is the CUDA build, is equal. Folders of wheels come first for pip.
built_for=$(sed -n 's/^TORCH = "\(.*\)"$/\1/p' xpurt/_built_for.py)
torch=${CUDA_TORCH:-torch===$built_for}

has_cuda() {
    [ -x "$venv/bin/python" ] && TORCH_DEVICE_BACKEND_AUTOLOAD=0 "$venv/bin/python" -c \
        'import sys, torch; sys.exit(not torch.cuda._is_compiled())' 2>/dev/null
}

if ! has_cuda; then
    echo "installing a CUDA build of PyTorch into $venv: 5 GB, once"
    "$python" -m venv --clear "$venv"
    PIP_FIND_LINKS= "$venv/bin/python" -m pip install -qq "$torch"
    has_cuda || {
        echo "pip brought a PyTorch without CUDA: name a wheel with CUDA_TORCH=" >&2
        exit 1
    }
fi

EXTRAS=${EXTRAS:-demo test} FILES_OF=${FILES_OF:-} \
    "$venv/bin/python" - "$venv/requirements.txt" "$venv/files-of.txt" <<'END'
import os
import sys
import tomllib
from pathlib import Path

pyproject = tomllib.load(open("pyproject.toml", "rb"))
extras = pyproject["project"]["optional-dependencies"]
dependencies = pyproject["tool"]["xpurt"]["dependencies"]
wanted = sum((extras[name] for name in os.environ["EXTRAS"].split()), [])
files_of = sum((extras[name] for name in os.environ["FILES_OF"].split()), [])
for path, requirements in zip(sys.argv[1:], (dependencies + wanted, files_of)):
    ours = ("torch>", "xpurt")
    lines = [f"{each}\n" for each in requirements if not each.startswith(ours)]
    Path(path).write_text("".join(lines))
END
# With the PyTorch that is there, so that nothing brings another one.
version=$("$venv/bin/python" -c 'import importlib.metadata as m; print(m.version("torch"))')
PIP_FIND_LINKS= "$venv/bin/python" -m pip install -qq "torch===$version" -r "$venv/requirements.txt"
if [ -s "$venv/files-of.txt" ]; then
    "$venv/bin/python" -m pip install -qq --no-deps -r "$venv/files-of.txt"
fi

exec env PYTHONPATH="$PWD:$PWD/tools" "$venv/bin/python" -m pytest -m "not slow and not programs" "$@"
