"""The version rule: tags of git, the PyTorch, and folders without git."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from release_tools import ROOT, package_version


@pytest.mark.parametrize(
    ("exact", "node", "dirty", "expected"),
    [
        (True, "g1a2b3c4d5e", False, "+pt2.13"),
        (False, "g1a2b3c4d5e", False, "+pt2.13.g1a2b3c4"),
        (False, "g1a2b3c4d5e", True, "+pt2.13.g1a2b3c4.changed"),
        (True, "g1a2b3c4d5e", True, "+pt2.13.changed"),
        (False, None, False, "+pt2.13.unknown"),
    ],
)
def test_the_local_part_names_pytorch_and_what_is_no_release(
    exact: bool, node: str | None, dirty: bool, expected: str
) -> None:
    version = SimpleNamespace(exact=exact, node=node, dirty=dirty)
    assert package_version.local_part(version) == expected


@pytest.mark.parametrize(
    "dependencies",
    [[], ["torch==2.13.0"], ["torch>=2.13"], ["torch==2.13.*", "torch==2.14.*"]],
)
def test_one_minor_version_of_pytorch_has_to_be_pinned(dependencies: list[str]) -> None:
    with pytest.raises(ValueError, match=r'has to be like "torch==2\.13\.\*"; found'):
        package_version.pytorch_of(dependencies)


def version_in(folder: Path, *commands: str) -> str:
    """What setuptools-scm makes of a repository in the folder."""
    pytest.importorskip("setuptools_scm", reason="it is needed to build, not to run")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in commands:
        subprocess.run(["git", *author, *command.split()], cwd=folder, check=True)
    code = (
        "import sys; sys.path.insert(0, 'release'); "
        "import package_version, setuptools_scm; "
        "options = package_version.scm_options() | {'root': sys.argv[1]}; "
        "print(setuptools_scm.get_version(**options))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


COMMIT = "commit -q --allow-empty -m a"


def test_a_tag_is_the_version(tmp_path: Path) -> None:
    assert version_in(tmp_path, "init -q", COMMIT, "tag v1.2.0") == "1.2.0+pt2.13"


def test_a_commit_after_a_tag_is_below_the_next_version(tmp_path: Path) -> None:
    commands = ("init -q", COMMIT, "tag v1.2.0", COMMIT)
    assert version_in(tmp_path, *commands).startswith("1.2.1.dev1+pt2.13.g")


def test_without_git_the_version_is_below_every_release(tmp_path: Path) -> None:
    assert version_in(tmp_path) == "0.0.dev0+pt2.13"
