"""The folder in which mutants run, in build/mutants. It has links to the package's files,
and an extension with all changes of csrc behind a switch. Those of Python are, too.

Only the files with changes are compiled; the other objects are those of the ordinary
build. MUTANT_NUMBER chooses a change. MUTANTS_REACHED=PATH writes what is reached: one
byte per number into PATH, and the keys of launched kernels to the end of PATH.kernels.
"""

import fcntl
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from python_sites import switched_python
from python_switch import MOST
from rooms import NAME
from sites import Site, replaced, switched

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "mutants" / NAME
sys.path[:0] = [str(ROOT / each) for each in ("tests", "tests/sanitize", "release")]

import compile_extension  # noqa: E402
from run_sanitizers import link_package  # noqa: E402

SWITCH = f"""\
#ifndef XPURT_MUTANTS
#define XPURT_MUTANTS
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
namespace {{
[[maybe_unused]] inline bool xpurt_mutant(int number) {{
  static const int chosen = [] {{
    const char* const text = std::getenv("MUTANT_NUMBER");
    return text == nullptr ? -1 : std::atoi(text);
  }}();
  static char* const reached = []() -> char* {{
    const char* const path = std::getenv("MUTANTS_REACHED");
    if (path == nullptr) return nullptr;
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, {MOST}) != 0) std::abort();
    void* const at = mmap(nullptr, {MOST}, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) std::abort();
    return static_cast<char*>(at);
  }}();
  if (reached != nullptr) reached[number] = 1;
  return number == chosen;
}}
[[maybe_unused]] inline void xpurt_launched(const std::string& key) {{
  static const int file = [] {{
    const char* const path = std::getenv("MUTANTS_REACHED");
    if (path == nullptr) return -1;
    return open((std::string(path) + ".kernels").c_str(), O_WRONLY | O_CREAT | O_APPEND,
                0600);
  }}();
  if (file < 0) return;
  const std::string line = key + "\\n";
  if (write(file, line.data(), line.size()) < 0) std::abort();
}}
}}  // namespace
#endif
"""
# The core and the rooms with a library of their own, by the names of the libraries.
LIBRARIES = {"C": "", **{room: room for room in compile_extension.ROOMS}}
# Each launch asks for its kernel here.
LAUNCH = ("xpurt/csrc/program/program.cpp", "const sycl::kernel& kernel_for(")


def launches_told(text: str) -> str:
    before, name, after = text.partition(LAUNCH[1])
    assert name, f"{LAUNCH[0]} has no {LAUNCH[1]}"
    return before + name + after.replace("{", "{ xpurt_launched(key);", 1)


class Tree:
    """The tree with changes behind switches, of csrc and of Python, by number."""

    def __init__(self, numbered: dict[int, tuple[str, Site]]) -> None:
        self.in_csrc: dict[int, tuple[str, Site]] = {}
        in_python: dict[str, dict[int, Site]] = {}
        for number, (path, site) in numbered.items():
            if path.endswith(".py"):
                in_python.setdefault(path, {})[number] = site
            else:
                self.in_csrc[number] = (path, site)
        self._stamp = int(time.time())
        TREE.mkdir(parents=True, exist_ok=True)
        self._lock = (TREE / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{TREE} is used by another run: wait for its end")
        for file in (TREE / "xpurt").rglob("*.[cp][ly]"):
            if not file.is_symlink():  # a change whose run was killed
                file.unlink()
        link_package(TREE)
        # Here, too, for processes of tests that have another PYTHONPATH.
        switch = TREE / "python_switch.py"
        if not switch.exists():
            switch.symlink_to(Path(__file__).with_name("python_switch.py"))
        self.libraries: dict[str, Path] = {}
        for built in (ROOT / "xpurt").rglob("*"):
            link = TREE / built.relative_to(ROOT)
            if built.suffix == ".so" or built.name == "_built_for.py":
                library = built.name.partition(".")[0].removeprefix("_")
                if library in LIBRARIES:
                    self.libraries[LIBRARIES[library]] = link
                elif not link.exists():
                    link.symlink_to(built)
        self.in_python = {
            path: switched_python((ROOT / path).read_text(), sites)
            for path, sites in in_python.items()
        }
        for path in self.in_python:
            self.restore(path)

    def build(self) -> list[int]:
        """Compiles, and returns the numbers of changes that do not compile."""
        rules = ninja_rules()
        dropped: list[int] = []
        changed: set[Path] = set()
        for object_file, bundle in rules.bundles.items():
            while wrong := self._wrong_in(object_file, bundle, rules, changed):
                dropped += wrong
                for number in wrong:
                    del self.in_csrc[number]
        if changed or not all(each.exists() for each in self.libraries.values()):
            self._link(rules)
        return dropped

    def _link(self, rules: "Rules") -> None:
        """The core, and each room with it, as compile_extension.py does."""
        extension = compile_extension.extension()
        core = self.libraries[""]
        by_room: dict[str, list[str]] = {room: [] for room in self.libraries}
        for each in rules.bundles:
            own = TREE / "objects" / each.name
            room = compile_extension.room_of(each.relative_to(rules.folder))
            by_room[room].append(str(own if own.exists() else each))
        for room, objects in by_room.items():
            beside = [f"-L{core.parent}", f"-l:{core.name}"] if room else []
            link = [
                *(*rules.compiler, "-shared", *objects, "-fopenmp", *beside),
                *(f"-L{folder}" for folder in extension.library_dirs),
                *(f"-l{name}" for name in extension.libraries),
                *(*extension.extra_link_args, "-o", str(self.libraries[room])),
            ]
            subprocess.run(link, check=True)

    def _wrong_in(
        self, object_file: Path, bundle: Path, rules: "Rules", changed: set[Path]
    ) -> list[int]:
        """Compiles a bundle if it has changes. Numbers that do not compile."""
        # With a compiler cache each source is compiled by itself.
        is_source = ROOT / "xpurt" in bundle.parents
        text = f'#include "{bundle}"\n' if is_source else bundle.read_text()
        original = text
        for path in re.findall(r'#include "(.*)"', text):
            name = str(Path(path).relative_to(ROOT))
            source = self.switched_source(name)
            if source is not None:
                file = TREE / "csrc" / name
                write_if_other(file, source)
                text = text.replace(path, str(file))
        own = TREE / "objects" / object_file.name
        if text == original:
            own.unlink(missing_ok=True)
            return []
        written = own.with_suffix(".cpp")
        write_if_other(written, text)
        used = [written, object_file, *map(Path, re.findall(r'#include "(.*)"', text))]
        newest = max(each.stat().st_mtime for each in used)
        if own.exists() and own.stat().st_mtime > newest:
            return []
        changed.add(own)
        command = [*rules.compiler, *rules.flags, "-c", str(written), "-o", str(own)]
        print("compiles", bundle.name, flush=True)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return []
        places = set(re.findall(r"(xpurt/csrc/[\w/]+\.cpp):(\d+):", done.stderr))
        wrong = [
            number
            for number, (path, site) in self.in_csrc.items()
            if (path, str(site.line + 1)) in places
        ]
        if not wrong:
            sys.exit(done.stderr)
        return wrong

    def switched_source(self, name: str) -> str | None:
        """The source with its changes; None if it has none."""
        numbered = {n: site for n, (path, site) in self.in_csrc.items() if path == name}
        if not numbered and name != LAUNCH[0]:
            return None
        text = switched((ROOT / name).read_text(), numbered)
        if name == LAUNCH[0]:
            text = launches_told(text)
        return f'{SWITCH}#line 1 "{name}"\n{text}'

    def change(self, path: str, site: Site) -> None:
        """Makes a change of a file that is not compiled."""
        self._write(path, replaced((ROOT / path).read_text(), site))

    def _write(self, path: str, text: str) -> None:
        target = TREE / path
        target.unlink()
        target.write_text(text)
        # Bytecode is valid for a time and a size.
        self._stamp += 10
        os.utime(target, (self._stamp, self._stamp))

    def restore(self, path: str) -> None:
        if path in self.in_python:
            self._write(path, self.in_python[path])
        else:
            (TREE / path).unlink()
            (TREE / path).symlink_to(ROOT / path)


class Rules:
    """How the ordinary build compiles: by its ninja file."""

    def __init__(self, file: Path) -> None:
        self.folder = file.parent
        text = file.read_text()
        values = dict(re.findall(r"^(\w+) = (.*)$", text, re.MULTILINE))
        self.compiler = shlex.split(values["cxx"])
        self.flags = shlex.split(values["cflags"]) + shlex.split(values["post_cflags"])
        self.flags.remove("-c")
        pairs = re.findall(r"^build (\S+): compile (\S+)$", text, re.MULTILINE)
        self.bundles = {Path(made): Path(source) for made, source in pairs}


def ninja_rules() -> Rules:
    series = f"torch{compile_extension.SERIES}"
    tag = f"{sys.implementation.cache_tag}-{sys.platform}-{series}"
    return Rules(ROOT / "build" / f"objects-{tag}" / "build.ninja")


def write_if_other(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def environment(**variables: str) -> dict[str, str]:
    paths: Iterable[Path] = (TREE, Path(__file__).parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **variables}
