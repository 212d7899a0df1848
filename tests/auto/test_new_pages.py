"""Timed calls to which the system gives new pages: processes of their own."""

from auto.test_learning import auto


def test_times_of_calls_that_got_new_pages_are_left_out() -> None:
    assert auto(
        """
costs(100, 1e9)
x = torch.ones(1 << 21, device="xpu")
def timed(fresh):
    xpurt.op_report(reset=True)
    for _ in range(4):
        if fresh: torch.xpu.empty_cache()
        x * 2
    return sum(row.timed for row in xpurt.op_report().devices)
print(timed(fresh=True), timed(fresh=False) > 0)
"""
    ) == ["0 True"]


def test_the_call_after_a_discarded_sample_is_timed_in_its_place() -> None:
    """Each call gets new pages, so three of four samples are discarded. With three calls
    from one sample to the next, discarded ones included, 60 calls have six samples."""
    assert auto(
        """
costs(100, 1e9)
x = torch.ones(1 << 21, device="xpu")
for _ in range(60):
    torch.xpu.empty_cache()
    x * 2
rows = [row for row in _C.testing.learned_calls() if row[0] == "aten::mul.Tensor"]
print(sum(sum(row[7]) for row in rows) >= 8)
"""
    ) == ["True"]
