"""What `import torch` calls through the entry point torch.backends: never raises."""

import os
import sys

_inactive_reason: str | None = None


def inactive_reason() -> str | None:
    """Why xpurt gave this PyTorch no xpu device; None if it did."""
    return _inactive_reason


def set_inactive(reason: str) -> None:
    global _inactive_reason
    _inactive_reason = reason


def load() -> None:
    """Imports xpurt; a failure is kept for `python -m xpurt doctor`.

    XPURT_AUTOLOAD=0 leaves the import to the user.
    """
    if os.environ.get("XPURT_AUTOLOAD", "1").lower() in ("0", "false", "off", "no"):
        return
    if "xpurt" in sys.modules:  # its own `import torch` got us here
        return
    try:
        import xpurt  # noqa: F401
    except Exception as error:
        set_inactive(f"{type(error).__name__}: {error}")
