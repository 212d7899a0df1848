"""The accelerator "xpu" of lightning, for its Trainer and its Fabric.

lightning has a registry of accelerators, but no entry point for it. And it chooses
strategies and autocast by a fixed list of accelerator names: for any other name it
takes a strategy on the CPU, and autocast for CUDA. So its connectors, which read the
arguments of Trainer and Fabric, are changed where they choose. `lightning` and the
packages `pytorch_lightning` and `lightning_fabric` are separate code: each gets a class
of its own.
"""

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import torch

from xpurt.errors import MappingError
from xpurt.mapping import check_device_index, current_placement, get_xpu_mapping

NAME: Final = "xpu"
_MIXED: Final = ("16-mixed", "bf16-mixed")
_SHARDED: Final = "FSDPStrategy"
_STRATEGIES: Final = frozenset({"DDPStrategy", _SHARDED, "ModelParallelStrategy"})
# The method's name in Trainer, and in Fabric.
_DEVICE_IDS: Final = ("determine_ddp_device_ids", "_determine_ddp_device_ids")


def change(connector: ModuleType) -> None:
    """Adds xpu to the package that the module `connector` belongs to.

    Raises AttributeError if the module differs from those of lightning 2.5 and 2.6.
    """
    for_trainer = hasattr(connector, "_AcceleratorConnector")
    chooser = getattr(
        connector, "_AcceleratorConnector" if for_trainer else "_Connector"
    )
    registry = getattr(
        connector, "AcceleratorRegistry" if for_trainer else "ACCELERATOR_REGISTRY"
    )
    if NAME in registry:  # lightning's own, or a program's
        return
    made = _accelerator(connector)
    changes = _Changes(connector, made)
    replaced = {
        name: change(getattr(chooser, name))
        for name, change in {
            "_choose_auto_accelerator": changes.choose_auto,
            "_choose_gpu_accelerator_backend": changes.choose_gpu,
            "_choose_strategy": changes.choose_strategy,
            "_check_strategy_and_fallback": changes.check_strategy,
            "_init_strategy": changes.init_strategy,
            "_check_and_init_precision": changes.init_precision,
        }.items()
    }
    registry.register(NAME, made, description=made.__name__)
    for name, value in replaced.items():
        setattr(chooser, name, value)


def is_available() -> bool:
    """Whether xpu is PyTorch's accelerator, and has a device."""
    current = torch.accelerator.current_accelerator()
    return current is not None and current.type == "xpu" and torch.xpu.is_available()


def parse_devices(devices: object) -> list[int]:
    """The ordinals of Trainer(devices=...): a number of them, -1 for all, or a list.

    Raises MappingError for an ordinal that the mapping lacks, and for other values.
    """
    count = torch.xpu.device_count()
    try:
        if isinstance(devices, str):
            devices = (
                [int(each) for each in devices.split(",") if each.strip()]
                if "," in devices
                else int(devices)
            )
        if isinstance(devices, int) and not isinstance(devices, bool):
            requested = list(range(count if devices == -1 else devices))
        else:
            requested = [int(each) for each in devices]  # type: ignore[attr-defined]
        if not requested or len(set(requested)) != len(requested) or min(requested) < 0:
            raise ValueError
    except (TypeError, ValueError):
        raise MappingError(
            f"devices={devices!r} names no xpu devices. There are {count}: give a "
            'number of them, -1 for all, a list of their indices, or "auto".'
        ) from None
    if max(requested) >= count:
        raise MappingError(
            f"devices={devices!r} wants {len(requested)} of xpu; mapping "
            f'"{get_xpu_mapping()}" has {count}. Take devices=1, or a mapping with more '
            'ordinals: "explicit" has one per device, and `partition` splits a device.'
        )
    return requested


def auto_device_count() -> tuple[int, str]:
    """The number of ordinals for devices="auto": all of them if they are equal, else one.
    And the reason if it is not all.

    Each process gets an equal share of the data, so the slowest device decides.
    """
    count = torch.xpu.device_count()
    placement = current_placement()
    homes = [placement.ordinals[i][placement.homes[i]] for i in range(count)]
    for index, home in enumerate(homes):
        if home.name != homes[0].name:
            return 1, f"xpu:{index} ({home}) is not as fast. devices={count} takes all"
    if count > 1 and hasattr(sys, "ps1"):
        return 1, "an interactive session can't start processes on the others"
    return count, ""


def _accelerator(connector: ModuleType) -> type[Any]:
    base: Any = connector.Accelerator
    inform = connector.rank_zero_info

    class XPUAccelerator(base):  # type: ignore[misc]
        """The xpu devices of xpurt's mapping."""

        is_available = staticmethod(is_available)
        parse_devices = staticmethod(parse_devices)

        def setup_device(self, device: torch.device) -> None:
            if device.type != "xpu":
                raise MappingError(
                    f'accelerator="xpu" was asked for, and the strategy is for {device}.'
                    ' Leave the strategy out, or give it the device "xpu:0".'
                )
            check_device_index(device.index or 0)
            torch.xpu.set_device(device)

        def setup(self, trainer: Any) -> None:
            inform(f"xpu used: {trainer.strategy.root_device}")

        def get_device_stats(self, device: torch.device | str | int) -> dict[str, Any]:
            return torch.xpu.memory_stats(device)

        def teardown(self) -> None:
            torch.xpu.empty_cache()

        @staticmethod
        def auto_device_count() -> int:
            count, reason = auto_device_count()
            if reason:
                inform(f"xpu:0 alone is used, of {torch.xpu.device_count()}: {reason}")
            return count

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device("xpu", index) for index in devices]

        @staticmethod
        def name() -> str:
            return NAME

        @classmethod
        def register_accelerators(cls, accelerator_registry: Any) -> None:
            accelerator_registry.register(NAME, cls, description=cls.__name__)

    made: type[Any] = XPUAccelerator
    # The class is put where imports and pickle find it.
    made.__module__ = base.__module__.rpartition(".")[0]
    made.__qualname__ = made.__name__
    setattr(sys.modules[made.__module__], made.__name__, made)
    return made


class _Changes:
    """The replacements of a connector's methods."""

    def __init__(self, connector: ModuleType, made: type[Any]) -> None:
        self._made = made
        self._single: Any = connector.SingleDeviceStrategy
        self._parallel: Any = connector.ParallelStrategy
        self._mixed: Any = connector.MixedPrecision

    def choose_auto(self, before: Callable[..., str]) -> Any:
        @functools.wraps(before)
        def choose() -> str:
            found = before()
            return NAME if found == "cpu" and is_available() else found

        return staticmethod(choose)

    def choose_gpu(self, before: Callable[..., str]) -> Any:
        @functools.wraps(before)
        def choose() -> str:
            try:
                return before()
            except Exception as error:
                if not is_available():
                    raise
                ordinals = current_placement().ordinals
                if any(each.kind == "gpu" for some in ordinals for each in some):
                    return NAME
                raise type(error)(
                    f"{error} xpu is the CPU here, under the mapping "
                    f'"{get_xpu_mapping()}": accelerator="xpu" or "auto" takes it.'
                ) from None

        return staticmethod(choose)

    def choose_strategy(self, before: Callable[[Any], Any]) -> Any:
        @functools.wraps(before)
        def choose(connector: Any) -> Any:
            devices = connector._parallel_devices
            if (
                isinstance(connector.accelerator, self._made)
                and len(devices) == 1
                and connector._num_nodes_flag == 1
            ):
                return self._single(device=devices[0])
            return before(connector)

        return choose

    def check_strategy(self, before: Callable[[Any], None]) -> Any:
        @functools.wraps(before)
        def check(connector: Any) -> None:
            asked = connector._accelerator_flag
            if asked != NAME and not isinstance(asked, self._made):
                return before(connector)
            # FSDP is refused for an accelerator of any other name.
            connector._accelerator_flag = "gpu"
            try:
                before(connector)
            finally:
                connector._accelerator_flag = asked

        return check

    def init_strategy(self, before: Callable[[Any], None]) -> Any:
        @functools.wraps(before)
        def init(connector: Any) -> None:
            before(connector)
            if not isinstance(connector.accelerator, self._made):
                return
            if connector._strategy_flag == "single_device":
                # By its name, lightning has made it for the CPU.
                connector.strategy = self._single(device=connector._parallel_devices[0])
            elif isinstance(connector.strategy, self._parallel):
                _configure_parallel(connector.strategy)

        return init

    def init_precision(self, before: Callable[[Any], Any]) -> Any:
        @functools.wraps(before)
        def init(connector: Any) -> Any:
            # The attribute's names in Trainer's connector, and in Fabric's.
            known = vars(connector)
            flag = known.get("_precision_flag", known.get("_precision_input"))
            plugin = known.get(
                "_precision_plugin_flag", known.get("_precision_instance")
            )
            if (
                isinstance(connector.accelerator, self._made)
                and plugin is None
                and flag in _MIXED
                and _SHARDED not in _names(connector.strategy)
            ):
                return self._mixed(flag, NAME)
            return before(connector)

        return init


def _names(strategy: Any) -> set[str]:
    """The names of a strategy's class and of its bases."""
    return {each.__name__ for each in type(strategy).__mro__}


def _configure_parallel(strategy: Any) -> None:
    """Adapts a strategy of several processes to xpu.

    Raises MappingError for a strategy that can't work.
    """
    if not hasattr(strategy, "_process_group_backend"):  # a single process
        return
    name = type(strategy).__name__
    names = _names(strategy)
    if not names & _STRATEGIES or "DeepSpeedStrategy" in names:
        raise MappingError(
            f"strategy {name} is not made for xpu. Take devices=1, or one of the "
            'strategies "ddp", "fsdp" and ModelParallelStrategy.'
        )
    if getattr(strategy, "_start_method", None) in ("fork", "forkserver"):
        raise MappingError(
            f'strategy {name} starts processes by "{strategy._start_method}", and xpu '
            'can\'t be used in a forked process. Take strategy="ddp", which starts '
            "processes anew, or devices=1."
        )
    if strategy._process_group_backend is None:
        strategy._process_group_backend = "cpu:gloo,xpu:xccl"
    # With ids, DDP uses CUDA's streams. Without, the parameters' device decides.
    for each in _DEVICE_IDS:
        if hasattr(strategy, each):
            setattr(strategy, each, _no_device_ids)


def _no_device_ids() -> None:
    return None
