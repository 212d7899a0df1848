"""`python -m xpurt`."""

import sys

from xpurt.cli import main

if __name__ == "__main__":
    sys.exit(main())
