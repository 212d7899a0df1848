"""Every XPURT_* variable, read once.

This is the only file that reads them. `config()` validates all of them at its first
call and keeps the result; a bad value raises there, at the first use of the device,
never while ``import torch`` loads xpurt. What matters during the import itself
(`guard_device_count`, `names_a_mapping`) is answered with its default where it is bad,
and reported by `config()` later. XPURT_AUTOLOAD is also read before the package, by xpurt_autoload.py.
"""

import functools
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from xpurt.errors import ConfigError, nearest

FallbackPolicy = Literal["warn", "error", "silent"]
KernelPolicy = Literal["auto", "sycl", "native"]
VirtualGpu = Literal["off", "lenient", "coherent", "strict"]

DEFAULT_MAX_DEVICES: Final = 16
# PyTorch numbers devices with a signed byte, and the autograd engine starts a thread
# per possible device: more than this is never a machine, always a typing mistake.
LARGEST_MAX_DEVICES: Final = 64
DEFAULT_CACHE_BYTES: Final = 256 << 20

# Every variable there is. One that is not here is a typing mistake, and said to be one.
VARIABLES: Final = (
    "XPURT_AUTOLOAD",
    "XPURT_CACHE_DIR",
    "XPURT_CACHE_SIZE",
    "XPURT_DETERMINISTIC",
    "XPURT_FALLBACK",
    "XPURT_KERNEL_POLICY",
    "XPURT_LAZY_COPIES",
    "XPURT_LEARN",
    "XPURT_MAPPING",
    "XPURT_MAX_DEVICES",
    "XPURT_VIRTUAL_GPU",
    "XPURT_VIRTUAL_GPU_DELAY_US",
    "XPURT_VIRTUAL_GPU_FAIL_AFTER",
    "XPURT_VIRTUAL_GPU_FP64",
    "XPURT_VIRTUAL_GPU_MEMORY",
)

_ON = ("1", "on", "true", "yes")
_OFF = ("0", "off", "false", "no")
_VIRTUAL_GPU: dict[str, VirtualGpu] = {
    "off": "off",
    "0": "off",
    "1": "lenient",
    "lenient": "lenient",
    "coherent": "coherent",
    "strict": "strict",
}


@dataclass(frozen=True, slots=True)
class Config:
    """What the environment asks for. An unset or empty variable means the default.

    mapping: ``XPURT_MAPPING``, the first mapping, as ``set_xpu_mapping`` takes it, or
        an empty string; it is parsed when a device is first needed.
    max_devices: ``XPURT_MAX_DEVICES``, the largest number of ordinals a mapping may
        have, and of devices behind one ordinal. PyTorch's autograd engine makes its table of devices once, at the first
        backward, so this bound is fixed for the life of the process.
    fallback: ``XPURT_FALLBACK``, what an op does that has to run on a copy in host
        memory: warn once per op, raise FallbackError, or stay silent.
    kernel_policy: ``XPURT_KERNEL_POLICY``, the tier an op takes: by cost, SYCL or
        oneDNN where there is one, or PyTorch's native CPU kernel.
    virtual_gpu: ``XPURT_VIRTUAL_GPU``, a GPU for machines that have none.
    virtual_gpu_delay_us: ``XPURT_VIRTUAL_GPU_DELAY_US``, microseconds that each of its
        kernels takes longer.
    virtual_gpu_fp64: ``XPURT_VIRTUAL_GPU_FP64``, whether it has double precision.
    virtual_gpu_memory_bytes: ``XPURT_VIRTUAL_GPU_MEMORY``, its memory; 0 gives it what
        the CPU device has.
    virtual_gpu_fail_after: ``XPURT_VIRTUAL_GPU_FAIL_AFTER``, the kernels after which it
        fails; 0: never.
    cache_folder: ``XPURT_CACHE_DIR``, where built kernels are kept; by default "xpurt"
        in the user's cache folder. A "~" at its beginning is the home folder.
    cache_size_bytes: ``XPURT_CACHE_SIZE``, the largest size of it; 0 keeps nothing.
    lazy_copies: ``XPURT_LAZY_COPIES``, whether conversions are copy-on-write as in
        ``xpurt.lazy_copies()``.
    autoload: ``XPURT_AUTOLOAD``, whether ``import torch`` alone brings the device; if
        off, it takes an ``import xpurt``.
    learn: ``XPURT_LEARN``, whether the policy "auto" learns from times of the running
        program.
    deterministic: ``XPURT_DETERMINISTIC``, whether what runs where is fixed by a plan,
        so that results repeat bit for bit.
    """

    mapping: str
    max_devices: int
    fallback: FallbackPolicy
    kernel_policy: KernelPolicy
    virtual_gpu: VirtualGpu
    virtual_gpu_delay_us: int
    virtual_gpu_fp64: bool
    virtual_gpu_memory_bytes: int
    virtual_gpu_fail_after: int
    cache_folder: Path
    cache_size_bytes: int
    lazy_copies: bool
    autoload: bool
    learn: bool
    deterministic: bool


@functools.cache
def config() -> Config:
    """The configuration of this process. Raises ConfigError on a bad variable.

    An error is not kept: once the variable is corrected, the next call succeeds. A
    variable that begins with XPURT_ and is none of ours gets a warning, once.
    """
    _warn_of_unknown()
    return read_config(os.environ)


@functools.cache
def _warn_of_unknown() -> None:
    for text in unknown_variables(os.environ):
        # A process that makes warnings errors would else have no device, or no config.
        with suppress(Warning):
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """A sentence for each variable in `env` that looks like ours and is not."""
    found = []
    for name in sorted(env):
        if not name.upper().startswith("XPURT") or name in VARIABLES:
            continue
        # What all names begin with would make any two of them alike.
        ends = [known.removeprefix("XPURT_") for known in VARIABLES]
        end = nearest(name.upper().removeprefix("XPURT").lstrip("_"), ends)
        near = f"XPURT_{end}" if end else ""
        found.append(
            f'{name}="{env[name]}" is ignored, since xpurt has no such variable. '
            + (f"Did you mean {near}?" if near else f"It has {', '.join(VARIABLES)}.")
        )
    return found


def read_config(env: Mapping[str, str]) -> Config:
    """The configuration in `env`. Raises ConfigError naming the variable."""
    return Config(
        mapping=_text(env, "XPURT_MAPPING"),
        max_devices=_max_devices(env),
        fallback=cast(
            FallbackPolicy,
            _choice(env, "XPURT_FALLBACK", ("warn", "error", "silent")),
        ),
        kernel_policy=cast(
            KernelPolicy,
            _choice(env, "XPURT_KERNEL_POLICY", ("auto", "sycl", "native")),
        ),
        virtual_gpu=_VIRTUAL_GPU[
            _choice(env, "XPURT_VIRTUAL_GPU", tuple(_VIRTUAL_GPU))
        ],
        virtual_gpu_delay_us=_integer(
            env, "XPURT_VIRTUAL_GPU_DELAY_US", 0, 0, 60_000_000
        ),
        virtual_gpu_fp64=_choice(env, "XPURT_VIRTUAL_GPU_FP64", ("1", "0")) == "1",
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
        lazy_copies=_lazy_copies(env),
        autoload=_switch(env, "XPURT_AUTOLOAD"),
        learn=_switch(env, "XPURT_LEARN"),
        deterministic=_choice(env, "XPURT_DETERMINISTIC", _OFF + _ON, shown="1 or 0")
        in _ON,
    )


def guard_device_count() -> int:
    """The device count that the guard tells PyTorch for good. Never raises."""
    try:
        return _max_devices(os.environ)
    except ConfigError:
        return DEFAULT_MAX_DEVICES


def names_a_mapping() -> bool:
    """Whether the environment asks for a mapping, a bad one included. Never raises."""
    return bool(_text(os.environ, "XPURT_MAPPING"))


def lazy_copies_at_import() -> bool:
    """What ``XPURT_LAZY_COPIES`` says, no where it is bad. Never raises."""
    try:
        return _lazy_copies(os.environ)
    except ConfigError:
        return False


def _lazy_copies(env: Mapping[str, str]) -> bool:
    return _choice(env, "XPURT_LAZY_COPIES", _OFF + _ON, shown="1 or 0") in _ON


def _max_devices(env: Mapping[str, str]) -> int:
    return _integer(
        env, "XPURT_MAX_DEVICES", DEFAULT_MAX_DEVICES, 1, LARGEST_MAX_DEVICES
    )


def _cache_folder(env: Mapping[str, str]) -> Path:
    """The user's choice, or "xpurt" where the platform keeps caches: on Linux in
    $XDG_CACHE_HOME, or ~/.cache. That is read from the process's own environment."""
    if chosen := _text(env, "XPURT_CACHE_DIR"):
        return _expanded(env, "XPURT_CACHE_DIR", chosen).absolute()
    # Here, since `import torch` loads this module and reads no folder.
    import platformdirs

    return platformdirs.user_cache_path("xpurt", appauthor=False)


def _expanded(env: Mapping[str, str], name: str, text: str) -> Path:
    """With the home folder for a "~", which no shell expands within quotes."""
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
    """On unless it is switched off."""
    return _choice(env, name, _ON + _OFF, shown="1 or 0") in _ON


def _choice(
    env: Mapping[str, str], name: str, allowed: tuple[str, ...], shown: str = ""
) -> str:
    """The variable in lower case; the first allowed value where it is not set."""
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


def _text(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _bad(name: str, found: str, allowed: str, hint: str = "") -> ConfigError:
    return ConfigError(f'{name}="{found}" is not possible; it may be {allowed}.{hint}')


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
