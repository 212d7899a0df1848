"""A plugin of pytest that fails a run in which a test was skipped in each of its forms.

By default a test runs under some mappings and with some of its parameters. One that skips
itself under those does not run at all, and nobody sees it: it needs a mark such as
`mappings("GPU")`. Reasons that another machine does not have are no fault, nor is the end
of the time.
"""

import re
from collections.abc import Iterator

import pytest

OF_THE_MACHINE = re.compile(
    "|".join(
        [
            "could not import",
            "not installed",
            "needs a C compiler",
            "needs Oclgrind",
            "compiles a program in C",
            "Chromium",
            "switched off",
            "no xpu under the mapping",
            "new in PyTorch",
            "needs the virtual GPU",
            "there is no GPU",
            "only root",
            "single processor",
            "a core for each part",
            "GiB of memory",
            "AVX2|AVX-512|AMX|on this processor",
            "CUDA",
            "compute units have no two equal parts",
            "the driver (tells|does)",
            "the time for more cases is over",
        ]
    )
)


class NeverRun:
    """The functions of which each case was skipped, with the reasons."""

    def __init__(self) -> None:
        self._ran: set[str] = set()
        self._reasons: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = report.nodeid.partition("[")[0]
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._reasons.setdefault(function, set()).add(reason)
        elif report.when == "call":
            self._ran.add(function)

    def found(self) -> Iterator[tuple[str, str]]:
        for function in sorted(self._reasons.keys() - self._ran):
            reasons = self._reasons[function]
            if not any(map(OF_THE_MACHINE.search, reasons)):
                yield function, "; ".join(sorted(reasons))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and any(self.found()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        found = list(self.found())
        if found:
            terminalreporter.section("tests that skip in each form that is run")
        for function, reasons in found:
            terminalreporter.line(f"{function}: {reasons}")


def runs_all_forms(config: pytest.Config) -> bool:
    """Whether each function is run as by default. Of a part, as a user chooses it, all
    may well be skipped."""
    is_part = (
        config.option.keyword
        or config.option.xpu_mapping
        or config.option.markexpr.startswith("rest")
        or any("::" in each for each in config.args)
    )
    return not is_part and not hasattr(config, "workerinput")
