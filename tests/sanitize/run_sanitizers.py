"""Runs tests on builds of the extension with AddressSanitizer, UndefinedBehaviorSanitizer
and ThreadSanitizer: `make sanitize`.

    python tests/sanitize/run_sanitizers.py [address] [thread] [--only TEXT]

Each build is a tree of its own, build/sanitize-<name>: links to the Python files, and
the libraries compiled for it. The tests run inside of the tree. What a sanitizer
reports, in any process, is written to the tree's folder `reports`. The exit status is 1
if there is a report, or if a test fails.
"""

import argparse
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from sampled_runs import RUNS, Run

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILT = {".so", ".pyc"}
BY_SETUP = "_built_for.py"  # setup.py writes it for each build
SECONDS = 900  # that one run may take


class Sanitizer(NamedTuple):
    name: str  # the value of XPURT_SANITIZE
    library: str  # Python is not linked to it, so it is preloaded
    flags: str  # of the compiler
    options: dict[str, str]  # variables that the library reads


# Note [Sanitizers and libraries that are not instrumented]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# The extension and the OpenCL layers are instrumented. Python, PyTorch, SYCL, the OpenCL
# driver, TBB and libgomp are not. ThreadSanitizer observes the mutexes and condition
# variables of all of them, because it replaces these functions. It does not observe
# their atomics, and the memory that they read and write. So an object that PyTorch
# passes from one thread to another by an atomic counter alone appears as a race.
#
# ignore_interceptors_accesses=1 leaves out the memory that is accessed by functions that
# ThreadSanitizer replaces, such as free() and memcpy(), and keeps their locks. What
# remains are loads and stores of our own code, and the order of all locks: a lock of ours
# and one of a library, taken in both orders, is reported. (XPURT_CHECK_LOCKS finds that
# between locks of ours.) What is lost is a race between free() and a read;
# AddressSanitizer finds the read if it comes later.
#
# What was rejected: ignore_noninstrumented_modules=1 also leaves out the order of locks.
# Suppressions instead of an option: each deallocation by PyTorch is a report first, and
# a round of random threads took minutes instead of seconds.
#
# Fences are not in the model of ThreadSanitizer. The code that has some (a search for
# `atomic_thread_fence` finds it) reads atomics only.
#
# libgomp's barriers are futexes, which are not observed either: one thread of OpenMP.
SANITIZERS = {
    each.name: each
    for each in (
        Sanitizer(
            "address",
            "libasan.so",
            # The last two as in release/compile_extension.py, which has the reason.
            "-fsanitize=address,undefined -static-libubsan"
            " -Wl,--exclude-libs,libubsan.a",
            {
                # Python and PyTorch keep much until the process ends.
                # The OpenCL driver gives its threads signal stacks of its own.
                "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0"
                ":use_sigaltstack=0:detect_stack_use_after_return=1",
                "UBSAN_OPTIONS": "print_stacktrace=1",
                # Each object has memory of its own, with its bounds.
                "PYTHONMALLOC": "malloc",
            },
        ),
        Sanitizer(
            "thread",
            "libtsan.so",
            "-fsanitize=thread",
            {
                "TSAN_OPTIONS": "ignore_interceptors_accesses=1:history_size=5"
                ":detect_deadlocks=1:second_deadlock_stack=1"
                ":die_after_fork=0:print_suppressions=0"
                f":suppressions={HERE / 'thread.supp'}",
                "OMP_NUM_THREADS": "1",
            },
        ),
    )
}


# What defects.cpp does, and what the report contains; none is expected if it is empty.
DEFECTS = {
    "address": {
        "overflow": "heap-buffer-overflow",
        "use_after_free": "heap-use-after-free",
        "signed_overflow": "runtime error: signed integer overflow",
        "nothing": "",
    },
    "thread": {
        "race": "data race",
        "opposite_locks": "lock-order-inversion",
        "nothing": "",
    },
}


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX", "c++"))


def preloaded(sanitizer: Sanitizer) -> str | None:
    """The path of the sanitizer's library; None if the compiler has none. After it that
    of the standard library, which Python is not linked to: AddressSanitizer searches
    the function that throws when the process begins."""
    paths = []
    for name in (sanitizer.library, "libstdc++.so.6"):
        command = [*compiler(), f"-print-file-name={name}"]
        found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if not Path(found).is_absolute():
            return None
        paths.append(found)
    return " ".join(paths)


def without_random_addresses() -> list[str]:
    """What precedes a command. The shadow memory has fixed addresses, where a kernel
    that chooses addresses at random may have put a library."""
    command = ["setarch", platform.machine(), "-R"]
    if shutil.which(command[0]) is None:
        return []
    works = subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if works else []


class Ended(NamedTuple):
    status: int | None  # None: it took too long
    reports: list[Path]
    output: Path
    seconds: float


class Tree:
    """The folder of a build."""

    def __init__(self, sanitizer: Sanitizer, library: str) -> None:
        self.sanitizer = sanitizer
        self.library = library
        self.folder = ROOT / "build" / f"sanitize-{sanitizer.name}"
        self.reports = self.folder / "reports"
        self.reports.mkdir(parents=True, exist_ok=True)

    def build(self) -> None:
        link_package(self.folder)
        subprocess.run(
            [
                *(sys.executable, "setup.py", "--quiet", "build_ext"),
                *("--build-lib", str(self.folder)),
            ],
            cwd=ROOT,
            env={**os.environ, "XPURT_SANITIZE": self.sanitizer.name},
            check=True,
        )

    def end_of(self, run: Run) -> Ended:
        for old in self.reports.glob(f"{run.name}.*"):
            old.unlink()
        output = self.reports / f"{run.name}-output.txt"
        begun = time.monotonic()
        status = None
        with output.open("w") as file:
            process = subprocess.Popen(
                [*without_random_addresses(), *self.command(run)],
                cwd=self.folder,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        reports = sorted(self.reports.glob(f"{run.name}.*"))
        return Ended(status, reports, output, time.monotonic() - begun)

    def command(self, run: Run) -> list[str]:
        variables = {
            # Tests import the tree's package, in whatever folder they run.
            "PYTHONPATH": str(self.folder),
            # The library calls dlopen() in place of SYCL's own libraries, whose run
            # paths do not apply then.
            "LD_LIBRARY_PATH": str(Path(sys.prefix) / "lib"),
            # For programs in C++ that tests compile.
            "CXXFLAGS": f"{self.sanitizer.flags} -g",
            **self.sanitizer.options,
            **run.environment,
            "LD_PRELOAD": self.library,
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in variables:
                variables[name] += f":log_path={self.reports / run.name}"
        settings = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *settings, sys.executable, *run.arguments]

    def run(self, run: Run) -> bool:
        """Whether it ended well, and without a report."""
        ended = self.end_of(run)
        good = ended.status == 0 and not ended.reports
        print(f"{self.sanitizer.name}: {run.name}: ", end="")
        if good:
            print(f"good, {ended.seconds:.0f} s", flush=True)
            return True
        end = "took too long" if ended.status is None else f"exit {ended.status}"
        print(f"{end}, {ended.seconds:.0f} s, {len(ended.reports)} reports")
        shown = [*summaries(ended.reports), str(ended.output)]
        print("    ", end="")
        print(*shown, *ended.reports[:3], sep="\n    ", flush=True)
        return False

    def sees_defects(self) -> bool:
        """Whether the sanitizer reports what defects.cpp does wrong, and does not
        report what it does right."""
        library = self.folder / "defects.so"
        options = ["-std=c++20", "-shared", "-fPIC", "-O1", "-g", "-pthread"]
        options += [*self.sanitizer.flags.split(), "-o", str(library)]
        subprocess.run([*compiler(), str(HERE / "defects.cpp"), *options], check=True)
        seen = True
        for defect, report in DEFECTS[self.sanitizer.name].items():
            arguments = (str(HERE / "call_defect.py"), str(library), defect)
            ended = self.end_of(Run(f"defect-{defect}", arguments))
            found = "".join(each.read_text() for each in ended.reports)
            if (report in found) if report else (ended.status == 0 and not found):
                continue
            print(f"{self.sanitizer.name}: {defect}: expected {report or 'no report'}")
            print(f"    {ended.output}", *ended.reports, sep="\n    ", flush=True)
            seen = False
        return seen


def link_package(folder: Path) -> None:
    """Makes folders with links to the files of the package, other than built ones."""
    wanted = {
        file.relative_to(ROOT): file
        for file in [*ROOT.glob("*xpurt*.py"), *(ROOT / "xpurt").rglob("*")]
        if file.is_file() and file.suffix not in BUILT and file.name != BY_SETUP
    }
    for link in folder.rglob("*"):
        if link.is_symlink() and link.relative_to(folder) not in wanted:
            link.unlink()
    for relative, file in wanted.items():
        link = folder / relative
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)


def summaries(reports: list[Path]) -> list[str]:
    """What was found, each once."""
    lines = [
        line.strip()
        for report in reports
        for line in report.read_text(errors="replace").splitlines()
        if line.startswith("SUMMARY:") or "runtime error:" in line
    ]
    return sorted({f"{lines.count(line)} x {line}" for line in lines})


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs tests with sanitizers.")
    parser.add_argument("names", nargs="*", metavar="address|thread")
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument(
        "--self-check", action="store_true", help="only what shows that they work"
    )
    chosen = parser.parse_args()
    good = True
    for name in chosen.names or SANITIZERS:
        sanitizer = SANITIZERS[name]
        library = preloaded(sanitizer)
        if library is None:
            print(f"{shlex.join(compiler())} has no {sanitizer.library}: install it")
            return 1
        tree = Tree(sanitizer, library)
        good &= tree.sees_defects()
        if chosen.self_check:
            continue
        tree.build()
        for run in RUNS[name]:
            if chosen.only in run.name:
                good &= tree.run(run)
    print("good" if good else "failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
