"""The command from end to end: pairs, workers, reports, and the exit code."""

import itertools
import json
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from xpurt.mapping import physical_devices
from xpurt.reports import check_writable, describe_machine, write_page
from xpurt_tools.conformance import gpu_types
from xpurt_tools.conformance.databases import Entry, load
from xpurt_tools.conformance.extras import progress_bar
from xpurt_tools.conformance.known import read_known, stale_entries, unknown_failures
from xpurt_tools.conformance.layers_above import LAYERS
from xpurt_tools.conformance.pairs import DTYPES, Pair, gpu_pairs, left_out, pairs
from xpurt_tools.conformance.pool import run_pairs
from xpurt_tools.conformance.refused import mark_refused
from xpurt_tools.conformance.report import failures, headline, summary, verdict
from xpurt_tools.conformance.report_html import conformance_page
from xpurt_tools.conformance.results import Result, compared, tally
from xpurt_tools.conformance.settings import Settings
from xpurt_tools.conformance.sweeps import SWEEPS


def run_conformance(
    runs: Sequence[Settings],
    json_path: Path | None = None,
    html_path: Path | None = None,
) -> int:
    """Runs each of `runs`, prints the results, and returns the exit code.

    0 if all failures are known, and all known failures fail; 1 otherwise. With several
    runs, the label of the run is in the file's name: "out-AUTO.json".

    Raises MissingExtra, WorkersFailed, BadFile; and OSError, before anything is run, if
    a file can't be written.
    """
    several = len(runs) > 1
    files = [
        [
            _named(path, settings.label if several else "")
            for path in (json_path, html_path)
        ]
        for settings in runs
    ]
    for path in itertools.chain.from_iterable(files):
        if path is not None:
            check_writable(path)
    code = 0
    for settings, paths in zip(runs, files, strict=True):
        code |= _run(settings, *paths)
    return code


def _named(path: Path | None, label: str) -> Path | None:
    if path is None or not label:
        return path
    return path.with_stem(f"{path.stem}-{label.replace(':', '_')}")


def _run(settings: Settings, json_path: Path | None, html_path: Path | None) -> int:
    known = read_known(settings.known_failures)
    if settings.sweep:
        wanted, apart = SWEEPS[settings.sweep].pairs(settings), 0
    else:
        wanted, apart = _of_databases(settings)
    if not wanted:
        print("no op has such a name and dtype", file=sys.stderr)
        return 1
    started = time.monotonic()
    bar = progress_bar(len(wanted), settings.label)
    results: list[Result] = []
    try:
        results.extend(bar(run_pairs(wanted, settings)))
    except KeyboardInterrupt:
        print(f"interrupted after {len(results):,} of {len(wanted):,} pairs")
    # Workers finish in any order; reports are sorted.
    order = {(pair.name, pair.dtype): place for place, pair in enumerate(wanted)}
    results.sort(key=lambda result: order[result.name, result.dtype])
    mark_refused(results, settings.device)

    whole = settings.samples_per_pair is None and settings.gpu_types == "also"
    unknown = unknown_failures(results, known, settings.label)
    stale = stale_entries(
        results,
        known,
        settings.label,
        whole=whole and settings.sample == 1 and len(results) == len(wanted),
    )
    if shown := failures(results):
        print(shown, end="\n\n")
    print(summary(results), end="\n\n")
    print(headline(results, settings.label, apart))
    print("{:,} comparisons, {:,} disagreements".format(*compared(results)))
    print(f"{len(wanted):,} pairs in {time.monotonic() - started:,.0f} s")
    if json_path is not None:
        json_path.write_text(json.dumps(_data(settings, results, apart), indent=1))
    if html_path is not None:
        machine = describe_machine(
            physical_devices(), mapping=settings.mapping, policy=settings.policy
        )
        text = conformance_page(
            results,
            settings,
            machine,
            left_out=apart,
            known=[entry for entry in known if entry.of_run(settings.label)],
            unknown=unknown,
            stale=stale,
        )
        write_page(html_path, text)
    said = verdict(unknown, stale)
    if said:
        print(f"\n{said}")
    return 1 if said or len(results) < len(wanted) else 0


def _of_databases(settings: Settings) -> tuple[list[Pair], int]:
    """The pairs to run, and the number of those that PyTorch lacks on the CPU."""
    entries: Iterable[Entry] = load(settings.database).values()
    if settings.compiled:
        entries = [entry for entry in entries if entry.kind == "op"]
    dtypes = settings.dtypes or DTYPES
    if settings.through is not None:
        kinds = {kind for form in LAYERS[settings.through] for kind in form.kinds}
        # PyTorch lists few modules in bfloat16; a model has all of them in it.
        more = frozenset({torch.bfloat16})
        entries = [
            entry if entry.kind == "op" else replace(entry, dtypes=entry.dtypes | more)
            for entry in entries
            if entry.kind in kinds
        ]
        dtypes = settings.dtypes or ("float32", "bfloat16")
    wanted: list[Pair] = []
    if settings.gpu_types != "only":
        if settings.compiled or settings.through:
            wanted += pairs(entries, dtypes, settings.ops)[:: settings.sample]
        else:
            wanted += pairs(entries, dtypes, settings.ops, settings.sample)
    if settings.gpu_types != "not":
        on_gpus = settings.dtypes or gpu_types.DTYPES
        wanted += gpu_pairs(entries, on_gpus, settings.ops, settings.sample)
    return wanted, left_out(entries, dtypes, settings.ops)


def _data(settings: Settings, results: list[Result], apart: int) -> dict[str, Any]:
    total = tally(results)
    comparisons, disagreements = compared(results)
    return {
        "mapping": settings.mapping,
        "policy": settings.policy,
        "virtual_gpu": settings.virtual_gpu,
        "sweep": settings.sweep,
        "sample": settings.sample,
        "samples_per_pair": settings.samples_per_pair,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "pairs": total.pairs,
        "passed": total.passed,
        "comparisons": comparisons,
        "disagreements": disagreements,
        "rate": total.rate,
        "kernel_share": total.kernel_share,
        "tiers": dict(total.tiers),
        "not_on_the_cpu": total.not_on_cpu,
        "left_out": apart,
        "refused": total.refused,
        "results": [result.as_data() for result in results],
    }
