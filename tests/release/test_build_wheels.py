"""Tags of wheels, and what the checklist of a release runs; no wheel is built."""

import os
from pathlib import Path

import pytest
from release_tools import ROOT, build_wheels, check_release


def test_the_tag_says_which_glibc_is_needed() -> None:
    name = "xpurt-0.1.0+pt2.13-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert build_wheels.linux_of(name) == (2, 28)


def test_a_wheel_without_that_tag_is_refused() -> None:
    with pytest.raises(ValueError, match="has no tag manylinux_"):
        build_wheels.linux_of("xpurt-0.1.0-cp311-cp311-linux_x86_64.whl")


def test_the_run_path_is_the_one_that_the_linker_was_given() -> None:
    linked = (ROOT / "release" / "compile_extension.py").read_text()
    assert f'"-Wl,-rpath,{build_wheels.RUN_PATH}"' in linked


def test_a_release_is_checked_without_a_compiler_and_without_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CXX", "g++")
    monkeypatch.setenv("XPURT_MAPPING", "GPU")
    variables = check_release.environment(tmp_path, tmp_path / "bin")
    assert variables["PATH"] == str(tmp_path / "bin")
    assert not {"PYTHONPATH", "CXX", "XPURT_MAPPING"} & set(variables)
    assert variables["HOME"] == os.environ["HOME"]


def test_a_step_that_fails_is_shown_with_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = "/bin/sh"
    good = check_release.Step("good", [shell, "-c", "echo quiet"])
    bad = check_release.Step("bad", [shell, "-c", "echo the reason >&2; exit 3"])
    assert check_release.passes(good, tmp_path, {})
    assert not check_release.passes(bad, tmp_path, {})
    out = capsys.readouterr().out
    assert "ok    good" in out
    assert "FAIL  bad" in out
    assert "the reason" in out
    assert "quiet" not in out


def test_both_wheels_are_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "xpurt-0.1.0+pt2.13-cp311-cp311-manylinux_2_28_x86_64.whl"
    tools = check_release.tools_of(wheel, "2.13")
    assert tools == tmp_path / "xpurt_tools-0.1.0-py3-none-any.whl"
    for beside in (None, tmp_path):
        step = check_release.installation("python", (wheel, tools), "torch", beside)
        assert str(tools) in step.command
        assert any(str(wheel) in word for word in step.command)


def test_the_tests_of_the_checklist_exist() -> None:
    assert [name for name in check_release.TESTS if not (ROOT / name).exists()] == []


def test_the_version_is_read_from_the_name_of_the_wheel() -> None:
    wheel = Path("xpurt-0.1.0+pt2.13-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert check_release.version_of(wheel) == "0.1.0+pt2.13"
