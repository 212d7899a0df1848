"""Memory in a forked child, and at the end of a process."""

import own_process

PREPARE = """
import os, torch, xpurt
from xpurt import _C
torch.xpu._lazy_init = lambda: None
xpurt.set_xpu_mapping("CPU")
"""


def run(code: str) -> str:
    done = own_process.run_to_the_end(PREPARE + code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forked_child_frees_nothing() -> None:
    out = run(
        """
data = torch.UntypedStorage(1000, device="xpu")
address = data.data_ptr()
child = os.fork()
if child == 0:
    del data
    _C.testing.raw_free(address)
    try:
        _C.testing.raw_allocate(8)
    except RuntimeError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), _C.live_memory())
"""
    )
    assert out.split() == ["7", "(1,", "1000)"]


def test_storages_alive_at_the_end() -> None:
    out = run(
        """
import builtins
builtins.kept = [torch.UntypedStorage(1 << n, device="xpu") for n in range(25)]
stream = torch.Stream("xpu")
for storage in builtins.kept:
    _C.testing.raw_record_stream(storage.data_ptr(), stream.stream_id, 0)
print(_C.live_memory()[0])
"""
    )
    assert out.split() == ["25"]
