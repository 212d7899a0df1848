"""Large ops that all devices do together, as the scheduler decides it."""

from spoilt_kernels import SPOILT

from auto.test_learning import auto

# Both devices take a thousand bytes per microsecond, so 8 MiB take 8 ms.
ALIKE = """
def alike(launch_us=10, slow_gpu=1):
    rates = {"cpu": 1000, "gpu": 1000 / slow_gpu}
    _C.set_device_costs(0, [(launch_us, rates[k], 1e9, 0, 1e9) for k in kinds])
def dear():  # one call on one device alone misses more than a build takes
    _C.set_device_costs(0, [(10, 1, 1e9, 0, 1e9) for k in kinds])
def shards():
    return dict(zip(kinds, _C.testing.shards_run(0)))
def wait_for_builds():
    while _C.testing.builds_pending(): time.sleep(0.01)
def built(call):
    for _ in kinds:  # home's kernel, then the other's
        call()
        wait_for_builds()
    before = shards()
    y = call()
    return y, {kind: count - before[kind] for kind, count in shards().items()}
def why(call):
    import contextlib, io
    with contextlib.redirect_stdout(io.StringIO()): (row,) = xpurt.explain(call).rows
    return row.why
alike()
cpu = torch.linspace(0, 1, 1 << 20)
x = cpu.to("xpu")
"""


def test_what_takes_long_is_divided() -> None:
    assert auto(
        ALIKE
        + """
y, ran = built(lambda: x * 2)
print(ran)
print(torch.equal(y.cpu(), cpu * 2))
said = why(lambda: x * 2)
print(said.count("50% "), said[:8])
""",
        XPURT_LEARN="0",
    ) == ["{'gpu': 1, 'cpu': 1}", "True", "2 together"]


def test_the_slower_device_gets_less() -> None:
    assert auto(
        ALIKE
        + """
alike(slow_gpu=3)
said = why(lambda: x * 3)
print("25% " in said and "75% " in said)
alike(slow_gpu=50)
print("together" in why(lambda: x * 3))
""",
        XPURT_LEARN="0",
    ) == ["True", "False"]


# Bytes that were copied between the devices in some ops of a chain.
MOVED = """
def moved(op, count, *slow):
    global x
    before = sum(size for _, size in _C.testing.transfers_to(0))
    for number in range(count):
        alike(slow_gpu=slow[number % len(slow)])
        x = op(x, number)
        torch.xpu.synchronize()
    return sum(size for _, size in _C.testing.transfers_to(0)) - before
built(lambda: x * 2)
"""


def test_costs_that_waver_move_nothing() -> None:
    first, then, finally_ = auto(
        ALIKE
        + MOVED
        + """
moved(lambda x, _: x * 1, 20, 1)
print(moved(lambda x, _: x * 1, 20, 1, 1.1, 0.9, 1.05))
print(moved(lambda x, _: x * 1, 100, 3) > 0)
print(moved(lambda x, _: x * 1, 10, 3))
""",
        XPURT_LEARN="0",
    )
    assert (first, then, finally_) == ("0", "True", "0")


def test_pointwise_ops_and_row_ops_share_a_boundary() -> None:
    """The pointwise op could be divided anywhere. With a boundary of its own, at other
    bytes, it would copy a part of a row at each step."""
    assert auto(
        ALIKE
        + MOVED
        + """
x = torch.zeros(333, 3331, device="xpu")
built(lambda: x.softmax(1))
both = lambda x, number: x * 2 if number % 2 else x.softmax(1)
moved(both, 20, 1.3)
print(moved(both, 10, 1.3))
""",
        XPURT_LEARN="0",
    ) == ["0"]


def test_rows_that_cannot_be_computed_apart_stay_whole() -> None:
    assert (
        auto(
            ALIKE
            + """
x = x.view(1024, 1024)
for dim in (1, 0):
    for call in (lambda: x.softmax(dim), lambda: x.sum(dim)):
        print(built(call)[1])
""",
            XPURT_LEARN="0",
        )
        == ["{'gpu': 1, 'cpu': 1}"] * 2 + ["{'gpu': 0, 'cpu': 0}"] * 2
    )


def test_small_work_and_deterministic_work_is_not_divided() -> None:
    assert auto(
        ALIKE
        + """
alike(launch_us=0)
x[:1000] * 2
torch.use_deterministic_algorithms(True)
x * 2
print(shards())
""",
        XPURT_LEARN="0",
    ) == ["{'gpu': 0, 'cpu': 0}"]


def test_a_device_that_turns_out_slow_gets_nothing_any_more() -> None:
    first, later = auto(
        ALIKE
        + """
dear()
for _ in range(8): y = x * 2; torch.xpu.synchronize()
wait_for_builds()
for _ in range(20): y = x * 2; torch.xpu.synchronize()
print(shards()["gpu"] > 0)
before = shards()["gpu"]
for _ in range(20): y = x * 2; torch.xpu.synchronize()
print(shards()["gpu"] - before)
""",
        XPURT_VIRTUAL_GPU_DELAY_US="200000",
    )
    assert first == "True"
    assert later == "0"


def test_nothing_is_done_twice_while_a_kernel_is_built(tmp_path) -> None:
    first, then = auto(
        ALIKE
        + """
dear()
x * 2
wait_for_builds()  # home's kernel is there
before = shards()["cpu"]
x.mul_(2)
print(shards()["cpu"] - before, torch.equal(x.cpu(), cpu * 2))  # the other one was to be the GPU's
wait_for_builds()
x.mul_(2)
print(torch.equal(x.cpu(), cpu * 4), shards()["gpu"] > 1)
""",
        XPURT_CACHE_DIR=str(tmp_path),
    )
    assert first == "2 True"
    assert then == "True True"


def test_a_call_that_is_dropped_takes_back_its_time_on_all_devices(tmp_path) -> None:
    """Seen while other work is pending: a wait would set all clocks back."""
    assert auto(
        ALIKE
        + """
import contextlib, io
dear()
small = torch.ones(1 << 12, device="xpu")
with xpurt.prefer("GPU"): small.tanh()
torch.xpu.synchronize()
with xpurt.prefer("GPU"): small.tanh()  # pending from now on
x * 2  # divided, and dropped: home's kernel is being built
with contextlib.redirect_stdout(io.StringIO()): (row,) = xpurt.explain(small.sin).rows
print(_C.testing.builds_pending() > 0, max(each.free_us for each in row.candidates) < 1e6)
wait_for_builds()
""",
        XPURT_CACHE_DIR=str(tmp_path),
        XPURT_VIRTUAL_GPU_DELAY_US="500000",
    ) == ["True True"]


SAID = """
def said(call):
    _, warned = quietly(call)
    return [each.split(": ")[1].split(". ")[0] for each in warned]
"""


def test_nothing_is_done_twice_where_home_refuses_its_kernel(tmp_path) -> None:
    assert auto(
        ALIKE
        + SPOILT
        + SAID
        + """
dear()
is_bad = False
spoil("mul", when=lambda: is_bad)
with xpurt.prefer("GPU"): x.clone().mul_(2)  # its kernel is there
is_bad = True
print(said(lambda: x.mul_(2)), torch.equal(x.cpu(), cpu * 2))
wait_for_builds()
print(said(lambda: x.mul_(2)), torch.equal(x.cpu(), cpu * 4))
""",
        XPURT_CACHE_DIR=str(tmp_path),
    ) == ["[] True", '["from now on PyTorch\'s CPU kernel computes it"] True']


def test_what_another_device_refuses_home_does_from_then_on(tmp_path) -> None:
    first, then, last = auto(
        ALIKE
        + SPOILT
        + SAID
        + """
dear()
spoil("mul", when=lambda: len(asked) > 1)  # home's is the first
x * 2
wait_for_builds()
print(said(lambda: x.mul_(2)), torch.equal(x.cpu(), cpu * 2))
wait_for_builds()
print(*said(lambda: x.mul_(2)), torch.equal(x.cpu(), cpu * 4))
before = len(asked)
print(said(lambda: x.mul_(2)), torch.equal(x.cpu(), cpu * 8), len(asked) - before)
""",
        XPURT_CACHE_DIR=str(tmp_path),
    )
    assert first == "[] True"
    assert then.endswith(" computes it True")
    assert "PyTorch" not in then
    assert last == "[] True 0"


def test_the_parts_of_a_shard_run_where_the_shard_runs() -> None:
    """The GPU computes its images by products. Its costs are so high that each product
    would run at home if it were decided for itself."""
    assert auto(
        """
from torch.nn import functional as F
costs(10, 1e6)
torch.manual_seed(0)
operands = torch.randn(8, 8, 20, 20), torch.randn(8, 8, 3, 3)
x, w = (each.to("xpu") for each in operands)
with xpurt.prefer("GPU"): F.conv2d(x, w, padding=1)  # its kernels are there
torch.xpu.synchronize()
ran_on("")
_C.testing.set_split_proportions([0.5, 0.5])
y = F.conv2d(x, w, padding=1)
rows = xpurt.op_report(reset=True).rows
print({r.op: (r.tier, names[r.device]) for r in rows if r.op == "aten::bmm"})
print({r.tier for r in rows if r.op != "aten::convolution_overrideable"})
expected = F.conv2d(*operands, padding=1)
print(torch.allclose(y.cpu(), expected, rtol=1e-4, atol=1e-4))
""",
        XPURT_LEARN="0",
    ) == ["{'aten::bmm': ('sycl', 'gpu')}", "{'sycl'}", "True"]


def test_the_gradients_of_a_convolution_are_divided_without_primitives() -> None:
    """The GPU computes its images by products, as it computes whole calls."""
    assert auto(
        """
from torch.nn import functional as F
costs(10, 1e6)
torch.manual_seed(0)
operands = torch.randn(8, 8, 20, 20), torch.randn(8, 8, 3, 3), torch.randn(8)
def gradients(leaves):
    leaves = [each.requires_grad_() for each in leaves]
    y = F.conv2d(*leaves, padding=1)
    grad = torch.linspace(-1, 1, y.numel()).view(y.shape).to(y.device)
    return torch.autograd.grad(y, leaves, grad)
x = [each.to("xpu") for each in operands]
with xpurt.prefer("GPU"): gradients(x)  # its kernels are there
torch.xpu.synchronize()
_C.testing.set_split_proportions([0.5, 0.5])
before = _C.testing.shards_run(0)
found = gradients(x)
both = [now - then for now, then in zip(_C.testing.shards_run(0), before)]
print(both)
for one, other in zip(found, gradients(operands)):
    torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)
""",
        XPURT_LEARN="0",
    ) == ["[2, 2]"]


def test_a_call_does_not_wait_for_the_kernels_of_its_parts(tmp_path) -> None:
    """On the GPU a convolution is a function of Python, and its kernels have to be
    built. Until then home computes it."""
    assert auto(
        """
from torch.nn import functional as F
torch.manual_seed(0)
operands = torch.randn(8, 8, 20, 20), torch.randn(8, 8, 3, 3)
x, w = (each.to("xpu") for each in operands)
costs(1e6, 10)
expected = F.conv2d(*operands, padding=1)
ran = []
while ran[-1:] != ["gpu"] and len(ran) < 20:
    y = F.conv2d(x, w, padding=1)
    ran.append(names[next(r.device for r in xpurt.op_report(reset=True).rows
                          if r.op == "aten::convolution_overrideable")])
    assert torch.allclose(y.cpu(), expected, rtol=1e-4, atol=1e-4)
    while _C.testing.builds_pending(): time.sleep(0.01)
print(ran[0], ran[-1])
""",
        XPURT_LEARN="0",
        XPURT_CACHE_DIR=str(tmp_path),
    ) == ["cpu gpu"]


def few_are_timed() -> bool:
    code = """
_C.testing.set_learning_bias(10**6, 10**6)  # of whole calls, so that shards are faster
built(lambda: x * 2)
for _ in range(100): x * 2
xpurt.op_report(reset=True)
for _ in range(900): x * 2
torch.xpu.synchronize()
rows = {names[row.device]: row for row in xpurt.op_report().devices}
for kind, row in sorted(rows.items()):
    print(kind, row.split_ops > 600, row.timed < row.split_ops / 3)
"""
    return auto(ALIKE + code) == ["cpu True True", "gpu True True"]


def test_few_of_the_calls_that_are_divided_are_timed() -> None:
    """Also if whole calls, of which there are none any more, were timed too few times. In one
    of three programs: a device that other processes delay is timed more often."""
    assert any(few_are_timed() for _ in range(3))


def test_an_error_of_earlier_work_is_not_taken_for_the_shards() -> None:
    """The GPU's shard begins with a wait, which raises. Without that error the shard
    would move home."""
    assert auto(
        """
from torch.nn import functional as F
from xpurt.kernels import registration
costs(10, 1e6)
operands = torch.randn(8, 8, 20, 20), torch.randn(8, 8, 3, 3)
x, w = (each.to("xpu") for each in operands)
with xpurt.kernel_policy("sycl"):
    F.embedding_bag(torch.tensor([[9]], device="xpu"), torch.ones(3, 4, device="xpu"))
def make_form(*of_products):
    torch.xpu.synchronize()
    return registration.make_form(*of_products)
_C.set_form_maker(make_form)
_C.testing.set_split_proportions([0.5, 0.5])
before = _C.testing.shards_run(0)
try: F.conv2d(x, w, padding=1)
except RuntimeError as error: print("submitted earlier" in str(error))
print([now - then for now, then in zip(_C.testing.shards_run(0), before)])
y, wanted = F.conv2d(x, w, padding=1), F.conv2d(*operands, padding=1)
print(torch.allclose(y.cpu(), wanted, rtol=1e-4, atol=1e-4))
""",
        XPURT_LEARN="0",
    ) == ["True", "[1, 1]", "True"]
