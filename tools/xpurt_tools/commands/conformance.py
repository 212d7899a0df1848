"""`python -m xpurt conformance`."""

import argparse

from xpurt.command_line.arguments import failed, path, positive
from xpurt.startup.extras import MissingExtra


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--mapping",
        nargs="+",
        default=["CPU"],
        metavar="M",
        help="one run under each; default: CPU",
    )
    command.add_argument("--policy", choices=("auto", "sycl", "native"), default="auto")
    command.add_argument(
        "--virtual-gpu",
        choices=("off", "lenient", "coherent", "strict", "svm"),
        default="off",
    )
    command.add_argument(
        "--device", default="xpu", help='"lazy", or a prototype as "ipu"; default: xpu'
    )
    command.add_argument(
        "--dtypes", nargs="+", default=[], metavar="DTYPE", help="as in float32 int64"
    )
    command.add_argument(
        "--ops", nargs="+", default=["*"], metavar="PATTERN", help="as in linalg.*"
    )
    command.add_argument(
        "--sample",
        type=positive,
        default=1,
        metavar="N",
        help="one of N dtypes of each op, and at least one; always the same ones",
    )
    command.add_argument(
        "--samples-per-pair",
        type=positive,
        metavar="N",
        help="of PyTorch's samples for an op and dtype, at most N",
    )
    command.add_argument(
        "--gpu-types",
        choices=("also", "only", "not"),
        default="also",
        help="dtypes of ops that PyTorch has on GPUs and not on the CPU",
    )
    command.add_argument(
        "--compiled",
        action="store_true",
        help="run ops alone, by torch.compile: results and gradients",
    )
    # Those of SWEEPS and LAYERS, whose import takes seconds.
    sweeps = ("arguments", "dtypes", "empties", "shapes")
    command.add_argument("--sweep", choices=sweeps, help="instead of PyTorch's inputs")
    command.add_argument(
        "--through",
        choices=(
            "autocast",
            "compile",
            "cpu_kernels",
            "fused",
            "lazy",
            "optimize",
            "quantize",
        ),
        help="run what it is for through this layer, against eager mode",
    )
    command.add_argument(
        "--models",
        action="store_true",
        help="with --through: small models of timm, torchvision and transformers alone",
    )
    command.add_argument("--jobs", type=positive, default=1, help="processes")
    command.add_argument(
        "--timeout",
        type=positive,
        default=300,
        metavar="S",
        help="seconds for one op in one dtype; default: 300",
    )
    command.add_argument("--json", type=path, help="write all results")
    command.add_argument("--html", type=path, help="write the report as a page")


def run(options: argparse.Namespace) -> int:
    from xpurt_tools.conformance import (
        ALL_DTYPES,
        MODELS,
        BadFile,
        Settings,
        WorkersFailed,
        known_failures_of,
        run_conformance,
    )

    unknown = [name for name in options.dtypes if name not in ALL_DTYPES]
    if unknown:
        wanted = ", ".join(ALL_DTYPES)
        return failed(ValueError(f"no dtype {unknown[0]!r} here; there are {wanted}"))
    if options.models and options.through is None:
        return failed(ValueError("--models wants --through, the layer to run them in"))
    database = {"database": MODELS} if options.models else {}
    alone = options.compiled or options.through is not None
    runs = [
        Settings(
            mapping=mapping,
            policy=options.policy,
            virtual_gpu=options.virtual_gpu,
            dtypes=tuple(options.dtypes),
            ops=tuple(options.ops),
            sample=options.sample,
            samples_per_pair=options.samples_per_pair,
            jobs=options.jobs,
            timeout_s=options.timeout,
            gpu_types="not" if alone else options.gpu_types,
            compiled=options.compiled,
            device=options.device,
            known_failures=known_failures_of(
                options.sweep, options.compiled, options.through
            ),
            sweep=options.sweep,
            through=options.through,
            **database,
        )
        for mapping in options.mapping
    ]
    try:
        return run_conformance(runs, options.json, options.html)
    except (BadFile, MissingExtra, OSError, WorkersFailed) as error:
        return failed(error)
