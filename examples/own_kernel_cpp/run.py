"""Your own kernel in C++: built at the first run, then an op like any other."""

from pathlib import Path

import torch

from xpurt import cpp_extension


def main() -> None:
    # Takes a while once: PyTorch caches what it built (TORCH_EXTENSIONS_DIR).
    cpp_extension.load("mine", [str(Path(__file__).with_name("mine.cpp"))])

    x = torch.arange(6.0, device="xpu")
    y = x + 1  # a kernel of xpurt's
    torch.ops.mine.twice_(y)  # your kernel, on the same stream: no wait in between
    print((y - x).tolist())

    try:
        torch.ops.mine.twice_(torch.ones(2, dtype=torch.int64, device="xpu"))
    except RuntimeError as error:
        print("refused:", str(error).splitlines()[0])


if __name__ == "__main__":
    main()
