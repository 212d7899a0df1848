"""The XPURT_* variables: their values, and the time at which a bad one raises."""

import dataclasses
import re
from pathlib import Path

import pytest
from own_process import output, run

import xpurt.config
from xpurt.config import (
    VARIABLES,
    Config,
    config,
    cpu_kernels_at_import,
    guard_device_count,
    lazy_copies_at_import,
    read_config,
    unknown_variables,
)
from xpurt.errors import ConfigError


def test_nothing_set_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert read_config({}) == Config(
        mapping="",
        max_devices=16,
        fallback="warn",
        gpu_overflow="off",
        kernel_policy="auto",
        accelerators="auto",
        usm_on_svm=False,
        virtual_gpu="off",
        virtual_gpu_delay_us=0,
        virtual_gpu_link_gb_per_s=0.0,
        virtual_gpu_fp64=True,
        virtual_gpu_fp16=True,
        virtual_gpu_limits="",
        virtual_gpu_memory_bytes=0,
        virtual_gpu_fail_after=0,
        cache_folder=Path("/home/me/.cache/xpurt"),
        cache_size_bytes=256 << 20,
        check_locks=False,
        cpu_kernels="native",
        lazy_copies=False,
        no_memory_caching=False,
        autoload=True,
        learn=True,
        deterministic=False,
        backward_thread="caller",
    )


def test_empty_is_as_not_set() -> None:
    names = ["MAPPING", "MAX_DEVICES", "FALLBACK", "KERNEL_POLICY"]
    names += ["VIRTUAL_GPU", "VIRTUAL_GPU_DELAY_US", "AUTOLOAD"]
    assert read_config({f"XPURT_{name}": " " for name in names}) == read_config({})


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("XPURT_MAPPING", "auto:-gpu", "mapping", "auto:-gpu"),
        ("XPURT_MAX_DEVICES", "4", "max_devices", 4),
        ("XPURT_FALLBACK", "Error", "fallback", "error"),
        ("XPURT_FALLBACK", "silent", "fallback", "silent"),
        ("XPURT_KERNEL_POLICY", "SYCL", "kernel_policy", "sycl"),
        ("XPURT_VIRTUAL_GPU", "strict", "virtual_gpu", "strict"),
        ("XPURT_ACCELERATORS", "OFF", "accelerators", "off"),
        ("XPURT_ACCELERATORS", "1", "accelerators", "on"),
        ("XPURT_USM_ON_SVM", "on", "usm_on_svm", True),
        ("XPURT_VIRTUAL_GPU", "svm", "virtual_gpu", "svm"),
        ("XPURT_VIRTUAL_GPU", "1", "virtual_gpu", "lenient"),
        ("XPURT_VIRTUAL_GPU", "0", "virtual_gpu", "off"),
        ("XPURT_VIRTUAL_GPU_DELAY_US", "250", "virtual_gpu_delay_us", 250),
        ("XPURT_VIRTUAL_GPU_LINK", "2.5", "virtual_gpu_link_gb_per_s", 2.5),
        ("XPURT_GPU_OVERFLOW", "Host", "gpu_overflow", "host"),
        ("XPURT_VIRTUAL_GPU_FP64", "0", "virtual_gpu_fp64", False),
        ("XPURT_VIRTUAL_GPU_FP16", "0", "virtual_gpu_fp16", False),
        ("XPURT_VIRTUAL_GPU_LIMITS", "usm=0", "virtual_gpu_limits", "usm=0"),
        ("XPURT_VIRTUAL_GPU_MEMORY", "1048576", "virtual_gpu_memory_bytes", 1 << 20),
        ("XPURT_VIRTUAL_GPU_FAIL_AFTER", "3", "virtual_gpu_fail_after", 3),
        ("XPURT_AUTOLOAD", "0", "autoload", False),
        ("XPURT_AUTOLOAD", "off", "autoload", False),
        ("XPURT_AUTOLOAD", "yes", "autoload", True),
        ("XPURT_LEARN", "0", "learn", False),
        ("XPURT_DETERMINISTIC", "1", "deterministic", True),
        ("XPURT_CHECK_LOCKS", "1", "check_locks", True),
        ("XPURT_BACKWARD_THREAD", "Device", "backward_thread", "device"),
    ],
)
def test_a_variable_sets_its_field(
    name: str, text: str, field: str, value: object
) -> None:
    expected = dataclasses.replace(read_config({}), **{field: value})
    assert read_config({name: text}) == expected


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("XPURT_MAX_DEVICES", "0", "a whole number from 1 to "),
        ("XPURT_MAX_DEVICES", "many", "a whole number from 1 to "),
        ("XPURT_MAX_DEVICES", "1000", "a whole number from 1 to "),
        ("XPURT_FALLBACK", "raise", "warn, error or silent"),
        ("XPURT_KERNEL_POLICY", "cuda", "auto, sycl or native"),
        ("XPURT_VIRTUAL_GPU", "strcit", "0, 1, lenient, coherent, strict or svm"),
        ("XPURT_VIRTUAL_GPU_DELAY_US", "-1", "a whole number from 0"),
        ("XPURT_VIRTUAL_GPU_DELAY_US", "1.5", "a whole number from 0"),
        ("XPURT_VIRTUAL_GPU_LINK", "0", "gigabytes per second above 0"),
        ("XPURT_VIRTUAL_GPU_LINK", "inf", "gigabytes per second above 0"),
        ("XPURT_VIRTUAL_GPU_LINK", "16GB", "gigabytes per second above 0"),
        ("XPURT_GPU_OVERFLOW", "disk", "off or host"),
        ("XPURT_VIRTUAL_GPU_FP64", "no", "1 or 0"),
        ("XPURT_VIRTUAL_GPU_FP16", "no", "1 or 0"),
        ("XPURT_VIRTUAL_GPU_LIMITS", "usm", "a list, separated by commas, of usm=0"),
        ("XPURT_AUTOLOAD", "maybe", "1 or 0"),
        ("XPURT_LEARN", "fast", "1 or 0"),
        ("XPURT_DETERMINISTIC", "yse", "1 or 0"),
        ("XPURT_CHECK_LOCKS", "all", "1 or 0"),
        ("XPURT_BACKWARD_THREAD", "main", "caller or device"),
    ],
)
def test_a_bad_value_is_named_with_what_may_be(
    name: str, text: str, allowed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config({name: text})
    assert str(caught.value).startswith(f'{name}="{text}" is not possible; it may be ')
    assert allowed in str(caught.value)


def test_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = config()
    monkeypatch.setenv("XPURT_FALLBACK", "nonsense")
    assert config() is first
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.fallback = "error"  # type: ignore[misc]


def test_the_import_never_fails_over_a_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert guard_device_count() == 16
    monkeypatch.setenv("XPURT_MAX_DEVICES", "8")
    assert guard_device_count() == 8
    monkeypatch.setenv("XPURT_MAX_DEVICES", "maybe")
    assert guard_device_count() == 16


def test_a_bad_variable_raises_at_the_first_use_of_the_device() -> None:
    code = (
        "import torch, xpurt\n"
        "print(torch.ones(3).sum().item())\n"
        "try:\n"
        "    xpurt.set_xpu_mapping('CPU')\n"
        "except xpurt.errors.ConfigError as error:\n"
        "    print(error)\n"
    )
    assert output(code, XPURT_FALLBACK="nonsense").splitlines() == [
        "3.0",
        'XPURT_FALLBACK="nonsense" is not possible; it may be warn, error or silent.',
    ]


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"XPURT_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/c"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/xpurt"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/xpurt"),
        ({"HOME": "/h"}, "/h/.cache/xpurt"),
    ],
)
def test_where_kernels_are_kept(
    env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert read_config(env).cache_folder == Path(folder)
    assert not Path(folder).exists()


def test_lazy_copies_are_off_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read_config({"XPURT_LAZY_COPIES": "on"}).lazy_copies
    assert not read_config({"XPURT_LAZY_COPIES": "0"}).lazy_copies
    with pytest.raises(ConfigError, match="XPURT_LAZY_COPIES"):
        read_config({"XPURT_LAZY_COPIES": "perhaps"})
    monkeypatch.setenv("XPURT_LAZY_COPIES", "perhaps")
    assert not lazy_copies_at_import()


def test_cpu_kernels_are_pytorchs_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read_config({"XPURT_CPU_KERNELS": "auto"}).cpu_kernels == "auto"
    with pytest.raises(ConfigError, match="XPURT_CPU_KERNELS"):
        read_config({"XPURT_CPU_KERNELS": "gpu"})
    monkeypatch.setenv("XPURT_CPU_KERNELS", "gpu")
    with pytest.raises(ConfigError, match="XPURT_CPU_KERNELS"):
        cpu_kernels_at_import()


def test_a_variable_that_is_none_of_ours_is_told_with_the_nearest() -> None:
    env = {"XPURT_MAPING": "CPU", "xpurt_learn": "0", "XPURT_ZZ": "1", "PATH": "/"}
    maping, zz, learn = unknown_variables(env | {"XPURT_MAPPING": "CPU"})
    assert maping.startswith('XPURT_MAPING="CPU" is ignored')
    assert maping.endswith("Did you mean XPURT_MAPPING?")
    assert learn.endswith("Did you mean XPURT_LEARN?")
    assert zz.startswith('XPURT_ZZ="1" is ignored')
    assert "XPURT_CACHE_DIR, XPURT_CACHE_SIZE" in zz


def test_every_variable_that_is_read_is_known() -> None:
    """As in the source: read_config() names them all."""
    source = Path(xpurt.config.__file__).read_text()
    assert set(re.findall(r'"(XPURT_[A-Z0-9_]+)"', source)) == set(VARIABLES)
    assert unknown_variables(dict.fromkeys(VARIABLES, "")) == []


def test_the_warning_comes_once_and_not_at_the_import() -> None:
    code = """
    import sys, warnings
    warnings.simplefilter("always")
    import torch, xpurt
    print("imported", file=sys.stderr, flush=True)
    for _ in range(2):
        torch.ones(1, device="xpu")
    """
    ended = run(code, XPURT_MAPING="GPU", XPURT_VIRTUAL_GPU="")
    assert ended.returncode == 0, ended.stderr
    before, after = ended.stderr.split("imported")
    assert before == ""
    assert after.count("XPURT_MAPING") == 1
    assert "Did you mean XPURT_MAPPING?" in after


def test_the_nearest_value_is_named() -> None:
    with pytest.raises(ConfigError, match='Did you mean "strict"'):
        read_config({"XPURT_VIRTUAL_GPU": "strcit"})


@pytest.mark.parametrize(
    ("text", "folder"),
    [("~/x", "/home/me/x"), ("~", "/home/me"), ("/a/~/x", "/a/~/x")],
)
def test_a_path_may_begin_at_home(text: str, folder: str) -> None:
    env = {"XPURT_CACHE_DIR": text, "HOME": "/home/me"}
    assert read_config(env).cache_folder == Path(folder)


def test_a_home_that_nobody_has() -> None:
    with pytest.raises(ConfigError, match="there is no user ~nobody-at-all"):
        read_config({"XPURT_CACHE_DIR": "~nobody-at-all/x"})
