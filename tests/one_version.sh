#!/usr/bin/env bash
# Quick tests on one version of PyTorch, beside the build of the tree: a part of
# `make matrix`.
#
#   tests/one_version.sh SERIES [ARGUMENTS OF PYTEST]      SERIES as in 2.15
#
# In build/pytorch-SERIES are a copy of the tree, the environment and the objects. The
# second run copies and compiles what has changed.
#
#   TORCH     what pip takes for that version; "torch==SERIES.*"
#   PYTHON    what makes the environment
#   VENV      the environment; build/pytorch-SERIES/venv
#   TARGET    of make, in the copy; test-quick
set -euo pipefail
cd "$(dirname "$0")/.."

series=${1:?give a series of PyTorch, as in 2.15}
shift
known=$(sed -n 's/^SERIES = (\(.*\))$/\1/p' xpurt/torch_versions.py | tr -d '",')
case " $known " in
    *" $series "*) ;;
    *) echo "PyTorch $series is not supported: give one of $known" >&2; exit 1 ;;
esac

folder=$PWD/build/pytorch-$series
tree=$folder/tree
mkdir -p "$tree"
# Whatever was removed from the tree is removed from the copy; what was built stays.
find "$tree" -mindepth 1 -maxdepth 1 ! -name build ! -name xpurt -exec rm -rf {} +
find "$tree" -type f ! -path "$tree/build/*" ! -name '*.so' ! -name _built_for.py -delete
# With the times of the files, by which the compiler's work is kept. Git's folder gives
# the version.
git ls-files --cached --others --exclude-standard -z \
    | { xargs -0 -r -I{} sh -c 'test ! -e "$1" || printf "%s\0" "$1"' _ {}; printf '.git\0'; } \
    | tar --null --files-from=- --create | tar --extract --directory "$tree"

# As the shell of make's recipe reads them, in which a $ is two.
arguments=
[ $# -eq 0 ] || arguments=$(printf '%q ' "$@")
echo "PyTorch $series, in $folder"
# Where make was called from make, its variables are not for the copy.
exec env -u MAKEFLAGS -u MAKELEVEL make --directory "$tree" "${TARGET:-test-quick}" \
    TORCH="${TORCH:-torch==$series.*}" VENV="${VENV:-$folder/venv}" \
    ${PYTHON:+PYTHON="$PYTHON"} ARGS="${arguments//\$/\$\$}"
