"""Building kernels, and choosing between them and native ones."""

import threading
import warnings

import pytest
import torch
from own_process import output

import xpurt
from kernels.kernel_forced import tiers_of
from xpurt import _C
from xpurt.errors import KernelBuildError, XpurtError
from xpurt.kernels.rows.table import ROWS, described
from xpurt.kernels.sources.source import source_of
from xpurt.mapping import current_placement

DEVICE = {
    "sub_group": 0,
    "has_wide_sub_groups": False,
    "max_work_group": 256,
    "local_memory": 32768,
    "vector_width": 8,
}


def test_a_kernel_that_does_not_build_shows_source_and_log(xpu: torch.device) -> None:
    source = "__kernel void wrong(__global float* p) {\n  p[0] = no_such_name;\n}\n"
    with pytest.raises(KernelBuildError) as caught:
        _C.testing.build_kernel(0, "wrong", source)
    message = str(caught.value)
    assert "kernel wrong does not build for" in message
    assert "2    p[0] = no_such_name;" in message  # the source, its lines numbered
    assert "undeclared identifier" in message  # the driver's own words
    assert "set_kernel_policy" in message
    assert isinstance(caught.value, XpurtError)


def test_a_program_without_the_kernel_is_an_error(xpu: torch.device) -> None:
    with pytest.raises(KernelBuildError, match="no kernel other"):
        _C.testing.build_kernel(0, "other", "__kernel void one(__global float* p) {}")


def test_the_error_of_a_source_travels_through_an_op(xpu: torch.device) -> None:
    """In a process of its own, since it replaces the sources of the table."""
    code = """
import torch, xpurt
from xpurt import _C
from xpurt.kernels.registration import fail
torch.empty(1, device="xpu")  # the first placement sets the table's own
_C.set_source_callbacks(lambda key, device: ("bad", "__kernel void bad() { x; }"), fail)
xpurt.set_kernel_policy("sycl")
try:
    torch.ones(3, device="xpu").exp()
except xpurt.errors.KernelBuildError as error:
    print("caught", "undeclared" in str(error))
_C.set_source_callbacks(lambda key, device: 1 / 0, fail)
try:
    torch.ones(3, device="xpu").exp()
except ZeroDivisionError:
    print("caught too")
"""
    assert output(code, XPURT_MAPPING="").splitlines()[:2] == [
        "caught True",
        "caught too",
    ]


def test_a_kernel_is_built_once() -> None:
    """In a process of its own, where no kernel has been requested yet."""
    code = """
    import torch, xpurt
    from xpurt import _C
    x = torch.ones(11, 13, device="xpu")
    xpurt.set_kernel_policy("sycl")
    def built(*uses):
        before = _C.testing.built_kernels()
        for use in uses: use.asinh()
        return _C.testing.built_kernels() - before
    more = [torch.ones(size, device="xpu", dtype=torch.float32) for size in (1, 5, 1000)]
    print(built(x), built(*more))            # one layout
    print(built(x[:, ::2]), built(x[:, ::3]))  # another one
    """
    assert output(code).split() == ["1", "0", "1", "0"]


def test_threads_that_want_the_same_kernel_build_it_once(xpu: torch.device) -> None:
    x = torch.ones(7, dtype=torch.float64, device=xpu)
    before = _C.testing.built_kernels()
    results: list[torch.Tensor] = []
    with xpurt.kernel_policy("sycl"):
        threads = [
            threading.Thread(target=lambda: results.append(x.atanh())) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 8
    assert _C.testing.built_kernels() <= before + 1


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_the_policy_routes(xpu: torch.device) -> None:
    x = torch.ones(100, device=xpu)
    reads = any(d.host_accessible for d in current_placement().ordinals[0])
    native = "native" if reads else "copy"
    for policy, expected in (
        ("sycl", "sycl"),
        ("native", native),
        # A hundred elements are not worth a queue where the host can take them.
        ("auto", "native" if reads else "sycl"),
    ):
        _C.reset_op_report()
        with xpurt.kernel_policy(policy), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert xpurt.get_kernel_policy() == policy
            x.sinh()
        assert tiers_of("aten::sinh") == {expected}


def test_an_op_without_a_row_is_native_under_every_policy() -> None:
    with xpurt.xpu_mapping("CPU"):
        x = torch.eye(3, device="xpu")
        for policy in ("sycl", "native", "auto"):
            _C.reset_op_report()
            with xpurt.kernel_policy(policy):
                x.histogram(3)
            assert tiers_of("aten::histogram") == {"native"}
        del x


def test_the_environment_chooses_the_policy() -> None:
    """In a process each. They also show that importing binds no rows."""
    code = """
import torch, xpurt
from xpurt.kernels.registration import register
print(register.cache_info().currsize)
torch.ones(100, device="xpu").sinh()
print(xpurt.get_kernel_policy(), {r.tier for r in xpurt.op_report() if "sinh" in r.op})
"""
    for policy, tier in (("sycl", "sycl"), ("native", "native")):
        found = output(code, XPURT_KERNEL_POLICY=policy).splitlines()
        assert found == ["0", f"{policy} {{'{tier}'}}"]


def test_the_policy_comes_back_after_an_error() -> None:
    before = xpurt.get_kernel_policy()
    with pytest.raises(KeyError), xpurt.kernel_policy("native"):
        raise KeyError
    assert xpurt.get_kernel_policy() == before
    with pytest.raises(ValueError, match='"auto"'):
        xpurt.set_kernel_policy("fastest")


def test_rows_are_described_for_the_extension() -> None:
    names = [row.aten for row in ROWS]
    assert len(set(names)) >= 100
    add = next(r for r in ROWS if r.aten == "add")
    known = described(names.index("add"), add)
    assert known["params"] == ["alpha"]
    assert known["uses"] == 0b11
    fill = described(0, next(r for r in ROWS if r.aten == "fill_"))
    assert fill["uses"] == 0b10


def test_literals_have_the_type_of_the_computation() -> None:
    gelu = next(r for r in ROWS if r.aten == "gelu")
    fields = ["111", "f", "ff", "", "none"]
    single = source_of(gelu, "pointwise", fields, DEVICE).text
    assert "0.7071067811865476f" in single
    fields[1:3] = "d", "dd"
    assert (
        "0.7071067811865476f" not in source_of(gelu, "pointwise", fields, DEVICE).text
    )


def test_a_device_without_sub_groups_gets_a_work_item_per_line(
    xpu: torch.device,
) -> None:
    softmax = next(r for r in ROWS if r.aten == "_softmax")
    source = source_of(softmax, "softmax_rows", ["", "ff"], DEVICE)
    assert "reqd_sub_group_size" not in source.text
    _C.testing.build_kernel(0, source.entry, source.text)
