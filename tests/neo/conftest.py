"""tests/neo.sh, which brings the driver, sets NOOP_GPU_ROOT."""

import os

collect_ignore_glob = [] if "NOOP_GPU_ROOT" in os.environ else ["test_*.py"]
