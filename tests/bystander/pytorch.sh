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

stop() {
    echo "$1" >&2
    exit 1
}

fetch() {
    local tool keys=/usr/share/keyrings/debian-archive-keyring.gpg apt=$folder/apt
    for tool in apt-get tar; do
        command -v $tool > /dev/null || stop "$tool is missing: the tests come from Debian's \
source package of PyTorch. Run this on Debian or Ubuntu, or name a folder with PyTorch's \
sources in BYSTANDER_SOURCES."
    done
    [ -e $keys ] || stop "$keys is missing: install debian-archive-keyring"
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' | sed -n 1p)
    [ -n "$mirror" ] || stop "apt uses no archive of Debian here: name one in BYSTANDER_MIRROR"
    echo "fetching PyTorch's sources of Debian $suite into $folder: 27 MB, once"
    mkdir -p "$apt"/{lists,archives}/partial "$folder/unpacked"
    touch "$apt/status"
    echo "deb-src [signed-by=$keys] $mirror $suite main" > "$apt/sources.list"
    # The lists and the state of this run alone: the system's stay as they are.
    cat > "$apt/apt.conf" <<END
APT::Sandbox::User "";
Debug::NoLocking "true";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
END
    APT_CONFIG=$apt/apt.conf apt-get -qq update
    (cd "$apt" && APT_CONFIG=$apt/apt.conf apt-get -qq --download-only --tar-only source pytorch)
    tar -xf "$apt"/pytorch_*.orig.tar.xz -C "$folder/unpacked" --strip-components=1 \
        --wildcards '*/test/*'
    mv "$folder/unpacked" "$folder/pytorch"
    rm -r "$apt"
}

[ -d "$sources/test" ] || fetch
exec "$python" tests/bystander/compare.py "$sources/test" "$@"
