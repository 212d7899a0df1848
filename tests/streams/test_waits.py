"""Waits and queries go through `device/event_status.h`: those of the SYCL runtime may
answer too early. See Note [Ask twice] and Note [Wait twice] there."""

import re
from pathlib import Path

CSRC = Path(__file__).resolve().parents[2] / "xpurt" / "csrc"

# Of SYCL: queries of an event or a queue, and waits for a queue. A wait for an event
# has the same name as other waits: only those on an event that is known by its type or
# its origin are found.
OF_SYCL = re.compile(
    r"command_execution_status|ext_oneapi_empty|wait_and_throw"
    r"|sycl::event\([^)]*\)\.wait\(\)|\b(?:event|done|waited|before)\.wait\(\)"
    r"|record\(\)\.wait\(\)"
)


def test_events_and_queues_are_asked_and_awaited_in_one_place() -> None:
    found = [
        f"{path.relative_to(CSRC)}: {use}"
        for path in sorted(CSRC.rglob("*"))
        if path.suffix in {".h", ".cpp"} and path.name != "event_status.h"
        for use in OF_SYCL.findall(re.sub(r"//.*", "", path.read_text()))
    ]
    assert found == []
