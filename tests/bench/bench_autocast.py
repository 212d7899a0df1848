"""ResNet-18 on 8 images of 32x32: autocast with a layout beside torch.autocast.

All forms run in one process, in turns. The processor time of one thread, the least of
the rounds, and its ratio to float32 without autocast. Run it from the root:
OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 DPCPP_CPU_NUM_CUS=1 \
    python tests/bench/bench_autocast.py cpu [--rounds 12]
"""

import argparse
import contextlib
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import xpurt
from xpurt_tools.bench.models import resnet18

Block = Callable[[], contextlib.AbstractContextManager[object]]


def blocks(device: str) -> dict[str, Block]:
    def with_layout(dtype: torch.dtype) -> Block:
        return lambda: xpurt.autocast(device, dtype, layout=torch.mkldnn)

    return {
        "float32": contextlib.nullcontext,
        "float32, layout": with_layout(torch.float32),
        "bfloat16, torch.autocast": lambda: torch.autocast(device, torch.bfloat16),
        "bfloat16, layout": with_layout(torch.bfloat16),
    }


def inference(model: nn.Module, x: Tensor, block: Block) -> None:
    with torch.no_grad(), block():
        model(x)


def training(model: nn.Module, x: Tensor, block: Block) -> None:
    model.zero_grad()
    with block():
        loss = model(x).float().square().sum()
    loss.backward()


def milliseconds(call: Callable[[], None]) -> float:
    begin = time.process_time_ns()
    call()
    torch.xpu.synchronize()
    return (time.process_time_ns() - begin) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", choices=["cpu", "xpu"])
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, x = resnet18(10).to(given.device), torch.randn(8, 3, 32, 32).to(given.device)
    for work in (inference, training):
        model.train(work is training)
        forms = blocks(given.device)
        times: dict[str, list[float]] = {name: [] for name in forms}
        for _ in range(given.rounds + 2):  # two to warm up
            for name, block in forms.items():
                times[name].append(milliseconds(lambda: work(model, x, block)))  # noqa: B023
        plain = min(times["float32"][2:])
        for name, found in times.items():
            least = min(found[2:])
            print(f"{work.__name__:10} {name:25} {least:6.1f} ms  {least / plain:.2f}")


if __name__ == "__main__":
    main()
