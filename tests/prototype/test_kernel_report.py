"""`python -m xpurt prototype report`, and `xpurt.prototype.kernels_of`."""

import subprocess
import sys
from pathlib import Path

import pytest
from own_process import output

VENDOR = """
import torch, xpurt, xpurt.prototype
library = torch.library.Library("aten", "IMPL")
library.impl("relu", lambda x: x.clamp_min(0), "PrivateUse1")
library.impl("sin", lambda x: x, "SparsePrivateUse1")
library.impl("cos", lambda x: x, "AutogradPrivateUse1")
xpurt.prototype.register_derivative("tan", lambda x: x, "mydevice")
device = xpurt.prototype_device("mydevice")
"""

ROWS = (
    VENDOR
    + """
rows = {(row.op, row.key): row.whose for row in xpurt.prototype.kernels_of("mydevice")}
own = [key for key, whose in rows.items() if whose == "vendor"]
assert sorted(own) == [
    ("aten::cos", "AutogradPrivateUse1"),
    ("aten::relu", "PrivateUse1"),
    ("aten::sin", "SparsePrivateUse1"),
    ("aten::tan", "AutogradPrivateUse1"),
], own
assert rows["aten::sin", "PrivateUse1"] == "alias"
assert rows["aten::sin", "AutogradPrivateUse1"] == "PyTorch"
assert rows["aten::linear", "PrivateUse1"] == "composite"
assert rows["aten::mm", "AutocastPrivateUse1"] == "alias"
assert rows["aten::sin", "AutocastPrivateUse1"] == "none"
print("rows")
"""
)


def test_a_row_names_the_owner() -> None:
    assert "rows" in output(ROWS)


def report(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "myvendor.py").write_text(VENDOR)
    command = [sys.executable, "-m", "xpurt", "prototype", "report", "mydevice"]
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, cwd=folder
    )


def test_the_command_lists_and_writes_a_page(tmp_path: Path) -> None:
    options = ("--import", "myvendor", "--html", "page.html")
    found = report(tmp_path, *options)
    assert found.returncode == 0, found.stderr
    summary, _, listed = found.stdout.partition("\n\n")
    line = next(each for each in summary.splitlines() if "SparseP" in each)
    assert line.split()[:2] == ["SparsePrivateUse1", "1"]
    assert [each.split() for each in listed.splitlines()[2:]] == [
        ["aten::cos", "AutogradPrivateUse1", "vendor"],
        ["aten::relu", "PrivateUse1", "vendor"],
        ["aten::sin", "SparsePrivateUse1", "vendor"],
        ["aten::tan", "AutogradPrivateUse1", "vendor"],
    ]
    page = (tmp_path / "page.html").read_text()
    assert "ops have a kernel of the vendor" in page
    assert "aten::relu" in page


@pytest.mark.rest
def test_rows_are_chosen_and_wrong_keys_have_hints(tmp_path: Path) -> None:
    options = ("--keys", "PrivateUse1", "--whose", "alias", "--ops", "aten::si[gn]*")
    found = report(tmp_path, *options).stdout.partition("\n\n")[2]
    ops = {line.split()[0] for line in found.splitlines()[2:]}
    assert {"aten::sin", "aten::sigmoid"} <= ops
    assert all(each.startswith(("aten::sin", "aten::sig")) for each in ops)
    wrong = report(tmp_path, "--keys", "SparsePrivateUse")
    assert wrong.returncode == 1
    assert 'Did you mean "SparsePrivateUse1"?' in wrong.stderr
