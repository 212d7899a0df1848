"""The ops that kernels are written for, compared with those of the installed PyTorch."""

from pathlib import Path

import pytest
from release_tools import build_ext, check_ops, package_version

ADD = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
OLD = "aten::_cdist_backward(Tensor grad, Tensor x1) -> Tensor"
NEW = "aten::_cdist_backward(Tensor grad_output, Tensor x1) -> Tensor"
QR = "aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)"
LINES = [ADD, f"{OLD}  # 2.13 2.14", f"{NEW}  # 2.15", f"{QR}  # 2.13"]


def test_the_installed_pytorch_has_the_ops_that_kernels_are_written_for() -> None:
    assert check_ops.fault() is None


def test_every_op_that_is_used_is_recorded() -> None:
    """If not: python release/check_ops.py --update, with each series."""
    series = package_version.series_to_build_for()
    recorded = check_ops.recorded(series, check_ops.FILE.read_text().splitlines())
    used = check_ops.ops_that_are_used()
    assert len(used) > 1000
    missing = used - set(recorded)
    # Functions for ops that this PyTorch lacks are never called.
    assert missing & set(check_ops.installed_schemas()) == set()
    assert set(recorded) - used == set()


@pytest.mark.parametrize(
    ("series", "expected"), [("2.13", [ADD, OLD, QR]), ("2.15", [ADD, NEW])]
)
def test_a_line_is_for_some_series_or_for_all(series: str, expected: list[str]) -> None:
    found = check_ops.recorded(series, LINES)
    assert sorted(found.values()) == sorted(expected)
    assert found["aten::add.Tensor"] == ADD


def test_what_was_read_is_written_again() -> None:
    by_series = {s: check_ops.recorded(s, LINES) for s in package_version.SERIES}
    assert check_ops.lines_of(by_series) == sorted(LINES)


def test_each_op_that_differs_is_told() -> None:
    wanted = check_ops.recorded("2.13", LINES)
    installed = check_ops.recorded("2.15", LINES)
    assert check_ops.differences(wanted, installed) == [
        f"{OLD}\n    is now {NEW}",
        f"{QR}\n    is now gone",
    ]
    assert check_ops.differences(wanted, wanted) == []


SOURCE = """
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("view", TORCH_FN(at::native::view));
  m.impl(
      "set_.source_Tensor", TORCH_FN(set_tensor));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("ours", TORCH_FN(ours));
}
TORCH_LIBRARY_IMPL(c10d, XPU, m) {
  m.impl("send", &send);
}
void refuse_pinning(torch::Library& m) {
  m.impl("is_pinned", TORCH_FN(is_never_pinned));
}
"""


def test_ops_are_found_in_sources() -> None:
    assert list(check_ops.ops_registered_by_name(SOURCE)) == [
        "aten::view",
        "aten::set_.source_Tensor",
        "c10d::send",
        "aten::is_pinned",
    ]


def test_the_build_stops_with_the_list(tmp_path: Path) -> None:
    """Before anything is compiled."""
    prepare = (
        "import check_ops\n"
        f"made = check_ops.Path({str(tmp_path / 'ops.txt')!r})\n"
        f"made.write_text({ADD!r} + '\\n' + {QR.replace('qr', 'qr_of_old')!r})\n"
        "check_ops.FILE = made"
    )
    done = build_ext(prepare, tmp_path)
    assert done.returncode == 1
    assert "release/check_ops.py --update. 1 differ:\n" in done.stderr
    assert "aten::qr_of_old(Tensor self, bool some=True)" in done.stderr
    assert "is now gone" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ops.txt"]
