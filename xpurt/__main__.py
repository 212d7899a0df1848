"""`python -m xpurt`."""

import sys

from xpurt.command_line.cli import main

if __name__ == "__main__":
    sys.exit(main())
