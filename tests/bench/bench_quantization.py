"""Quantized models on CPU tensors, against the same models in float32, eager.

Ratios of the processor time of one thread, alternating in one process: the median over
the rounds. Run it from the root:
taskset -c 0 python tests/bench/bench_quantization.py [--rounds 9]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import xpurt
from xpurt_tools.bench.models import TransformerLayer, resnet18
from xpurt_tools.bench.networks import decoder

WIDTH, HEADS, LAYERS = 768, 12, 12


def encoder() -> nn.Module:
    return nn.Sequential(*(TransformerLayer(WIDTH, HEADS) for _ in range(LAYERS)))


CASES: list[tuple[str, Callable[[], nn.Module], tuple[int, ...], list[str]]] = [
    (
        "ResNet-18, 8 images",
        lambda: resnet18(10),
        (8, 3, 32, 32),
        ["static", "dynamic"],
    ),
    ("BERT-base, 128 tokens", encoder, (1, 128, WIDTH), ["static", "dynamic"]),
    (
        "GPT-2, a token",
        lambda: decoder()[0],
        (1, 1, WIDTH),
        ["int8_weight_only", "int4_weight_only", "dynamic"],
    ),
]


def processor_ms(model: nn.Module, x: Tensor) -> float:
    begin = time.process_time_ns()
    model(x)
    return (time.process_time_ns() - begin) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for name, make, shape, kinds in CASES:
        plain, x = make().eval(), torch.randn(shape)
        models = {"float32": plain}
        for kind in kinds:
            models[kind] = xpurt.quantize(plain, kind, calibration=[x])
        with torch.inference_mode():
            times = [
                {kind: processor_ms(model, x) for kind, model in models.items()}
                for _ in range(rounds + 1)
            ][1:]
        base = statistics.median(each["float32"] for each in times)
        print(f"{name}: float32 {base:.1f} ms")
        for kind in kinds:
            ratio = statistics.median(each[kind] / each["float32"] for each in times)
            print(f"  {kind:18} {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
