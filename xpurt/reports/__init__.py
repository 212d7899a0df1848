"""HTML pages that the commands write: self-contained, and of one form.

A page has the results, tables that can be sorted and filtered, plots, and the machine,
the versions and the command line of the run. The commands supply the content; this
package has the form and the templates.
"""

from xpurt.reports.chart import Axis, Chart, Mark, Panel, Row, Rule
from xpurt.reports.data_table import Cell, Column, DataTable, Kind, Tone
from xpurt.reports.machine import Machine, describe_machine
from xpurt.reports.page import Figure, check_writable, render_page, write_page

__all__ = [
    "Axis",
    "Cell",
    "Chart",
    "Column",
    "DataTable",
    "Figure",
    "Kind",
    "Machine",
    "Mark",
    "Panel",
    "Row",
    "Rule",
    "Tone",
    "check_writable",
    "describe_machine",
    "render_page",
    "write_page",
]
