"""Predicted clocks, with the time in the test's hands."""

from xpurt import _C


def test_a_queue_is_free_now_or_when_its_work_ends() -> None:
    backlog = _C.testing.Backlog(2)
    assert backlog.free_us(0, 10) == 10
    backlog.book(0, 50)
    assert (backlog.free_us(0, 10), backlog.free_us(1, 10)) == (50, 10)
    assert backlog.free_us(0, 60) == 60


def test_an_operand_is_there_when_its_writer_ends() -> None:
    backlog = _C.testing.Backlog(2)
    backlog.book_write(7, 50)
    assert backlog.written_us(7, 10) == 50
    assert backlog.written_us(7, 60) == 60
    assert backlog.written_us(8, 10) == 10


def test_an_entry_that_was_taken_over_is_long_done() -> None:
    backlog = _C.testing.Backlog(1)
    backlog.book_write(1, 50)
    for other in range(2, 5000):
        backlog.book_write(other, 90)
    assert backlog.written_us(1, 10) == 10


def test_after_a_wait_nothing_is_pending() -> None:
    backlog = _C.testing.Backlog(1)
    backlog.book(0, 50)
    backlog.book_write(3, 50)
    backlog.clear()
    assert backlog.free_us(0, 10) == 10
    assert backlog.written_us(3, 10) == 10


def test_a_mark_that_ended_early_moves_the_clock_back() -> None:
    backlog = _C.testing.Backlog(2)
    backlog.book(0, 100)
    backlog.correct(0, 60, 20, True)  # predicted at 60, seen at 20
    assert backlog.free_us(0, 20) == 60
    backlog.correct(0, 60, 10, False)  # as predicted
    assert backlog.free_us(0, 20) == 60


def test_a_mark_that_is_late_moves_the_clock_on() -> None:
    backlog = _C.testing.Backlog(1)
    backlog.book(0, 100)
    backlog.correct(0, 60, 90, False)
    assert backlog.free_us(0, 90) == 130
    backlog.correct(0, 90, 95, True)  # ended some time since the last check
    assert backlog.free_us(0, 95) == 130


def test_work_that_is_not_submitted_is_taken_back() -> None:
    backlog = _C.testing.Backlog(1)
    backlog.book(0, 100)
    backlog.book(0, 150)
    backlog.take_back(0, 0, 100)  # the later work moves forward
    assert backlog.free_us(0, 10) == 50
    backlog.take_back(0, 0, 100)  # of another age: a wait has set the clock back
    assert backlog.free_us(0, 10) == 50
