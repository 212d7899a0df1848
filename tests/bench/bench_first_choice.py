"""How right the costs are before anything was learned: for each class of ops, the
predicted over the measured time of each tier alone, in warm state, and the time of the
tier that the first call takes over that of the better one. Each cell has the figures of
4,096, 131,072 and 2,097,152 elements (of products and attention: multiply-adds grow with
them). "-": the call is so small that PyTorch's kernel is taken without a prediction.

The ops are mostly others than those by which classes are calibrated, on other sizes.

Run it from the root on a quiet machine:
python tests/bench/bench_first_choice.py [--cache FOLDER]

Without `--cache` the shipped table is used; with it, a calibration of that folder.
"""

import argparse
import dataclasses
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from torch.nn import functional

import xpurt
from xpurt import _C, config
from xpurt.kernels.costs import calibration_store

Call = Callable[[], object]
ROUNDS, MOST_S = 7, 0.1
SIZES = (1 << 12, 1 << 17, 1 << 21)
# The threads of PyTorch's kernels spin for some milliseconds after their last work.
REST_S = 4e-3


def rows(n: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(max(n // 384, 1), 384).add(0.5).to(dtype).to("xpu")


def pointwise(n: int) -> Iterator[tuple[str, Call]]:
    x, y = rows(n), rows(n)
    half = rows(n, torch.bfloat16)
    yield "few elements", lambda: torch.add(x[:1, :64], y[:1, :64])
    yield "cheap", lambda: torch.mul(x, y)
    yield "cheap, bfloat16", lambda: torch.mul(half, half)
    yield "cheap, row", lambda: torch.mul(x, y[0])
    yield "cheap, strided", lambda: torch.mul(x[:, ::2], y[:, ::2])
    yield "copy", lambda: x.clone()
    yield "to bfloat16", lambda: x.to(torch.bfloat16)
    yield "dear", lambda: torch.exp(x)
    yield "tanh", lambda: torch.tanh(x)
    yield "gelu", lambda: functional.gelu(x)
    yield "sin", lambda: torch.sin(x)
    yield "pow", lambda: torch.pow(x, 2.5)
    yield "special", lambda: torch.special.erfcx(x)
    yield "modified Bessel", lambda: torch.special.i0e(x)
    yield "incomplete gamma", lambda: torch.igammac(x, y)
    yield "polynomials", lambda: torch.special.chebyshev_polynomial_t(x, y)


def along(n: int) -> Iterator[tuple[str, Call]]:
    x = rows(n)
    weight = rows(384)[0]
    yield "reduction", lambda: x.amax(1)
    yield "reduction, across", lambda: x.mean(0)
    yield "moments", lambda: x.std(1)
    yield "moments, across", lambda: x.var(0)
    yield "softmax", lambda: torch.log_softmax(x, 1)
    yield "line norm", lambda: functional.layer_norm(x, [384], weight, weight)
    yield "extremes", lambda: x.argmin(1)
    yield "scan", lambda: x.cumsum(1)
    yield "sort", lambda: x.sort(1)
    yield "draws", lambda: x.uniform_()
    yield "rearranging", lambda: x.roll(3, 1)
    index = torch.randint(x.shape[0], (x.shape[0],)).to("xpu")
    yield "gathering", lambda: torch.index_select(x, 0, index)
    yield "indexing", lambda: x[index]


def products(n: int) -> Iterator[tuple[str, Call]]:
    side = max(int((8 * n) ** (1 / 3)) // 8 * 8, 16)
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        x = torch.rand(2 * side, side).to(dtype).to("xpu")
        weight = torch.rand(side, side).to(dtype).to("xpu")
        yield f"product, {name}", partial(functional.linear, x, weight)
    images = torch.rand(2, 48, 28, 28, device="cpu")[:, :, : max(n >> 16, 4)].to("xpu")
    window = torch.rand(64, 48, 3, 3).to("xpu")
    yield "convolution", lambda: functional.conv2d(images, window, padding=1)
    tokens = max(int((n / 128) ** 0.5) // 8 * 8, 8)
    x = torch.rand(2, 4, tokens, 64).to("xpu")
    attend = functional.scaled_dot_product_attention
    yield "attention", lambda: attend(x, x, x)
    side = max(int((n / 32) ** 0.5), 8)
    images = torch.rand(2, 16, side, side).to("xpu")
    yield "pooling", lambda: functional.max_pool2d(images, 3, 2)
    yield "averaging", lambda: functional.avg_pool2d(images, 3, 2)
    norm = torch.nn.BatchNorm2d(16).to("xpu")
    yield "batch norm", lambda: norm(images)


def warm_us(policy: str, call: Call) -> float:
    with xpurt.kernel_policy(policy):
        call()
        torch.xpu.synchronize()
        time.sleep(REST_S)
        least, end = float("inf"), time.perf_counter() + MOST_S
        for turn in range(10 * ROUNDS):
            begin = time.perf_counter()
            call()
            torch.xpu.synchronize()
            now = time.perf_counter()
            least = min(least, (now - begin) * 1e6)
            if turn >= ROUNDS and now > end:
                break
        return least


def predicted_us(call: Call) -> tuple[float, float]:
    """Native and kernel; 0 if the op had no choice. An op that is computed by others ends
    after them."""
    native = kernel = 0.0
    begin = _C.begin_explaining()
    call()
    for *_, candidates in _C.end_explaining(begin):
        for _, is_native, _, _, cost_us, *_ in candidates:
            if is_native:
                native = cost_us
            else:
                kernel = cost_us
    return native, kernel


@dataclasses.dataclass
class Times:
    """Of one call, by tier; the least of all passes. Microseconds."""

    native: float = math.inf
    kernel: float = math.inf
    predicted_native: float = 0.0
    predicted_kernel: float = 0.0

    def add_pass(self, call: Call) -> None:
        self.native = min(self.native, warm_us("native", call))
        self.kernel = min(self.kernel, warm_us("sycl", call))
        self.predicted_native, self.predicted_kernel = predicted_us(call)

    def cells(self) -> tuple[str, str, str]:
        takes_kernel = 0 < self.predicted_kernel < self.predicted_native
        chosen = self.kernel if takes_kernel else self.native
        pairs = (
            (self.predicted_native, self.native),
            (self.predicted_kernel, self.kernel),
        )
        native, kernel = (f"{us / took:.2f}" if us else "-" for us, took in pairs)
        return native, kernel, f"{chosen / min(self.native, self.kernel):.2f}"


def measure(passes: int) -> None:
    found: dict[str, list[Times]] = {}
    for _ in range(passes):
        for place, n in enumerate(SIZES):
            for make in (pointwise, along, products):
                for name, call in make(n):
                    times = found.setdefault(name, [Times() for _ in SIZES])
                    times[place].add_pass(call)
    print("| class | native | kernel | first choice |\n| --- | ---: | ---: | ---: |")
    for name, by_size in found.items():
        columns = zip(*(times.cells() for times in by_size), strict=True)
        print(f"| {name} | {' | '.join(', '.join(column) for column in columns)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    cache = options.cache
    with tempfile.TemporaryDirectory() as empty:
        folder = cache or Path(empty)
        made = dataclasses.replace(config.config(), cache_folder=folder)
        with (
            mock.patch.object(calibration_store, "config", return_value=made),
            xpurt.xpu_mapping("CPU"),
        ):
            _C.set_learning(False)
            measure(options.passes)


if __name__ == "__main__":
    main()
