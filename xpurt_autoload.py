"""`import torch` calls this through the entry point torch.backends. It never raises.

It lies outside the package on purpose: importing the package adds the device, so a
switch inside of it would come too late, and an error in it would fail `import torch`.
"""

import os
import sys
import warnings

OFF = ("0", "off", "false", "no")  # as in xpurt.config

failure: str | None = None
"""The reason why `import torch` did not add the device; None if it did, or did not
try."""


def load() -> None:
    """Imports xpurt, unless XPURT_AUTOLOAD=0 leaves that to the program.

    A failure gives a warning, and is kept for `python -m xpurt doctor`.
    """
    global failure
    if os.environ.get("XPURT_AUTOLOAD", "").strip().lower() in OFF:
        return
    if "xpurt" in sys.modules:  # xpurt's own `import torch` called this
        return
    try:
        import xpurt  # noqa: F401
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        _warn(error)


def _warn(error: Exception) -> None:
    try:
        warnings.warn(
            f"xpurt gives this PyTorch no xpu device: {error} "
            "(`python -m xpurt doctor` says more; XPURT_AUTOLOAD=0 keeps it out)",
            RuntimeWarning,
            stacklevel=3,
        )
    except RuntimeWarning as warning:  # where warnings are errors
        print(warning, file=sys.stderr)
