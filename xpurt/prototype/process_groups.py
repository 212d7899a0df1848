"""The backend of `torch.distributed` for prototype devices.

Its name is "prototype", and such a group has gloo for CPU tensors. A group without a
backend's name has it, and so have groups with gloo alone, at their first use with tensors
of a prototype. A vendor's own backend, which
`torch.distributed.Backend.register_backend(..., devices=[name])` registers, takes its
place in groups that are made later.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from torch.distributed import distributed_c10d

from xpurt import _prototype

NAME: Final = "prototype"
_names: Final[list[str]] = []
_c10d: Any = distributed_c10d


def follow(name: str) -> None:
    """From now on groups have a backend for the prototype. Does nothing in a PyTorch
    without gloo."""
    if not _c10d.is_gloo_available():
        return
    _names.append(name)
    _install()
    _c10d.Backend.register_backend(
        NAME, _make_backend, extended_api=True, devices=list(_names)
    )


@functools.cache
def _install() -> None:
    backends, config = distributed_c10d.Backend, distributed_c10d.BackendConfig
    register = _giving_way(
        backends.register_backend, backends.default_device_backend_map
    )
    setattr(distributed_c10d.Backend, "register_backend", staticmethod(register))  # noqa: B010
    init = _with_prototypes(config.__init__, backends)
    setattr(distributed_c10d.BackendConfig, "__init__", init)  # noqa: B010


def _make_backend(given: Any, _options: Any) -> Any:
    """Called as PyTorch calls makers of backends. given: `_DistributedBackendOptions`."""
    of_xpu = _c10d.ProcessGroupXCCL
    options = of_xpu.Options()
    options._timeout = given.timeout
    options.group_name = given.group_id
    options.global_ranks_in_group = given.global_ranks_in_group
    behind = of_xpu(given.store, given.group_rank, given.group_size, options)
    return _prototype.define_backend()(behind)


def _giving_way(
    before: Callable[..., None], defaults: dict[str, str]
) -> Callable[..., None]:
    """PyTorch keeps the first default backend of a device type. A vendor's replaces ours."""

    @functools.wraps(before)
    def register_backend(
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: str | list[str] | None = None,
    ) -> None:
        for device in (devices or ()) if name.lower() != NAME else ():
            if defaults.get(device) == NAME:
                del defaults[device]
        before(name, func, extended_api, devices)

    return register_backend


def _with_prototypes(before: Callable[..., None], backends: Any) -> Callable[..., None]:
    """Without a name PyTorch gives a group the backend of the accelerator alone."""

    @functools.wraps(before)
    def init(config: Any, backend: str) -> None:
        before(config, backend)
        if str(backend) not in (backends.UNDEFINED, NAME):
            return
        of_device = config.device_backend_map
        of_device.setdefault("cpu", backends.GLOO)  # compiled graphs use it
        if str(backend) == backends.UNDEFINED:
            defaults = backends.default_device_backend_map
            of_device |= {each: backends(defaults[each]) for each in _names}

    return init
