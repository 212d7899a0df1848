"""The version rule: tags of git, the PyTorch, and folders without git."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from release_tools import ROOT, package_version


@pytest.mark.parametrize(
    ("exact", "node", "dirty", "expected"),
    [
        (True, "g1a2b3c4d5e", False, "+pt2.14"),
        (False, "g1a2b3c4d5e", False, "+pt2.14.g1a2b3c4"),
        (False, "g1a2b3c4d5e", True, "+pt2.14.g1a2b3c4.changed"),
        (True, "g1a2b3c4d5e", True, "+pt2.14.changed"),
        (False, None, False, "+pt2.14.unknown"),
    ],
)
def test_the_local_part_names_pytorch_and_what_is_no_release(
    exact: bool, node: str | None, dirty: bool, expected: str
) -> None:
    version = SimpleNamespace(exact=exact, node=node, dirty=dirty)
    assert package_version.local_part("2.14", version) == expected
    of_archive = expected.replace("pt2.14", "").replace("+.", "+").removesuffix("+")
    assert package_version.local_part(None, version) == of_archive
    # The wheel that is built from the archive.
    assert package_version.with_pytorch(f"1.2{of_archive}", "2.14") == f"1.2{expected}"


def test_the_tree_requires_a_range_and_a_wheel_one_series_of_it() -> None:
    of_tree = package_version.dependencies()
    assert package_version.REQUIREMENT in of_tree
    specifier = Requirement(package_version.REQUIREMENT).specifier
    for series in package_version.SERIES:
        of_wheel = package_version.dependencies(series)
        assert set(of_wheel) - set(of_tree) == {f"torch=={series}.*"}
        assert set(of_tree) - set(of_wheel) == {package_version.REQUIREMENT}
        assert specifier.contains(f"{series}.0")
        assert specifier.contains(f"{series}.9")
    first, last = package_version.SERIES[0], package_version.SERIES[-1]
    major, minor = map(int, last.split("."))
    assert not specifier.contains(f"{major}.{minor + 1}.0")
    assert not specifier.contains(
        f"{first.split('.')[0]}.{int(first.split('.')[1]) - 1}.9"
    )


@pytest.mark.parametrize("version", ["2.12.1", "2.16.0a0+git1a2b3c4", "2.130.0"])
def test_a_pytorch_that_does_not_fit_is_refused_in_one_sentence(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_version, "installed_pytorch", lambda: version)
    reason = package_version.refusal()
    assert reason is not None
    assert reason.startswith("xpurt is written for PyTorch 2.13, 2.14 and 2.15; found ")
    assert version in reason
    assert 'pip install "torch>=2.13,<2.16"' in reason
    assert package_version.series_to_build_for() is None


def test_the_series_is_that_of_the_pytorch_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(package_version, "installed_pytorch", lambda: "2.14.1+cu130")
    assert package_version.refusal() is None
    assert package_version.series_to_build_for() == "2.14"


@pytest.mark.parametrize(
    ("wheel", "tools"),
    [
        ("1.2.0+pt2.14", "1.2.0"),
        ("1.2.1.dev3+pt2.14.g1a2b3c4", "1.2.1.dev3+g1a2b3c4"),
        ("1.2.1.dev3+pt2.14.g1a2b3c4.changed", "1.2.1.dev3+g1a2b3c4.changed"),
    ],
)
def test_tools_are_for_every_pytorch_and_one_version(wheel: str, tools: str) -> None:
    assert package_version.version_of_tools(wheel, "2.14") == tools
    requirement = Requirement(package_version.requirement_of_tools(tools))
    assert requirement.name == "xpurt"
    assert requirement.specifier.contains(wheel)
    assert not requirement.specifier.contains("1.2.0.dev1+pt2.14")
    assert not requirement.specifier.contains("1.2.2+pt2.14")


def test_the_tree_has_one_version() -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    of_xpurt = done.stdout.splitlines()[-1]
    series = package_version.series_to_build_for()
    assert series is not None
    found = package_version.version_of_tools(of_xpurt, series)
    assert package_version.version_of_tree() == found


def version_in(folder: Path, *commands: str) -> str:
    """What setuptools-scm makes of a repository in the folder."""
    pytest.importorskip("setuptools_scm", reason="it is needed to build, not to run")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in commands:
        subprocess.run(["git", *author, *command.split()], cwd=folder, check=True)
    code = (
        "import sys; sys.path.insert(0, 'release'); "
        "import package_version, setuptools_scm; "
        "options = package_version.scm_options('2.15') | {'root': sys.argv[1]}; "
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
    assert version_in(tmp_path, "init -q", COMMIT, "tag v1.2.0") == "1.2.0+pt2.15"


def test_a_commit_after_a_tag_is_below_the_next_version(tmp_path: Path) -> None:
    commands = ("init -q", COMMIT, "tag v1.2.0", COMMIT)
    assert version_in(tmp_path, *commands).startswith("1.2.1.dev1+pt2.15.g")


def test_without_git_the_version_is_below_every_release(tmp_path: Path) -> None:
    assert version_in(tmp_path) == "0.0.dev0+pt2.15"
