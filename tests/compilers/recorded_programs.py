"""Programs of kernels, as xpurt gives them to a driver, recorded by a layer."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from xpurt import launch_recorder, virtual_gpu


@dataclass(frozen=True, slots=True)
class Program:
    options: str
    source: str

    @property
    def name(self) -> str:
        return hashlib.sha256(f"{self.options}\n{self.source}".encode()).hexdigest()[
            :16
        ]

    def written_to(self, folder: Path) -> Path:
        path = folder / "program.cl"
        path.write_text(self.source)
        return path


def programs_in(folder: Path) -> list[Program]:
    """What the layer wrote there. The first line of a file has the options."""
    found = []
    for path in sorted(folder.glob("*.cl")):
        first, _, source = path.read_text().partition("\n")
        found.append(Program(first.removeprefix("// "), source))
    return found


def record(
    folder: Path, commands: Iterable[Sequence[str]], settings: Mapping[str, str]
) -> list[Program]:
    """The programs that the commands build, in processes with these variables, on a
    strict virtual GPU. Kernels are built anew: none comes from the disk cache. What the
    commands compute is not judged here. What was in the folder goes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with TemporaryDirectory() as made:
        variables = {
            **os.environ,
            "XPURT_VIRTUAL_GPU": "strict",
            "XPURT_MAPPING": "GPU",
            "XPURT_CACHE_DIR": f"{made}/cache",
            # Above the virtual GPU, whose type it asks for. The sources have the lines by
            # which the virtual GPU takes away what the device lacks.
            "OPENCL_LAYERS": f"{virtual_gpu.library_path()}:{launch_recorder.library_path()}",
            launch_recorder.PROGRAMS: str(folder),
            **settings,
        }
        for command in commands:
            done = subprocess.run(command, env=variables, check=False)
            if done.returncode != 0:
                print(f"ended with {done.returncode}: {' '.join(command)}")
    return programs_in(folder)
