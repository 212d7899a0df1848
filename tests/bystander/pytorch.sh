#!/usr/bin/env bash
# PyTorch's own tests on CPU tensors, with xpurt and without: `make test-bystander`. The
# same tests have to pass, with the same warnings. Arguments are those of compare.py.
#
# The tests are those of Debian's source package, 27 MB, which is unpacked into a folder.
# Nothing is installed, and no rights of root are needed.
#
#   BYSTANDER_DIR      the folder; build/bystander
#   BYSTANDER_SUITE    the release of Debian; trixie, which has PyTorch 2.6
#   BYSTANDER_MIRROR   the address of a Debian archive; the one that apt uses
#   BYSTANDER_SOURCES  a folder with PyTorch's sources of another version; fetches nothing
#   PYTHON             the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(realpath -m "${BYSTANDER_DIR:-build/bystander}")
suite=${BYSTANDER_SUITE:-trixie}
mirror=${BYSTANDER_MIRROR:-}
python=${PYTHON:-.venv/bin/python}
sources=${BYSTANDER_SOURCES:-$folder/pytorch}

source tests/debian_archive.sh

fetch() {
    need "the tests come from Debian's source package of PyTorch. Run this on Debian or \
Ubuntu, or name a folder with PyTorch's sources in BYSTANDER_SOURCES." apt-get tar
    echo "fetching PyTorch's sources of Debian $suite into $folder: 27 MB, once"
    open_archive deb-src
    mkdir -p "$folder/unpacked"
    (cd "$folder/apt" && apt-get -qq --download-only --tar-only source pytorch)
    tar -xf "$folder"/apt/pytorch_*.orig.tar.xz -C "$folder/unpacked" \
        --strip-components=1 --wildcards '*/test/*'
    mv "$folder/unpacked" "$folder/pytorch"
    close_archive
}

[ -d "$sources/test" ] || fetch
exec "$python" tests/bystander/compare.py "$sources/test" "$@"
