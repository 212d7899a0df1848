"""Whether PyTorch is what xpurt takes it for, and the table of that is whole."""

import os
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pytorch_internals import assumptions, page, used
from pytorch_internals.assumptions import MEMBERS
from pytorch_internals.cpp_names import NATIVE
from pytorch_internals.dispatch_keys import KEYS
from pytorch_internals.kinds import of_series
from pytorch_internals.patches import PATCHES
from xpurt.torch_versions import SERIES, series_of

TESTS = Path(__file__).parents[1]

PATTERNS = {
    "python": [row.name for row in MEMBERS],
    "patch": [target for row in PATCHES for target in row.targets],
    "c++": [row.name for row in NATIVE],
    "key": [row.name for row in KEYS],
}


def fits(kind: str, name: str, pattern: str) -> bool:
    """Targets of patches have brackets, which mean something else in a pattern."""
    return name == pattern if kind == "patch" else fnmatchcase(name, pattern)


@pytest.mark.parametrize("kind", PATTERNS)
def test_each_use_has_a_row(kind: str) -> None:
    missing = {
        name: sorted(files)
        for name, files in used.all_uses()[kind].items()
        if not any(fits(kind, name, pattern) for pattern in PATTERNS[kind])
    }
    assert missing == {}, "add it to tests/pytorch_internals"


@pytest.mark.parametrize("kind", PATTERNS)
def test_each_row_is_used(kind: str) -> None:
    unused = [
        pattern
        for pattern in PATTERNS[kind]
        if not any(fits(kind, name, pattern) for name in used.all_uses()[kind])
    ]
    assert unused == []


@pytest.mark.parametrize(
    ("find", "source", "found"),
    [
        (used.python_names, "import torch\nx = torch._C._new()", "torch._C._new"),
        (used.python_names, "import torch as t\nt.cuda._lazy_init", "torch.cuda._lazy_init"),
        (used.python_names, "from torch._inductor import codegen", "torch._inductor.codegen"),
        (used.python_names, "vars(x).get('_dispatch_dump')", "torch._C._dispatch_dump"),
        (used.patches, "import torch\ntorch.save = mine", "torch.save"),
        (used.patches, "vars(it)['name'] = 1", "vars(it)['name']"),
        (used.patches, "setattr(thing, 'name', 1)", "setattr(thing, 'name')"),
        (used.cpp_names, "  at::native::cat_out(x);", "at::native::cat_out"),
        (used.cpp_names, "hot<A, at::native::structured_mm_out>", "at::native::structured_mm_out"),
        (used.cpp_names, "#include <torch/csrc/DynamicTypes.h>", "<torch/csrc/DynamicTypes.h>"),
        (used.cpp_names, 'dlsym(RTLD_DEFAULT, "_ZN2at3addEv")', "_ZN2at3addEv"),
        (used.cpp_names, "return queue.*(&Queue::tasks_);", "&Queue::tasks_"),
        (used.guarded_functions, 'GuardedFunction{"A", "b"}', "torch._C.A.b"),
        (used.guarded_functions, 'GuardedFunction{nullptr, "_b"}', "torch._C._b"),
        (used.dispatch_keys, "TORCH_LIBRARY_IMPL(aten, AutocastXPU, m) {", "aten AutocastXPU"),
        (used.dispatch_keys, "constexpr c10::DispatchKey kSpecialKeys[] = {\n c10::DispatchKey::XPU,\n};", "_ XPU"),
    ],
)  # fmt: skip
def test_a_use_is_found(
    find: Callable[[str], set[str]], source: str, found: str
) -> None:
    assert found in find(source)


def test_what_is_public_or_ours_is_no_use() -> None:
    source = "import torch\nfrom xpurt import _C\nself._x = torch.ones(2)\n_C.set_x(1)"
    assert used.python_names(source) == used.patches(source) == set()
    assert used.cpp_names("// at::native::cat\nat::ones({2}); x->_impl();") == set()


def changes(code: str) -> list[str]:
    """The output of a process in which xpurt has changed nothing."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TESTS,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_installed_pytorch_is_as_assumed() -> None:
    code = "from pytorch_internals.changed import all_changes; print(*all_changes(), sep='\\n')"
    assert [line for line in changes(code) if line] == []


@pytest.mark.rest
def test_a_change_is_seen() -> None:
    """A PyTorch that lacks things, or has them otherwise: a line for each."""
    code = """
from pathlib import Path
import torch
from pytorch_internals import changed
from pytorch_internals.assumptions import Member
import torch._inductor.compile_fx  # what follows would make these imports fail
import torch.distributed.tensor.experimental

del torch._C._get_schema
torch._neg_view = lambda tensor: tensor
torch.accelerator.current_accelerator = lambda: None
changed.symbols_wanted = lambda: {"_ZN2at6native4goneEv"}
library = torch.library.Library("aten", "IMPL")
library.impl("neg", lambda x: x, "SparseXPU")
for lines in (
    changed.of_members(["torch._C._get_schema", "torch._neg_view"]),
    changed.of_the_layer([]),
    changed.of_patches(),
    changed.of_native(["at::native::gone", "<ATen/native/Gone.h>", "at::native::view"]),
    changed.of_keys(),
    changed.of_symbols(),
):
    print(len(lines), sorted(lines)[0])
"""
    members, layer, patches, native, keys, symbols = changes(code)
    assert members == (
        "2 torch._C._get_schema is gone: schemas of ops that are computed by way of others"
    )
    assert int(layer.split()[0]) > 30
    assert patches.startswith("1 torch.accelerator.current_accelerator is (), and was")
    assert native == "2 <ATen/native/Gone.h> is not declared in "
    assert keys.startswith("1 PyTorch has kernels on SparseXPU now: aten::neg")
    assert symbols == "1 the wheel exports no _ZN2at6native4goneEv"


def test_the_page_is_up_to_date() -> None:
    """If not: cd tests && python -m pytorch_internals.page."""
    assert page.PAGE.read_text() == page.page()
    assert all(each in page.PAGE.read_text() for each in assumptions.CHECKED_WITH)


def test_every_supported_series_was_checked() -> None:
    assert tuple(map(series_of, assumptions.CHECKED_WITH)) == SERIES


@pytest.mark.parametrize(
    ("series", "expected"),
    [("2.13", "()"), ("2.14", "()"), ("2.15", "(device)"), ("2.100", "(device)")],
)
def test_a_series_has_the_newest_form_that_is_not_newer(
    series: str, expected: str
) -> None:
    assert of_series({"2.13": "()", "2.15": "(device)"}, series) == expected
    assert of_series("(self)", series) == "(self)"
