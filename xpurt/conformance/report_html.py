"""The result of a run as one HTML page, with nothing to load."""

from collections.abc import Sequence
from html import escape

from xpurt.conformance.report import HEADINGS, failures, headline, rows
from xpurt.conformance.results import Result, tallies, tally

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .2rem .8rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto }
"""


def page(results: Sequence[Result], label: str, left_out: int) -> str:
    """The tables and failures of the text report."""
    parts = {"all": tally(results)}
    return "\n".join(
        (
            "<!doctype html><html lang=en><meta charset=utf-8>",
            f"<title>xpurt conformance, mapping {escape(label)}</title>",
            f"<style>{STYLE}</style>",
            f"<h1>Conformance, mapping {escape(label)}</h1>",
            f"<p>{escape(headline(results, label, left_out))}</p>",
            _table("category", rows({**tallies(results, "category"), **parts})),
            _table("dtype", rows(tallies(results, "dtype"))),
            f"<h2>Failures</h2><pre>{escape(failures(results)) or 'none'}</pre>",
        )
    )


def _table(first: str, lines: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{each.lstrip('>')}" for each in (first, *HEADINGS[1:]))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}" for cell in line) for line in lines
    )
    return f"<table><tr>{head}{body}</table>"
