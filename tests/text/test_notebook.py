"""What a notebook shows of reports."""

from xpurt.kernels.report import DeviceRow, OpReport, OpRow
from xpurt.mapping import Explanation
from xpurt.optimization.report import Report


def test_an_op_report_is_a_table() -> None:
    row = OpRow("aten::a<b", "copy", "GPU & co", 1200, 2048, 1.5)
    shown = OpReport((row,))._repr_html_()
    assert shown.count("<table>") == 1
    for text in ("aten::a&lt;b", "GPU &amp; co", "1,200", "2.0 KiB", "host ms"):
        assert text in shown
    # The mark of alignment is none of the heading.
    assert "&gt;calls" not in shown
    devices = (DeviceRow("GPU", 1, 2.0, 3, 4, 5.0, -6.0, 7, 8.0, 9.0),)
    both = OpReport((row,), devices)._repr_html_()
    assert both.count("<table>") == 2
    assert "-6.0" in both


def test_other_reports_are_their_text() -> None:
    report = Report(left=[("a", "it's <odd>")])
    assert report._repr_html_().startswith("<pre>0 parts optimized, 1 left")
    assert "it&#x27;s &lt;odd&gt;" in report._repr_html_()
    assert "sentence" not in Explanation((), None)._repr_html_()
