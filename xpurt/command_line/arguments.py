"""Values of arguments of the command line, and the end of a command that fails."""

import argparse
import sys
from pathlib import Path


def path(text: str) -> Path:
    """`text` with "~" expanded: shells leave it in ``--json=~/out.json``."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise argparse.ArgumentTypeError(
            f"there is no user {text.split('/')[0]}: write the whole path"
        ) from None


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


# Each command imports what it needs: `devices` needs no scikit-learn, and `doctor` has
# to work if the rest of xpurt does not.


def failed(error: Exception) -> int:
    print(f"xpurt: {error}", file=sys.stderr)
    return 1
