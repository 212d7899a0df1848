"""Ctrl-C while the device works: in processes of their own, which get the signal."""

from own_process import output

# A kernel of about four seconds that can't be stopped; it ends with the process.
PREPARE = """
import ctypes, os, signal, threading, time
import dpctl.memory, dpctl.program, torch
from xpurt import streams

SOURCE = '''__kernel void spin(__global volatile uint* out, ulong rounds) {
  uint x = 1;
  for (ulong i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  out[0] = x;
}'''
stream = torch.xpu.Stream()
queue = streams.sycl_queue(stream)
spin = dpctl.program.create_program_from_source(queue, SOURCE).get_sycl_kernel("spin")
out = dpctl.memory.MemoryUSMDevice(64, queue=queue)

# A shell starts programs in the background with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def submit(rounds):
    queue.submit_async(spin, [out, ctypes.c_ulonglong(rounds)], [1], [1])

submit(1)
stream.synchronize()

def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
"""

INTERRUPT = """
submit(1_000_000_000)
event = stream.record_event()
interrupt_after(0.3)
begin = time.perf_counter()
try:
    {wait}
except KeyboardInterrupt:
    took = time.perf_counter() - begin
    assert not event.query(), "the kernel was too short"
    print("interrupted", "at once" if took < 1 else f"after {{took}} s")
# The stream is as good as before, and can be waited for.
stream.synchronize()
print(event.query(), stream.query())
"""


def interrupted(wait: str) -> list[str]:
    return output(PREPARE + INTERRUPT.format(wait=wait)).splitlines()


def test_waiting_for_a_stream() -> None:
    assert interrupted("stream.synchronize()") == ["interrupted at once", "True True"]


def test_waiting_for_a_device() -> None:
    assert interrupted("torch.xpu.synchronize()") == [
        "interrupted at once",
        "True True",
    ]


def test_waiting_for_an_event() -> None:
    assert interrupted("event.synchronize()") == ["interrupted at once", "True True"]


def test_a_handler_that_does_not_raise_lets_the_wait_go_on() -> None:
    code = """
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(stream.query()))
    submit(200_000_000)
    interrupt_after(0.1)
    stream.synchronize()
    print(heard, stream.query())
    """
    assert output(PREPARE + _dedent(code)) == "[False] True"


def test_a_failure_reaches_the_main_thread() -> None:
    code = """
    from xpurt import _C
    _C._submit_sleep(stream.stream_id, 0, 0.1)
    _C._submit_failure(stream.stream_id, 0, "on the way")
    try:
        stream.synchronize()
    except RuntimeError as error:
        print(error)
    """
    assert output(PREPARE + _dedent(code)).endswith("failed on the device: on the way")


def _dedent(code: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in code.splitlines())
