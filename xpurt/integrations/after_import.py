"""Calls a function once a module of another package has been imported.

Note [Hooks on imports]
~~~~~~~~~~~~~~~~~~~~~~~
A package without an entry point for devices is changed right after its import. A finder
at the front of ``sys.meta_path`` has the list of the modules to change. It finds no
module itself; it extends the loader that another finder returns. A failure is a
warning: it never fails the import of the package, nor that of xpurt.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], object]

_LIGHTNING = "xpurt.integrations.lightning"

# For each foreign module, our module whose function `change` changes it.
_CHANGES = {
    "torch._higher_order_ops.associative_scan": "xpurt.compiler.higher_order.associative_scans",
    "torch._dynamo.convert_frame": "xpurt.compiler.traced_streams",
    "torch.distributed.distributed_c10d": "xpurt.distributed.default_backend",
    "torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook": (
        "xpurt.distributed.overlapped_zero"
    ),
    "torch.distributed.fsdp._fully_shard._fsdp_collectives": "xpurt.distributed.lazy_shards",
    "torch.distributed.tensor": "xpurt.distributed.attention_sharding",
    "torch.distributed.tensor.experimental._context_parallel._attention": (
        "xpurt.distributed.context_parallel"
    ),
    "torch._inductor.compile_fx": "xpurt.compiler.inductor_hook",
    "torch.export.pt2_archive._package": "xpurt.compiler.packages",
    "lightning.pytorch.trainer.connectors.accelerator_connector": _LIGHTNING,
    "lightning.fabric.connector": _LIGHTNING,
    "pytorch_lightning.trainer.connectors.accelerator_connector": _LIGHTNING,
    "lightning_fabric.connector": _LIGHTNING,
    "torchaudio._extension": "xpurt.integrations.torchaudio",
    "timm.utils.distributed": "xpurt.integrations.timm",
}


class _Finder(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname not in _CHANGES:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec: ModuleSpec | None = finder.find_spec(fullname, path, target)
            if spec is not None:
                _change_after_loading(spec)
                return spec
        return None


_finder = _Finder()


def follow_imports() -> None:
    """Changes the modules that are imported already, and others at their import.

    A second call does nothing.
    """
    if _finder in sys.meta_path:
        return
    sys.meta_path.insert(0, _finder)
    for name in _CHANGES:
        module = sys.modules.get(name)
        if module is not None:
            _change(name, module)


def _change_after_loading(spec: ModuleSpec) -> None:
    loader: Any = spec.loader
    before = getattr(loader, "exec_module", None)
    if before is None:
        return

    @functools.wraps(before)
    def exec_module(module: ModuleType) -> None:
        before(module)
        _change(spec.name, module)

    # A file's loader is made for one module. It stays the object that inspect uses.
    with suppress(AttributeError):
        loader.exec_module = exec_module


def _change(name: str, module: ModuleType) -> None:
    try:
        import_module(_CHANGES[name]).change(module)
    except Exception as error:
        package = name.partition(".")[0]
        with suppress(Warning):  # of a process that makes warnings errors
            warnings.warn(
                f"xpurt could not tell {package} of xpu, which {package} then does not "
                f"use by itself: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
