"""More than 2^31 elements: indices and counts that 32 bits can't hold.

By default with few pages touched; a whole tensor of 2 GiB is for the slow tests. Each
in a process of its own, which gives the memory back.
"""

import pytest
from own_process import output

from xpurt import _C

BEGIN = """
import torch, xpurt
from xpurt import _C
xpurt.set_kernel_policy({policy!r})
_C.set_fallback_mode("silent")
H = 1 << 31
N = H + 1000
x = torch.empty(N, dtype=torch.uint8, device="xpu")
def index(*at): return torch.tensor(at, device="xpu")
"""

FEW_PAGES = """
# Offsets and strides beyond 2^31 ...
x[-1000:].copy_(torch.arange(1000) % 200)
x[:8].fill_(1)
print(x[-4:].tolist(), x[H:H + 3].add(1).tolist(), x[H + 5].item())
spread = x[:: H // 4]
spread.fill_(3).add_(4).mul_(2)
print(spread.tolist(), spread.sum().item(), spread.amax().item(), x[H + 1].item())
columns = x[:2 * (N // 2)].view(2, -1)[:, -4:]
columns.copy_(torch.arange(8).view(2, 4))
print((columns + columns).tolist(), columns.sum(0).tolist(), columns.sum(1).tolist())
print(torch.cat((spread, columns[1])).tolist(), columns.flip(0).tolist())
print(torch.where(columns > 3, columns, 9).tolist(), columns[columns > 5].tolist())
columns.masked_fill_(columns > 5, 50)
print(columns.tolist(), columns.max(1).indices.tolist())
# ... indices as tensors ...
print(x[index(0, H, N - 1)].tolist(), x.index_select(0, index(H)).tolist())
x.index_fill_(0, index(H + 7), 77)
x.index_add_(0, index(H + 7), x[:1].clone())
x[index(N - 3)] = 66
print(x[H + 7].item(), x.take(index(N - 3, 0)).tolist(), x.gather(0, index(H)).tolist())
# ... and as many elements in one place, and in many rows of it.
wide = torch.full((1,), 2, dtype=torch.uint8, device="xpu").expand(N)
print(wide.amax().item(), wide.numel(), wide.nbytes == N, wide[N - 5:].sum().item())
print(wide[:: H // 2].tolist())
"""
FEW_PAGES_RESULT = """\
[196, 197, 198, 199] [1, 2, 3] 5
[14, 14, 14, 14, 14] 70 14 1
[[0, 2, 4, 6], [8, 10, 12, 14]] [4, 6, 8, 10] [6, 22]
[14, 14, 14, 14, 14, 4, 5, 6, 7] [[4, 5, 6, 7], [0, 1, 2, 3]]
[[9, 9, 9, 9], [4, 5, 6, 7]] [6, 7]
[[0, 1, 2, 3], [4, 5, 50, 50]] [3, 2]
[14, 14, 50] [14]
91 [66, 14] [14]
2 2147484648 True 10
[2, 2, 2]"""

WHOLE = """
x.fill_(1)
x[-3:] = 5
def ends(t): return [t[0].item(), t[H - 1].item(), t[H].item(), t[-1].item()]
print(ends(x), x.amax().item(), x.argmax().item() == N - 3, x.any().item())
x.add_(2).mul_(3)
print(ends(x))
x.masked_fill_(x > 9, 8)
print(ends(x), (x[H:] == 8).sum().item())
y = x.clone()
print(ends(y), torch.equal(x, y))
y.copy_(x[:1].expand(N))
print(ends(y))
torch.add(x, y, out=y)
print(ends(y))
torch.where(y > 17, x, y, out=y)
print(ends(y))
del y
y = torch.cat((x[-5:], x[:H]))
print(y.numel() - H, y[:6].tolist(), y[-1].item())
del y
print(x[:H].view(4, -1).amax(1).tolist(), x[:H].view(-1, 4).amax(0).tolist())
print(x.view(-1, 8)[-1].tolist(), x[x.view(torch.bool)[:1].long()].tolist())
"""
WHOLE_RESULT = """\
[1, 1, 1, 5] 5 True 1
[9, 9, 9, 21]
[9, 9, 9, 8] 3
[9, 9, 9, 8] True
[9, 9, 9, 9]
[18, 18, 18, 17]
[9, 9, 9, 17]
5 [9, 9, 8, 8, 8, 9] 9
[9, 9, 9, 9] [9, 9, 9, 9]
[9, 9, 9, 9, 9, 8, 8, 8] [9]"""

# A sum of bytes is one of int64, of which PyTorch's kernel makes a copy of 16 GiB.
SUMS = """
x.fill_(1)
print(x.sum().item() - N, x[:H].view(4, -1).sum(1).tolist(), x[:H].view(-1, 2).sum(0).tolist())
ones = x[:1].expand(N)
print(ones.sum().item() - N)
"""


def run(code: str, policy: str, needed_gib: float, mapping: str = "CPU") -> list[str]:
    _, free_bytes, _ = _C.host_memory()
    if free_bytes < needed_gib * 2**30:
        pytest.skip(f"{free_bytes / 2**30:.1f} GiB of memory, not {needed_gib}")
    return output(
        BEGIN.format(policy=policy) + code, timeout=300, XPURT_MAPPING=mapping
    ).splitlines()


@pytest.mark.rest
@pytest.mark.parametrize(
    "kernels", ["sycl", pytest.param("native", marks=pytest.mark.slow)]
)
def test_offsets_and_counts(kernels: str) -> None:
    assert run(FEW_PAGES, kernels, 3) == FEW_PAGES_RESULT.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["sycl", "native"])
def test_every_element(kernels: str) -> None:
    # A mask and an index of it are there for a moment.
    assert run(WHOLE, kernels, 8) == WHOLE_RESULT.splitlines()


@pytest.mark.slow
def test_sums_of_every_element() -> None:
    assert run(SUMS, "sycl", 4) == [f"0 {[1 << 29] * 4} {[1 << 30] * 2}", "0"]


# PyTorch's kernel makes no difference between indices from the front and the end.
ADDED = """
x.view(torch.int8)[:4].fill_(1)
x.view(torch.int8)[-4:].fill_(1)
y = x.view(torch.int8)
at, values = index(-2, 0, -2, -1, 0, -1, 1), [6, 5, 6, 6, 5, 7, 11]
values = torch.tensor(values, dtype=torch.int8, device="xpu")
y.index_put_((at,), values, accumulate=True)
print(y[:4].tolist(), y[-4:].tolist())
y.put_(at, -values, accumulate=True)
print(y[:4].tolist(), y[-4:].tolist())
import warnings
warnings.simplefilter("ignore")  # a GPU's kernel declines these, too
for refused in (lambda: y[:1].expand(N).put_(at, values), lambda: y.put_(at[:1], y[:1])):
    try:
        print(refused())
    except RuntimeError as error:
        print("single memory location" in str(error))
"""
ADDED_RESULT = [
    "[11, 12, 1, 1] [1, 1, 13, 14]",
    "[1, 1, 1, 1] [1, 1, 1, 1]",
    "True",
    "True",
]


@pytest.mark.rest
@pytest.mark.parametrize(
    "mapping", ["CPU", pytest.param("GPU", marks=pytest.mark.slow)]
)
def test_what_is_added_is_added_once(mapping: str) -> None:
    assert run(ADDED, "sycl", 6, mapping) == ADDED_RESULT
