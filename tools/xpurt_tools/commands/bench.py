"""`python -m xpurt bench`."""

import argparse
import math

from xpurt.command_line.arguments import failed, path
from xpurt.errors import XpurtError
from xpurt.startup.extras import MissingExtra


def add_arguments(command: argparse.ArgumentParser) -> None:
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
    command.add_argument(
        "--all",
        action="store_true",
        help="every suite in a process of its own, in the time of --minutes (default: "
        "40); wants --report",
    )
    command.add_argument(
        "--report", type=path, metavar="DIR", help="where --all writes its tables"
    )
    command.add_argument(
        "--instructions",
        action="store_true",
        help="count the instructions of one suite's calls by valgrind, not their times",
    )
    command.add_argument(
        "--minutes", type=minutes, metavar="M", help="no row begins later"
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


def minutes(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of minutes")
    return value


def run(options: argparse.Namespace) -> int:
    from xpurt_tools.bench import (
        AUTO,
        MINUTES,
        BadRequest,
        Request,
        run_all,
        run_auto,
        run_bench,
        run_instructions,
    )

    request = Request(
        suites=tuple(options.suite),
        rows=options.rows,
        mapping=options.mapping,
        quick=options.quick,
        minutes=options.minutes or math.inf,
        json=options.json,
        html=options.html,
        plot=options.plot,
        markdown=options.markdown,
    )
    try:
        if options.all != (options.report is not None):
            raise BadRequest("--all and --report DIR go together")
        if options.all:
            if options.instructions or request != Request(minutes=request.minutes):
                raise BadRequest("--all takes --report and --minutes alone")
            return run_all(options.report, options.minutes or MINUTES)
        if options.instructions:
            return run_instructions(request)
        # This suite sets the mappings in its own processes.
        return run_auto(request) if options.suite == [AUTO] else run_bench(request)
    except (BadRequest, MissingExtra, XpurtError) as error:
        return failed(error)
