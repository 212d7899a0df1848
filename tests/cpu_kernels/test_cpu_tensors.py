"""Results of rows are ordinary CPU tensors, and the switch leaves no trace."""

import gc
import io
import pickle
import threading
import warnings
from contextlib import suppress

import pytest
import torch
from own_process import output, run
from rows_taken import Ran

import xpurt
from xpurt import _C

pytestmark = pytest.mark.usefixtures("mapped")

N = 1000


def dispatch_tables() -> dict[str, str]:
    return {
        name: torch._C._dispatch_dump(name)
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
    }


def test_native_is_the_default_and_leaves_no_trace() -> None:
    assert xpurt.get_cpu_kernels() == "native"
    before = dispatch_tables()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xpurt.set_cpu_kernels("sycl")
    assert dispatch_tables() != before
    xpurt.set_cpu_kernels("auto")
    xpurt.set_cpu_kernels("native")
    assert dispatch_tables() == before
    assert _C.testing.ops_with_cpu_kernels() == []


def test_a_row_computes_cpu_tensors(sycl: Ran) -> None:
    x = torch.randn(N)
    assert x.tanh().device.type == "cpu"
    assert sycl() == {"aten::tanh"}
    (row,) = (row for row in xpurt.op_report().rows if row.device == "cpu")
    assert (row.tier, row.calls) == ("sycl", 1)


def test_a_product_is_onednns(sycl: Ran) -> None:
    x = torch.randn(64, 64)
    product = x @ x
    assert "aten::mm" in sycl()
    xpurt.set_cpu_kernels("native")
    torch.testing.assert_close(product, x @ x)


def test_an_error_of_earlier_work_is_not_lost(sycl: Ran) -> None:
    with xpurt.kernel_policy("sycl"):
        index = torch.tensor([[9]], device="xpu")
        torch.nn.functional.embedding_bag(index, torch.ones(3, 4, device="xpu"))
    x = torch.randn(N)
    with pytest.raises(RuntimeError, match="submitted earlier"):
        x.tanh()
    torch.testing.assert_close(x.tanh().double(), x.double().tanh())


def test_an_explanation_names_the_op_and_the_tier(
    sycl: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    explained = xpurt.explain(torch.tanh, torch.randn(N))
    (row,) = explained
    assert (row.op, row.device, row.tier) == ("aten::tanh", "cpu", "sycl")
    assert row.measured_us is not None
    assert "aten::tanh" in capsys.readouterr().out


def test_nothing_runs_by_rows_under_native(ran: Ran) -> None:
    torch.randn(N).tanh()
    assert ran() == set()


def test_a_result_is_an_ordinary_tensor(sycl: Ran) -> None:
    source = torch.randn(N)
    x = source.tanh()
    values = x.tolist()
    assert x.numpy().tolist() == values
    assert pickle.loads(pickle.dumps(x)).tolist() == values
    saved = io.BytesIO()
    torch.save(x, saved)
    saved.seek(0)
    assert torch.load(saved).tolist() == values
    assert torch.from_dlpack(x).tolist() == values
    assert not x.is_pinned()
    assert x.untyped_storage().device.type == "cpu"
    y = source.tanh()
    assert y.share_memory_().tolist() == values
    assert y.is_shared()
    z = source.tanh()
    z.resize_(4 * N)
    assert z[:N].tolist() == values
    assert source.tanh().to("xpu").tolist() == values


def test_memory_is_freed_with_the_tensor_in_any_thread(sycl: Ran) -> None:
    gc.collect()
    before = _C.live_memory(), _C.blocks_of_cpu_tensors()
    kept = [torch.randn(N).tanh()]
    assert _C.blocks_of_cpu_tensors() == before[1] + 1
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert (_C.live_memory(), _C.blocks_of_cpu_tensors()) == before


def test_writes_go_to_the_tensor_itself(sycl: Ran) -> None:
    x = torch.zeros(2, N)
    address = x.data_ptr()
    x[1].add_(3)
    assert "aten::add_.Tensor" in sycl() or "aten::add_.Scalar" in sycl()
    assert x.data_ptr() == address
    assert x.sum().item() == 3 * N
    out = torch.empty(0)
    assert torch.tanh(x, out=out) is out
    assert "aten::tanh.out" in sycl()
    assert out.shape == (2, N)
    assert out.resize_(4 * N)[N].item() == pytest.approx(torch.tensor(3.0).tanh())


def test_an_argument_that_is_returned_stays_itself(sycl: Ran) -> None:
    x = torch.randn(N)
    assert x.tanh_() is x
    assert torch.add(x, 1, out=x) is x


def test_views_of_one_storage_stay_views(sycl: Ran) -> None:
    x = torch.randn(2, N)
    expected = x[0] + x[1]
    x[0].add_(x[1])
    assert torch.equal(x[0], expected)


def test_gradients_are_those_of_stock_kernels(sycl: Ran) -> None:
    def gradient() -> torch.Tensor:
        x = torch.linspace(-2, 2, N, requires_grad=True)
        (x.tanh() * x.sigmoid()).sum().backward()
        assert x.grad is not None
        return x.grad

    by_rows = gradient()
    assert {"aten::tanh", "aten::tanh_backward.grad_input"} & sycl()
    xpurt.set_cpu_kernels("native")
    torch.testing.assert_close(by_rows, gradient())


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.randn(3).add_(torch.randn(4)),
        lambda: torch.mm(torch.randn(3, 4), torch.randn(3, 4)),
        lambda: torch.randn(3, 4).index_select(0, torch.tensor([7])),
        lambda: torch.randn(3).cumsum(4),
        lambda: torch.tanh(torch.randn(3), out=torch.empty(3, dtype=torch.int64)),
        lambda: torch.gather(torch.randn(3), 0, torch.tensor([5])),
    ],
)
def test_errors_are_those_of_stock_kernels(sycl: Ran, call: object) -> None:
    assert callable(call)
    with pytest.raises(Exception) as by_rows:
        call()
    xpurt.set_cpu_kernels("native")
    with pytest.raises(type(by_rows.value)) as stock:
        call()
    assert str(by_rows.value) == str(stock.value)


def test_not_finite_values(sycl: Ran) -> None:
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0, 0.0, 1.0] * 100)
    ops = (torch.tanh, torch.exp, torch.sigmoid, torch.relu, torch.sign)
    by_rows = [op(special) for op in ops]
    by_rows += [torch.maximum(special, special.flip(0)), special.cumsum(0)]
    assert "aten::tanh" in sycl()
    xpurt.set_cpu_kernels("native")
    stock = [op(special) for op in ops]
    stock += [torch.maximum(special, special.flip(0)), special.cumsum(0)]
    for one, other in zip(by_rows, stock, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_ops_of_xpu_are_unchanged(sycl: Ran) -> None:
    """PyTorch's kernel, which is the native tier of xpu, stays PyTorch's there."""
    x = torch.randn(N, device="xpu")
    xpurt.op_report(reset=True)
    with xpurt.kernel_policy("native"):
        x.tanh()
    rows = {(row.op, row.tier, row.device == "cpu") for row in xpurt.op_report().rows}
    assert rows == {("aten::tanh", "native", False)}


def test_fake_tensors_and_vmap_are_as_before(sycl: Ran) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3, N).tanh()
    assert type(fake).__name__ == "FakeTensor"
    assert sycl() == set()
    x = torch.randn(3, N)
    by_rows = torch.vmap(torch.tanh)(x)
    xpurt.set_cpu_kernels("native")
    torch.testing.assert_close(by_rows, x.tanh())


def test_the_switch_is_thrown_while_others_compute() -> None:
    x = torch.randn(N)
    expected = x.tanh()
    errors: list[BaseException] = []
    ends = threading.Event()

    def compute() -> None:
        try:
            while not ends.is_set():
                torch.testing.assert_close(x.tanh(), expected)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=compute) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with xpurt.cpu_kernels("sycl"):
            x.tanh()
    ends.set()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_context_restores_what_was_before() -> None:
    with xpurt.cpu_kernels("auto"):
        assert xpurt.get_cpu_kernels() == "auto"
        with suppress(KeyError), xpurt.cpu_kernels("sycl"):
            assert xpurt.get_cpu_kernels() == "sycl"
            raise KeyError
        assert xpurt.get_cpu_kernels() == "auto"
    assert xpurt.get_cpu_kernels() == "native"


def test_a_child_of_a_fork_has_stock_kernels() -> None:
    assert (
        output(
            """
            import os, torch, xpurt
            xpurt.set_cpu_kernels("sycl")
            x = torch.randn(1 << 20)
            y = x.tanh()
            if (child := os.fork()) == 0:
                torch.set_num_threads(1)
                z = x.tanh()
                del x
                os._exit(0 if torch.allclose(y, z) else 1)
            print(os.waitpid(child, 0)[1])
            """
        )
        == "0"
    )


def test_a_variable_switches_at_import() -> None:
    code = "import torch, xpurt; print(xpurt.get_cpu_kernels())"
    assert output(code, XPURT_CPU_KERNELS="auto") == "auto"
    assert output(code) == "native"
    for bad in ({"XPURT_CPU_KERNELS": "atuo"}, {"XPURT_CPU_KERNELS": "sycl"}):
        ended = run(code, **bad, XPURT_MAPPING="GPU", XPURT_VIRTUAL_GPU="strict")
        assert ended.stdout.strip() == "native"
        assert "CPU tensors keep PyTorch's kernels" in ended.stderr


def test_a_mapping_without_the_cpu_is_an_error() -> None:
    with (
        xpurt.xpu_mapping("GPU"),
        pytest.raises(xpurt.MappingError, match=r'GPU.*set_xpu_mapping\("CPU"\)'),
    ):
        xpurt.set_cpu_kernels("sycl")
    assert xpurt.get_cpu_kernels() == "native"


def test_a_new_mapping_without_the_cpu_ends_it() -> None:
    xpurt.set_cpu_kernels("sycl")
    with (
        pytest.warns(RuntimeWarning, match='CPU kernels "sycl" became "native"'),
        xpurt.xpu_mapping("GPU"),
    ):
        assert xpurt.get_cpu_kernels() == "native"


def test_a_result_holds_the_mapping_and_the_error_says_so(sycl: Ran) -> None:
    kept = torch.randn(N).tanh()
    with pytest.raises(xpurt.MappingError, match="belong"):
        xpurt.set_xpu_mapping("GPU")
    del kept


@pytest.mark.parametrize("mode", ["Sycl", "", "gpu"])
def test_an_unknown_name_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match="they are one of"):
        xpurt.set_cpu_kernels(mode)


def test_a_name_is_a_text() -> None:
    with pytest.raises(TypeError, match="wants a name"):
        xpurt.set_cpu_kernels(1)  # type: ignore[arg-type]
