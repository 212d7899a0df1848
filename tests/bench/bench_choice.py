"""What the choice of a tier costs per op, without the op itself.

With a table of costs, with and without learning, and on operands that are too small to
be looked at. Run it from the root: python tests/bench/bench_choice.py
"""

import statistics

import torch

import xpurt
from xpurt import _C

CALLS = 1_000_000
ROUNDS = 9


def median_ns(name: str, overload: str, operands: list[torch.Tensor]) -> float:
    return statistics.median(
        _C.testing.choice_ns(name, overload, operands, CALLS) for _ in range(ROUNDS)
    )


def main() -> None:
    large = torch.ones(1 << 14, device="xpu")
    small = torch.ones(1 << 10, device="xpu")
    matrix = torch.ones(128, 128, device="xpu")
    print(f"{'op':>10} {'operands':>14} {'learning':>9} {'ns':>6}")
    for learning in (False, True):
        _C.set_learning(learning)
        # Decided once: from now on it is looked up.
        for _ in range(1_000):
            large + large
            matrix + matrix.t()
        for shown, operands in (
            ("1K", [small, small]),
            ("16K", [large, large]),
            ("16K strided", [matrix, matrix.t()]),
        ):
            ns = median_ns("aten::add", "Tensor", operands)
            print(f"{'add':>10} {shown:>14} {'on' if learning else 'off':>9} {ns:6.1f}")


if __name__ == "__main__":
    xpurt.set_xpu_mapping("CPU")
    main()
