"""Ordinary xpu tensors that are traced. A process has one lazy backend."""

import pytest
from lazy_mappings import with_gpu
from own_process import compiling_output as output

START = """
import copy, io, logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
from torch import nn
F = nn.functional
"""

TRAINING = (
    START
    + """
xpurt.lazy.init(compile={compile!r})
torch.manual_seed(0)
first = nn.Sequential(
    nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
    nn.Dropout(0.2), nn.Linear(144, 3),
).to("xpu", memory_format=torch.channels_last)
second = copy.deepcopy(first)
images, labels = torch.rand(5, 1, 8, 8), torch.tensor([0, 2, 1, 1, 0])

def losses(model, cut):
    torch.manual_seed(3)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to("xpu")), labels.to("xpu"))
        loss.backward()
        optimizer.step()
        cut()
        found.append(loss.detach())
    return torch.stack(found)

eager = losses(first, lambda: None)
with xpurt.lazy.mode():
    traced = losses(second, xpurt.lazy.step)
    assert traced.device == eager.device and traced.is_xpu
torch.testing.assert_close(traced.cpu(), eager.cpu(), rtol=1e-4, atol=1e-5)
for one, other in zip(first.state_dict().items(), second.state_dict().items(), strict=True):
    assert type(other[1]) is torch.Tensor and other[1].is_xpu, other[0]
    torch.testing.assert_close(one[1], other[1], rtol=1e-3, atol=1e-4, msg=one[0])
print("the same", [each.error for each in xpurt.lazy.compilations() if each.error])
"""
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("mapping", "compile"),
    [
        pytest.param("CPU", "never", marks=pytest.mark.slow),
        pytest.param("GPU", "never", marks=pytest.mark.slow),
        ("AUTO", "never"),
        ("CPU", "always"),
    ],
)
def test_an_xpu_model_is_trained_in_the_mode(mapping: str, compile: str) -> None:
    code = TRAINING.format(compile=compile)
    assert output(code, timeout=240, XPURT_MAPPING=with_gpu(mapping)) == "the same []"


VALUES = (
    START
    + """
xpurt.lazy.init(compile="never")
import torch._lazy.metrics as metrics

there = torch.arange(6.0, device="xpu").view(2, 3)
row, turned = there[1], there.t()
kept = there.clone()
gaps = torch.arange(12.0, device="xpu").view(3, 4)[:, ::2]
moved = torch.arange(24.0, device="xpu").view(2, 3, 4).permute(1, 2, 0)
with xpurt.lazy.mode():
    doubled, shifted = gaps * 2, moved + 1
    y = there * 2
    assert type(y) is xpurt.lazy.TracedTensor and y.device == there.device
    row.add_(10)                     # seen by all that share the memory
    turned[0, 0] = -1
    z = there + y
    there.mul_(2)
    xpurt.lazy.step()
    at_a_step = torch.utils.dlpack.from_dlpack(there.__dlpack__())
    runs = metrics.counter_value("CachedCompile"), metrics.counter_value("UncachedCompile")
    new = torch.ones(2, device="xpu", requires_grad=True)
    (new * new.sum()).sum().backward()
    view = z.view(-1)
print(there.tolist(), row.tolist(), turned.tolist()[0])
print(at_a_step.tolist() == there.tolist(), z.cpu().tolist(), new.grad.tolist())
print(y[0, 1].item(), (y + 1).tolist()[1], type(y + 1) is torch.Tensor)
view[0] = 5.0                        # after the mode: its aliases see it
z[1].zero_()
print(view.tolist(), z.sum().item(), kept.sum().item())
print(repr(y).splitlines()[0])
saved = io.BytesIO()
torch.save(y, saved)
saved.seek(0)
print(torch.equal(torch.load(saved), y.value()), torch.equal(copy.deepcopy(y), y.value()))
y.value().zero_()                    # a copy
trained = y.detach().requires_grad_()
one, two = copy.deepcopy([trained, trained])
saved = io.BytesIO()
torch.save(trained, saved)
saved.seek(0)
print(doubled.tolist(), torch.equal(shifted.cpu(), moved.cpu() + 1))
print(y.sum().item(), one is two, one.requires_grad, torch.load(saved).requires_grad)
"""
)


def test_values_and_memory_are_those_of_eager_tensors() -> None:
    assert output(VALUES).splitlines() == [
        "[[-2.0, 2.0, 4.0], [26.0, 28.0, 30.0]] [26.0, 28.0, 30.0] [-2.0, 26.0]",
        "True [[-1.0, 3.0, 6.0], [19.0, 22.0, 25.0]] [4.0, 4.0]",
        "2.0 [7.0, 9.0, 11.0] True",
        "[5.0, 3.0, 6.0, 0.0, 0.0, 0.0] 14.0 15.0",
        "tensor([[ 0.,  2.,  4.],",
        "True True",
        "[[0.0, 4.0], [8.0, 12.0], [16.0, 20.0]] True",
        "30.0 True True True",
    ]


def test_a_view_that_is_made_after_the_mode_is_one() -> None:
    code = """
xpurt.lazy.init(compile="never")
x = torch.arange(4.0, device="xpu")
with xpurt.lazy.mode():
    y = x * 2
view = y[1:]
y.mul_(3)
print(view.tolist())
view.add_(1)
print(y.tolist())
"""
    assert output(START + code).splitlines() == [
        "[6.0, 12.0, 18.0]",
        "[0.0, 7.0, 13.0, 19.0]",
    ]


MADE_WITHIN = (
    START
    + """
xpurt.set_xpu_mapping("{mapping}")
xpurt.lazy.init(compile="never")

def trained(device):
    x = torch.arange(12.0, device=device).view(3, 4).cos()
    model = nn.BatchNorm1d(4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    (model(x) * x).sum().backward()
    optimizer.step()
    return model

plain, other = torch.ones(3, device="xpu"), torch.zeros(3, device="xpu")
expected = trained("cpu")
with xpurt.lazy.mode():
    model = trained("xpu")
    print(torch.allclose(model.running_mean.cpu(), expected.running_mean))
    print(repr(model.running_mean) == repr(expected.running_mean.to("xpu")))
    plain + 1
    plain.data = other
    print((plain + 1).tolist())
    traced = plain * 2
    try:
        plain.data = traced
    except RuntimeError as error:
        print("incompatible tensor type" in str(error))
try:
    plain.data = traced
except RuntimeError as error:
    print("incompatible tensor type" in str(error))
for found in model.parameters():
    print(isinstance(found, nn.Parameter), found.requires_grad)
print(all(torch.allclose(a.cpu(), b) for a, b in
          zip(model.state_dict().values(), expected.state_dict().values())))
"""
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mapping", ["CPU", "GPU", "AUTO"])
def test_modules_are_made_and_moved_in_the_mode(mapping: str) -> None:
    code = MADE_WITHIN.replace("{mapping}", with_gpu(mapping))
    assert output(code).splitlines() == [
        "True",
        "True",
        "[1.0, 1.0, 1.0]",
        *["True"] * 2,
        *["True True"] * 2,
        "True",
    ]


ORDINALS = (
    START
    + """
xpurt.lazy.init(compile="never")
with xpurt.lazy.mode(), torch.xpu.device(1):
    made = torch.ones(2, device="xpu")
print(made.device, made.tolist())
"""
)


def test_a_device_without_an_index_is_the_current_one() -> None:
    found = output(ORDINALS, XPURT_MAPPING=with_gpu("explicit"))
    assert found == "xpu:1 [1.0, 1.0]"


NUMBERS = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.ones(3, device="xpu")
with xpurt.lazy.mode():
    y = (x + 1).clamp(max=1.5).fill_(4)
print(y.tolist())
del x, y
xpurt.set_xpu_mapping("GPU")
print(torch.xpu.get_device_name())
"""
)


def test_numbers_of_a_program_do_not_hold_the_mapping() -> None:
    assert output(NUMBERS).splitlines() == [
        "[4.0, 4.0, 4.0]",
        "xpurt virtual GPU (strict)",
    ]


SET = (
    START
    + """
import contextlib
xpurt.lazy.init(compile="never")

def program(mode):
    x, y = torch.arange(4.0, device="xpu"), torch.arange(6.0, device="xpu")
    left = x[1:]
    with mode:
        x.add_(1)
        x.set_(y[2:])
        x.mul_(2)
        y.add_(1)
        left.sub_(3)
        z = x + left.sum()
        z.sub_(x.unbind(0)[1])
    return [each.tolist() for each in (x, y, left, z)]

print(program(xpurt.lazy.mode()) == program(contextlib.nullcontext()))
x = torch.ones(3, device="xpu")
with xpurt.lazy.mode():
    z = x + 1
    for wrong in lambda: x.set_(z[1:]), lambda: z.set_(x):
        try:
            wrong()
        except NotImplementedError as error:
            print(str(error)[:10])
"""
)


def test_set_in_the_mode_gives_a_tensor_the_memory_of_another() -> None:
    assert output(SET).splitlines() == ["True", "set_ gives", "set_ gives"]


ERRORS = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.arange(4.0, device="xpu")
whole, bits = x, x.view(torch.int32)
with xpurt.lazy.mode():
    x + 1
    for wrong in (
        lambda: bits + 1,
        lambda: x.view(3, 3),
        lambda: x @ torch.ones(5, device="xpu"),
        lambda: (x * 1).resize_(8),
    ):
        try:
            wrong()
            print("no error")
        except Exception as error:
            print(type(error).__name__, str(error)[:50])
    def breaks():
        with xpurt.lazy.mode():
            x.add_(1)
            raise KeyError("a program's own")
    try:
        breaks()
    except KeyError as error:
        print(error, x.tolist())
"""
)


def test_exceptions_keep_their_type() -> None:
    lines = output(ERRORS).splitlines()
    assert (
        lines[0]
        == "NotImplementedError tensors of torch.float32 and torch.int32 share mem"
    )
    assert [each.split()[0] for each in lines[1:4]] == [
        "RuntimeError",
        "RuntimeError",
        "NotImplementedError",
    ]
    assert lines[4] == '"a program\'s own" [1.0, 2.0, 3.0, 4.0]'
