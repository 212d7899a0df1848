"""The command line: `python -m xpurt`, or `xpurt`, with a subcommand."""

import argparse
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from xpurt.command_line.arguments import failed, path, positive
from xpurt.command_line.conformance_command import add_conformance
from xpurt.errors import nearest


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code.

    0: success; 1: failure, and the output gives the reason; 2: bad usage.
    """
    parser, commands = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        parser.print_help(sys.stderr)
        parser.exit(2)
    if not given[0].startswith("-") and given[0] not in commands:
        near = nearest(given[0], commands)
        hint = f'did you mean "{near}"?' if near else f"there are {', '.join(commands)}"
        parser.error(f'no command "{given[0]}"; {hint}')
    options = parser.parse_args(given)
    try:
        code: int = options.run(options)
    except BrokenPipeError:
        return 1  # `xpurt devices | head -1` needs no traceback
    return code


def _parser() -> tuple[argparse.ArgumentParser, Collection[str]]:
    """The parser, and the names of the commands."""
    parser = argparse.ArgumentParser(
        prog="xpurt", description="PyTorch's xpu device on SYCL"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    devices = commands.add_parser("devices", help="list the physical devices")
    devices.set_defaults(run=_devices)

    doctor = commands.add_parser("doctor", help="look for what keeps xpu from working")
    doctor.set_defaults(run=_doctor)

    demo = commands.add_parser("demo", help="train a network on handwritten digits")
    demo.add_argument(
        "--mapping", help='as in XPURT_MAPPING: AUTO, CPU, "AUTO:GPU,CPU"'
    )
    demo.add_argument("--epochs", type=positive, default=10, help="default: 10")
    demo.add_argument("--plot", type=path, help="write a picture, as in out.png")
    demo.set_defaults(run=_demo)

    cache = commands.add_parser("cache", help="built kernels that are kept on disk")
    cache.add_argument("--clear", action="store_true", help="remove them")
    cache.set_defaults(run=_cache)

    ops = commands.add_parser("ops", help="list the ops that have kernels of xpurt's")
    ops.add_argument(
        "--markdown", type=path, metavar="FILE", help="write the list as a page"
    )
    ops.set_defaults(run=_ops)

    calibrate = commands.add_parser(
        "calibrate",
        help="measure what ops cost on each device, in some ten seconds, and keep it",
    )
    calibrate.add_argument(
        "--show", action="store_true", help="measure nothing: print what is known"
    )
    calibrate.add_argument("--plot", type=path, help="draw it, as in out.png")
    calibrate.add_argument(
        "--html", type=path, metavar="FILE", help="write the report as a page"
    )
    calibrate.add_argument(
        "--force", action="store_true", help="keep what a busy machine gives, too"
    )
    calibrate.set_defaults(run=_calibrate)

    prototype = commands.add_parser(
        "prototype", help="write a package for a new device type of PyTorch"
    )
    prototype.add_argument("action", choices=("new",))
    prototype.add_argument("name", help='the device type, as "mydevice" or "ipu"')
    prototype.add_argument(
        "--folder", type=path, default=Path(), help="default: this one"
    )
    prototype.set_defaults(run=_prototype)

    simulate = commands.add_parser(
        "simulate", help="compare scheduling policies on machines of 1 to 64 devices"
    )
    simulate.add_argument(
        "--devices", nargs="+", type=positive, default=[], metavar="N"
    )
    simulate.add_argument("--plot", type=path, help="draw one run, as in gantt.png")
    simulate.add_argument(
        "--markdown",
        type=path,
        metavar="FILE",
        help="rewrite the tables in a page, as in docs/measured/policies.md",
    )
    simulate.add_argument(
        "--ranks",
        action="store_true",
        help="training in parallel on 8 to 4,096 ranks instead",
    )
    simulate.add_argument(
        "--check",
        action="store_true",
        help="with --ranks: start 2, 4 and 8 ranks here, and compare",
    )
    simulate.set_defaults(run=_simulate)

    add_conformance(commands)
    _add_bench(commands)
    return parser, commands.choices


def _add_bench(commands: Any) -> None:
    command = commands.add_parser(
        "bench", help="time the same work on stock CPU tensors and on xpu"
    )
    command.add_argument(
        "--suite",
        action="extend",
        nargs="+",
        default=[],
        metavar="S",
        help="as in dispatch or gemm, or auto alone; default: all but that",
    )
    command.add_argument(
        "--rows", default="*", metavar="PATTERN", help='rows by name, as in "add*"'
    )
    command.add_argument("--mapping", default="CPU", metavar="M", help="default: CPU")
    command.add_argument(
        "--quick", action="store_true", help="few rounds, and no row that takes long"
    )
    command.add_argument("--json", type=path, metavar="FILE", help="write all numbers")
    command.add_argument(
        "--html", type=path, metavar="FILE", help="write the report as a page"
    )
    command.add_argument("--plot", type=path, metavar="FILE", help="write a picture")
    command.add_argument(
        "--markdown",
        type=path,
        metavar="FILE",
        help="rewrite the tables in a page, as in docs/measured/performance.md",
    )
    command.set_defaults(run=_bench)


# Each command imports what it needs: `devices` needs no scikit-learn, and `doctor` has
# to work if the rest of xpurt does not.


def _devices(options: argparse.Namespace) -> int:
    from xpurt.errors import XpurtError
    from xpurt.mapping.inventory import devices_table

    try:
        print(devices_table())
    except XpurtError as error:
        return failed(error)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from xpurt.command_line.diagnosis import diagnose

    findings = diagnose()
    for finding in findings:
        print(finding)
    return 0 if all(finding.ok for finding in findings) else 1


def _demo(options: argparse.Namespace) -> int:
    from xpurt.demo import run_demo
    from xpurt.errors import XpurtError
    from xpurt.startup.extras import MissingExtra

    try:
        return run_demo(options.mapping, options.epochs, options.plot)
    except (MissingExtra, XpurtError) as error:
        return failed(error)


def _cache(options: argparse.Namespace) -> int:
    from xpurt.errors import XpurtError
    from xpurt.kernels import kernel_cache

    try:
        cache = kernel_cache()
        if options.clear:
            print(f"removed {cache.clear():,} kernels from {cache.folder}")
            return 0
        files = cache.files()
        print(
            f"{cache.folder}: {len(files):,} kernels, {cache.size_bytes():,} of "
            f"{cache.limit_bytes:,} bytes"
        )
    except (OSError, XpurtError) as error:
        return failed(error)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from xpurt.calibration import run_calibrate
    from xpurt.errors import XpurtError
    from xpurt.startup.extras import MissingExtra

    try:
        return run_calibrate(
            show=options.show,
            plot=options.plot,
            html=options.html,
            force=options.force,
        )
    except (MissingExtra, OSError, ValueError, XpurtError) as error:
        return failed(error)


def _simulate(options: argparse.Namespace) -> int:
    from xpurt.command_line.policy_table import DEVICES, run_simulate
    from xpurt.startup.extras import MissingExtra
    from xpurt.text.markdown_section import BadMarkers

    devices = options.devices or DEVICES
    try:
        if options.ranks and options.check:
            from xpurt.command_line.rank_check import run_check_ranks

            return run_check_ranks(options.markdown)
        if options.ranks:
            from xpurt.command_line.rank_table import run_simulate_ranks

            return run_simulate_ranks(options.markdown)
        return run_simulate(devices, options.markdown, options.plot)
    except (BadMarkers, MissingExtra, OSError, RuntimeError, ValueError) as error:
        return failed(error)


def _prototype(options: argparse.Namespace) -> int:
    from xpurt.prototype import new_package

    try:
        files = new_package(options.name, options.folder)
    except (OSError, ValueError) as error:
        return failed(error)
    for file in files:
        print(file)
    print("\nNext: pytest, and the README beside it.")
    return 0


def _bench(options: argparse.Namespace) -> int:
    from xpurt.bench import AUTO, BadRequest, Request, run_auto, run_bench
    from xpurt.errors import XpurtError
    from xpurt.startup.extras import MissingExtra

    request = Request(
        suites=tuple(options.suite),
        rows=options.rows,
        mapping=options.mapping,
        quick=options.quick,
        json=options.json,
        html=options.html,
        plot=options.plot,
        markdown=options.markdown,
    )
    try:
        # This suite sets the mappings in its own processes.
        return run_auto(request) if options.suite == [AUTO] else run_bench(request)
    except (BadRequest, MissingExtra, XpurtError) as error:
        return failed(error)


def _ops(options: argparse.Namespace) -> int:
    from xpurt.command_line.op_table import op_page, op_table

    if options.markdown is None:
        print(op_table(shutil.get_terminal_size().columns))
        return 0
    try:
        options.markdown.write_text(op_page())
    except OSError as error:
        return failed(error)
    return 0
