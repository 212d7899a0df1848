"""What `import torch` calls through the entry point torch.backends: never raises.

It lies outside the package on purpose: importing anything of the package imports all
of it, and an error there would be an error of `import torch`.
"""

import os
import sys

failure: str | None = None
"""Why `import torch` did not bring the device; None if it did, or did not try."""


def load() -> None:
    """Imports xpurt; a failure is kept for `python -m xpurt doctor`.

    XPURT_AUTOLOAD=0 leaves the import to the user.
    """
    global failure
    if os.environ.get("XPURT_AUTOLOAD", "").strip().lower() in (
        "0",
        "off",
        "false",
        "no",
    ):
        return
    if "xpurt" in sys.modules:  # its own `import torch` got us here
        return
    try:
        import xpurt  # noqa: F401
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
