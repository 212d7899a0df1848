"""Every XPURT_* variable, read once.

This is the only file that reads them. `config()` validates all of them at its first
call and keeps the result. A bad value raises there, at the first use of the device,
never while ``import torch`` loads xpurt. The functions that run during the import
(`guard_device_count`, `names_a_mapping`, `lazy_copies_at_import`,
`check_locks_at_import`) return a default for a bad value; `config()` reports it later. xpurt_autoload.py also reads XPURT_AUTOLOAD,
before the package is imported.
"""

import functools
import math
import os
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast, get_args

from xpurt.errors import ConfigError, nearest

FallbackPolicy = Literal["warn", "error", "silent"]
KernelPolicy = Literal["auto", "sycl", "native"]
CpuKernels = Literal["native", "sycl", "auto"]
BackwardThread = Literal["caller", "device"]
Accelerators = Literal["auto", "on", "off"]
Overflow = Literal["off", "host"]
VirtualGpu = Literal["off", "lenient", "coherent", "strict", "svm"]

DEFAULT_MAX_DEVICES: Final = 16
# PyTorch numbers devices with a signed byte, and the autograd engine starts a thread
# per possible device. No machine has more devices than this: a larger number is a
# typing mistake.
LARGEST_MAX_DEVICES: Final = 64
DEFAULT_CACHE_BYTES: Final = 256 << 20

# All variables of xpurt. Any other XPURT_* variable is reported as a typing mistake.
VARIABLES: Final = (
    "XPURT_ACCELERATORS",
    "XPURT_AUTOLOAD",
    "XPURT_BACKWARD_THREAD",
    "XPURT_CACHE_DIR",
    "XPURT_CACHE_SIZE",
    "XPURT_CHECK_LOCKS",
    "XPURT_CPU_KERNELS",
    "XPURT_DETERMINISTIC",
    "XPURT_FALLBACK",
    "XPURT_GPU_OVERFLOW",
    "XPURT_KERNEL_POLICY",
    "XPURT_LAZY_COPIES",
    "XPURT_LEARN",
    "XPURT_MAPPING",
    "XPURT_MAX_DEVICES",
    "XPURT_NO_MEMORY_CACHING",
    "XPURT_USM_ON_SVM",
    "XPURT_VIRTUAL_GPU",
    "XPURT_VIRTUAL_GPU_DELAY_US",
    "XPURT_VIRTUAL_GPU_FAIL_AFTER",
    "XPURT_VIRTUAL_GPU_FP16",
    "XPURT_VIRTUAL_GPU_FP64",
    "XPURT_VIRTUAL_GPU_LIMITS",
    "XPURT_VIRTUAL_GPU_LINK",
    "XPURT_VIRTUAL_GPU_MEMORY",
)

OVERFLOWS: Final[tuple[Overflow, ...]] = get_args(Overflow)  # the default is the first
_CPU_KERNELS: Final = ("native", "sycl", "auto")  # the default is the first one
_ON = ("1", "on", "true", "yes")
_OFF = ("0", "off", "false", "no")
_ACCELERATORS: dict[str, Accelerators] = {
    "auto": "auto",
    "on": "on",
    "1": "on",
    "off": "off",
    "0": "off",
}
_VIRTUAL_GPU: dict[str, VirtualGpu] = {
    "off": "off",
    "0": "off",
    "1": "lenient",
    "lenient": "lenient",
    "coherent": "coherent",
    "strict": "strict",
    "svm": "svm",
}

_LIMIT: Final = (
    r"(?:usm=0|compiler=0|address_bits=32|vendor_id=\d+|opencl=[123]\.[0-3]"
    r"|sub_groups=\d\d?(?:\+\d\d?)*|(?:work_group|local_memory|vector_width)=[1-9]\d*)"
)
VIRTUAL_GPU_LIMITS: Final = re.compile(f"{_LIMIT}(?:,{_LIMIT})*")
VIRTUAL_GPU_LIMITS_SHOWN: Final = (
    "a list, separated by commas, of usm=0, compiler=0, address_bits=32, opencl=1.2, "
    "vendor_id=4318, "
    "sub_groups=0 or sub_groups=8+32, work_group=64, local_memory=16384, vector_width=1"
)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in the environment. An unset or empty variable means the default.

    mapping: ``XPURT_MAPPING``, the first mapping, as ``set_xpu_mapping`` takes it, or
        an empty string; it is parsed when a device is first needed.
    max_devices: ``XPURT_MAX_DEVICES``, the largest number of ordinals a mapping may
        have, and of devices behind one ordinal. PyTorch's autograd engine makes its
        table of devices once, at the first backward, so this bound is fixed for the
        life of the process.
    fallback: ``XPURT_FALLBACK``, the reaction to an op that has to run on a copy in
        host memory: warn once per op, raise FallbackError, or stay silent.
    gpu_overflow: ``XPURT_GPU_OVERFLOW``, where memory is under the mapping GPU that a
        GPU has no room for: nowhere, or in the host's memory.
    kernel_policy: ``XPURT_KERNEL_POLICY``, the tier of an op: by cost, SYCL or oneDNN
        where there is one, or PyTorch's native CPU kernel.
    accelerators: ``XPURT_ACCELERATORS``, whether SYCL is made to list OpenCL's
        accelerators; "auto": if a driver is listed that may have some.
    usm_on_svm: ``XPURT_USM_ON_SVM``, whether devices whose OpenCL driver has no unified
        shared memory get it, made from their shared virtual memory.
    virtual_gpu: ``XPURT_VIRTUAL_GPU``, a GPU for machines that have none.
    virtual_gpu_delay_us: ``XPURT_VIRTUAL_GPU_DELAY_US``, the microseconds added to
        each of its kernels.
    virtual_gpu_link_gb_per_s: ``XPURT_VIRTUAL_GPU_LINK``, the rate of copies between
        its memory and the host's; 0: as fast as the CPU copies.
    virtual_gpu_fp64: ``XPURT_VIRTUAL_GPU_FP64``, whether it has double precision.
    virtual_gpu_fp16: ``XPURT_VIRTUAL_GPU_FP16``, whether it computes in half precision.
    virtual_gpu_limits: ``XPURT_VIRTUAL_GPU_LIMITS``, what else it has less of, as in
        "work_group=64,usm=0".
    virtual_gpu_memory_bytes: ``XPURT_VIRTUAL_GPU_MEMORY``, the size of its memory; 0:
        as much as the CPU device has.
    virtual_gpu_fail_after: ``XPURT_VIRTUAL_GPU_FAIL_AFTER``, the number of kernels
        after which it fails; 0: never.
    cache_folder: ``XPURT_CACHE_DIR``, where built kernels are kept; by default "xpurt"
        in the user's cache folder. A "~" at its beginning is the home folder.
    cache_size_bytes: ``XPURT_CACHE_SIZE``, the largest size of that folder; 0 keeps
        nothing.
    check_locks: ``XPURT_CHECK_LOCKS``, whether a lock that a thread of xpurt takes out
        of order raises an error.
    cpu_kernels: ``XPURT_CPU_KERNELS``, which kernels compute ordinary CPU tensors: see
        ``xpurt.set_cpu_kernels``.
    lazy_copies: ``XPURT_LAZY_COPIES``, whether conversions are copy-on-write as in
        ``xpurt.lazy_copies()``.
    no_memory_caching: ``XPURT_NO_MEMORY_CACHING``, whether each tensor has an
        allocation of its own, which is given back with it.
    autoload: ``XPURT_AUTOLOAD``, whether ``import torch`` alone adds the device; if
        off, ``import xpurt`` adds it.
    learn: ``XPURT_LEARN``, whether the policy "auto" learns from times of the running
        program.
    deterministic: ``XPURT_DETERMINISTIC``, whether a plan fixes where each op runs, so
        that results repeat bit for bit.
    backward_thread: ``XPURT_BACKWARD_THREAD``, where backward runs if one ordinal is
        behind the mapping: in the thread that calls it, or, as it does with several
        ordinals, in the autograd engine's thread of the device.
    """

    mapping: str
    max_devices: int
    fallback: FallbackPolicy
    gpu_overflow: Overflow
    kernel_policy: KernelPolicy
    accelerators: Accelerators
    usm_on_svm: bool
    virtual_gpu: VirtualGpu
    virtual_gpu_delay_us: int
    virtual_gpu_link_gb_per_s: float
    virtual_gpu_fp64: bool
    virtual_gpu_fp16: bool
    virtual_gpu_limits: str
    virtual_gpu_memory_bytes: int
    virtual_gpu_fail_after: int
    cache_folder: Path
    cache_size_bytes: int
    check_locks: bool
    cpu_kernels: CpuKernels
    lazy_copies: bool
    no_memory_caching: bool
    autoload: bool
    learn: bool
    deterministic: bool
    backward_thread: BackwardThread


@functools.cache
def config() -> Config:
    """The configuration of this process. Raises ConfigError on a bad variable.

    An error is not kept: the next call succeeds once the variable is corrected. An
    unknown variable that begins with XPURT gets a warning, once.
    """
    _warn_of_unknown()
    return read_config(os.environ)


@functools.cache
def _warn_of_unknown() -> None:
    for text in unknown_variables(os.environ):
        # Where warnings are errors, this one would leave the process without a device.
        with suppress(Warning):
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """A sentence for each variable in `env` that begins with XPURT and is unknown."""
    found = []
    for name in sorted(env):
        if not name.upper().startswith("XPURT") or name in VARIABLES:
            continue
        # The common prefix is cut off: it would make any two names similar.
        ends = [known.removeprefix("XPURT_") for known in VARIABLES]
        end = nearest(name.upper().removeprefix("XPURT").lstrip("_"), ends)
        near = f"XPURT_{end}" if end else ""
        found.append(
            f'{name}="{env[name]}" is ignored, since xpurt has no such variable. '
            + (f"Did you mean {near}?" if near else f"It has {', '.join(VARIABLES)}.")
        )
    return found


def read_config(env: Mapping[str, str]) -> Config:
    """The configuration in `env`. Raises ConfigError, which names the bad variable."""
    return Config(
        mapping=_text(env, "XPURT_MAPPING"),
        max_devices=_max_devices(env),
        fallback=cast(
            FallbackPolicy,
            _choice(env, "XPURT_FALLBACK", ("warn", "error", "silent")),
        ),
        gpu_overflow=cast(Overflow, _choice(env, "XPURT_GPU_OVERFLOW", OVERFLOWS)),
        kernel_policy=cast(
            KernelPolicy,
            _choice(env, "XPURT_KERNEL_POLICY", ("auto", "sycl", "native")),
        ),
        accelerators=_ACCELERATORS[
            _choice(env, "XPURT_ACCELERATORS", tuple(_ACCELERATORS))
        ],
        usm_on_svm=_off(env, "XPURT_USM_ON_SVM"),
        virtual_gpu=_VIRTUAL_GPU[
            _choice(env, "XPURT_VIRTUAL_GPU", tuple(_VIRTUAL_GPU))
        ],
        virtual_gpu_delay_us=_integer(
            env, "XPURT_VIRTUAL_GPU_DELAY_US", 0, 0, 60_000_000
        ),
        virtual_gpu_link_gb_per_s=_rate(env, "XPURT_VIRTUAL_GPU_LINK"),
        virtual_gpu_fp64=_choice(env, "XPURT_VIRTUAL_GPU_FP64", ("1", "0")) == "1",
        virtual_gpu_fp16=_choice(env, "XPURT_VIRTUAL_GPU_FP16", ("1", "0")) == "1",
        virtual_gpu_limits=_limits(env),
        virtual_gpu_memory_bytes=_integer(
            env, "XPURT_VIRTUAL_GPU_MEMORY", 0, 0, 2**63 - 1
        ),
        virtual_gpu_fail_after=_integer(
            env, "XPURT_VIRTUAL_GPU_FAIL_AFTER", 0, 0, 2**63 - 1
        ),
        cache_folder=_cache_folder(env),
        cache_size_bytes=_integer(
            env, "XPURT_CACHE_SIZE", DEFAULT_CACHE_BYTES, 0, 2**63 - 1
        ),
        check_locks=_off(env, "XPURT_CHECK_LOCKS"),
        cpu_kernels=_cpu_kernels(env),
        lazy_copies=_lazy_copies(env),
        no_memory_caching=_off(env, "XPURT_NO_MEMORY_CACHING"),
        autoload=_switch(env, "XPURT_AUTOLOAD"),
        learn=_switch(env, "XPURT_LEARN"),
        deterministic=_off(env, "XPURT_DETERMINISTIC"),
        backward_thread=cast(
            BackwardThread, _choice(env, "XPURT_BACKWARD_THREAD", ("caller", "device"))
        ),
    )


def guard_device_count() -> int:
    """The device count that the device guard reports to PyTorch, fixed for the life of
    the process. Never raises."""
    try:
        return _max_devices(os.environ)
    except ConfigError:
        return DEFAULT_MAX_DEVICES


def names_a_mapping() -> bool:
    """Whether XPURT_MAPPING is set, to a bad value or a good one. Never raises."""
    return bool(_text(os.environ, "XPURT_MAPPING"))


def names_explicit() -> bool:
    """Whether XPURT_MAPPING is "explicit". Never raises."""
    return _text(os.environ, "XPURT_MAPPING").strip().lower() == "explicit"


def lazy_copies_at_import() -> bool:
    """The value of ``XPURT_LAZY_COPIES``; False where it is bad. Never raises."""
    try:
        return _lazy_copies(os.environ)
    except ConfigError:
        return False


def check_locks_at_import() -> bool:
    """The value of ``XPURT_CHECK_LOCKS``; False where it is bad. Never raises."""
    try:
        return _off(os.environ, "XPURT_CHECK_LOCKS")
    except ConfigError:
        return False


def cpu_kernels_at_import() -> CpuKernels:
    """The value of ``XPURT_CPU_KERNELS``. Raises ConfigError where it is bad: a program
    that uses no device would never hear of it."""
    return _cpu_kernels(os.environ)


def _cpu_kernels(env: Mapping[str, str]) -> CpuKernels:
    return cast(CpuKernels, _choice(env, "XPURT_CPU_KERNELS", _CPU_KERNELS))


def _lazy_copies(env: Mapping[str, str]) -> bool:
    return _off(env, "XPURT_LAZY_COPIES")


def _max_devices(env: Mapping[str, str]) -> int:
    return _integer(
        env, "XPURT_MAX_DEVICES", DEFAULT_MAX_DEVICES, 1, LARGEST_MAX_DEVICES
    )


def _limits(env: Mapping[str, str]) -> str:
    text = _text(env, "XPURT_VIRTUAL_GPU_LIMITS")
    if text and not VIRTUAL_GPU_LIMITS.fullmatch(text):
        raise _bad("XPURT_VIRTUAL_GPU_LIMITS", text, VIRTUAL_GPU_LIMITS_SHOWN)
    return text


def _cache_folder(env: Mapping[str, str]) -> Path:
    """The user's choice, or "xpurt" in the platform's cache folder: on Linux in
    $XDG_CACHE_HOME, or ~/.cache. These are read from the process's own environment."""
    if chosen := _text(env, "XPURT_CACHE_DIR"):
        return _expanded(env, "XPURT_CACHE_DIR", chosen).absolute()
    # Imported here: `import torch` loads this module, and needs no cache folder.
    import platformdirs

    return platformdirs.user_cache_path("xpurt", appauthor=False)


def _expanded(env: Mapping[str, str], name: str, text: str) -> Path:
    """`text` as a path, with "~" expanded: a shell doesn't expand it within quotes."""
    if text == "~" or text.startswith("~/"):
        return Path(env.get("HOME") or Path.home(), text[2:])
    try:
        return Path(text).expanduser()
    except RuntimeError:  # no such user
        raise ConfigError(
            f'{name}="{text}" is not possible: there is no user {text.split("/")[0]}. '
            "Write the whole path."
        ) from None


def _switch(env: Mapping[str, str], name: str) -> bool:
    """Whether the variable is on; on is the default."""
    return _choice(env, name, _ON + _OFF, shown="1 or 0") in _ON


def _off(env: Mapping[str, str], name: str) -> bool:
    """Whether the variable is on; off is the default."""
    return _choice(env, name, _OFF + _ON, shown="1 or 0") in _ON


def _choice(
    env: Mapping[str, str], name: str, allowed: tuple[str, ...], shown: str = ""
) -> str:
    """The variable in lower case; the first value of `allowed` if it is not set."""
    text = _text(env, name)
    if not text:
        return allowed[0]
    if text.lower() not in allowed:
        near = nearest(text, allowed)
        hint = f' Did you mean "{near}"?' if near else ""
        raise _bad(name, text, shown or _either(allowed), hint)
    return text.lower()


def _integer(
    env: Mapping[str, str], name: str, default: int, least: int, most: int
) -> int:
    text = _text(env, name)
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise _bad(name, text, f"a whole number from {least} to {most}")
    return number


def _rate(env: Mapping[str, str], name: str) -> float:
    """The variable in gigabytes per second; 0 if it is not set."""
    text = _text(env, name)
    if not text:
        return 0.0
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < math.inf:
        raise _bad(name, text, "a number of gigabytes per second above 0")
    return rate


def _text(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _bad(name: str, found: str, allowed: str, hint: str = "") -> ConfigError:
    return ConfigError(f'{name}="{found}" is not possible; it may be {allowed}.{hint}')


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
