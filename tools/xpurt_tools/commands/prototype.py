"""`python -m xpurt prototype new`, and `report`."""

import argparse
import importlib
from pathlib import Path

from xpurt.command_line.arguments import failed, path
from xpurt.errors import MappingError
from xpurt.prototype import kernels_of, new_package
from xpurt_tools.commands import kernel_report


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=("new", "report"))
    command.add_argument("name", help='the device type, as "mydevice" or "ipu"')
    command.add_argument(
        "--folder", type=path, default=Path(), help="of new; default: this one"
    )
    report = command.add_argument_group("of report")
    report.add_argument(
        "--import",
        dest="modules",
        metavar="MODULE",
        action="append",
        default=[],
        help="of the vendor, which makes the device and registers kernels",
    )
    report.add_argument(
        "--keys", nargs="+", default=[], help="list the ops of these, as SparseIPU"
    )
    report.add_argument(
        "--whose",
        nargs="+",
        choices=kernel_report.WHOSE,
        default=[],
        help="list the ops of these; default: vendor",
    )
    report.add_argument("--ops", nargs="+", default=["*"], help='as "aten::add*"')
    report.add_argument("--html", type=path, help="write the report as a page")


def run(options: argparse.Namespace) -> int:
    return _new(options) if options.action == "new" else _report(options)


def _new(options: argparse.Namespace) -> int:
    try:
        files = new_package(options.name, options.folder)
    except (OSError, ValueError) as error:
        return failed(error)
    for file in files:
        print(file)
    print("\nNext: pytest, and the README beside it.")
    return 0


def _report(options: argparse.Namespace) -> int:
    try:
        for module in options.modules:
            importlib.import_module(module)
        rows = kernels_of(options.name)
        shown = kernel_report.chosen(rows, options.keys, options.whose, options.ops)
        if options.html is not None:
            kernel_report.write(options.html, options.name, rows)
    except (ImportError, MappingError, OSError, ValueError) as error:
        return failed(error)
    print(kernel_report.summary(rows))
    if shown:
        print("\n" + kernel_report.listing(shown))
    return 0
