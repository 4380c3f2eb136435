"""Readers and splitters at the same time: no record is lost, none is read twice."""

import random
import sys
from queue import Queue, SimpleQueue
from threading import Lock, Thread

import pytest

from dagkit.ranges import (
    OFFSET_INFINITY,
    GrowableOffsetRestrictionTracker,
    OffsetRange,
    OffsetRangeTracker,
    OffsetRestrictionTracker,
    OrderedPositionRangeTracker,
)
from tests.patience import join, within


@pytest.fixture(autouse=True)
def _threads_take_turns_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def slowly(compare):
    """The comparison, with time for other threads to come in between."""

    def compared(one, other):
        for _ in range(100):
            pass
        return compare(one, other)

    return compared


class Slow(int):
    """An integer whose comparisons take their time, so that a thread is stopped in the midst of a claim."""

    __slots__ = ()
    __lt__ = slowly(int.__lt__)
    __le__ = slowly(int.__le__)
    __gt__ = slowly(int.__gt__)
    __ge__ = slowly(int.__ge__)


class SlowRangeTracker(OrderedPositionRangeTracker[Slow]):
    """Tracks positions that are compared slowly."""

    @classmethod
    def position_to_fraction(cls, position, start, stop):
        return (int(position) - int(start)) / (int(stop) - int(start))

    @classmethod
    def fraction_to_position(cls, fraction, start, stop):
        return start


class Granted:
    """What one reader was granted. Every so many records it wakes a splitter, and reads on while that one cuts."""

    def __init__(self, wake, every):
        self.records = []
        self.wake = wake
        self.every = self.due = every

    def extend(self, records):
        self.records.extend(records)
        if len(self.records) >= self.due:
            self.due = len(self.records) + self.every
            self.wake()

    def append(self, record):
        self.extend((record,))


class Race:
    """Readers empty a queue of ranges; splitters cut the ranges that are being read, and queue what they cut off."""

    def __init__(self, whole, track, split, read, every=50):
        self.whole, self.track, self.split, self.read, self.every = whole, track, split, read, every
        self.work = SimpleQueue()
        # One wake-up may be waiting: a reader gets ahead of the splitters by so much and no more.
        self.wakes = Queue(maxsize=1)
        self.counting = Lock()
        self.open = 1
        self.running = {}
        self.granted = []
        self.cuts = self.tries = 0
        self.failures = []

    def run(self, readers=2, splitters=2):
        """All that was granted, in order."""
        reading = [Thread(target=self.guarded, args=(self.reading, i), daemon=True) for i in range(readers)]
        splitting = [Thread(target=self.guarded, args=(self.splitting, i), daemon=True) for i in range(splitters)]
        self.going_home = [None] * readers
        self.work.put(self.whole)
        for thread in (*reading, *splitting):
            thread.start()
        join(*reading)
        for _ in splitting:
            self.wakes.put(False, timeout=within(60))
        join(*splitting)
        assert not self.failures, self.failures
        return sorted(self.granted)

    def guarded(self, work, number):
        try:
            work(number)
        except Exception as failure:  # noqa: BLE001 - a thread's failure is the test's
            self.failures.append(failure)
            self.go_home()

    def go_home(self):
        for none in self.going_home:
            self.work.put(none)

    def count(self, change):
        with self.counting:
            self.open += change
            if self.open == 0:
                self.go_home()

    def reading(self, number):
        mine = Granted(lambda: self.wakes.put(True, timeout=within(60)), self.every)
        while (work := self.work.get(timeout=within(30))) is not None:
            tracker = self.track(*work)
            self.running[number] = tracker
            self.read(tracker, mine)
            self.count(-1)
        with self.counting:
            self.granted.extend(mine.records)

    def splitting(self, number):
        dice = random.Random(number)  # noqa: S311 - no secret
        while self.wakes.get(timeout=within(30)):
            for tracker in list(self.running.values()):
                # Counted before it is cut off, so that the readers do not go home in between.
                self.count(+1)
                residual = self.split(tracker, dice)
                self.tries += 1
                if residual is None:
                    self.count(-1)
                else:
                    self.cuts += 1
                    self.work.put(residual)


def one_by_one(tracker, mine):
    position = tracker.start_position()
    while tracker.try_claim(position):
        mine.append(position)
        position = type(position)(position + 1)


def in_runs(tracker, mine, run_of=lambda start: range(start, start + 7)):
    position, granted = tracker.start_position(), 7
    while granted == 7:
        run = run_of(position)
        granted = tracker.claim_many(run)
        mine.extend(run[:granted])
        position += 7


def in_slow_runs(tracker, mine):
    in_runs(tracker, mine, lambda start: [Slow(start + i) for i in range(7)])


def with_followers(tracker, mine):
    """Blocks of five offsets; the first is the split point, the others go with it, also beyond the stop."""
    position = -(-tracker.start_position() // 5) * 5
    while tracker.try_return_record_at(position % 5 == 0, position):
        mine.append(position)
        position += 1


def just_ahead(tracker, dice):
    """Cut where the reader is about to be."""
    last = vars(tracker)["_last"]
    if last is None:
        return None
    split = tracker.try_split_at_position(type(last)(last + dice.choice((1, 2, 3, 8, 20, 50, 1000))))
    return None if split is None else (split.position, split.stop)


def some_of_the_rest(tracker, dice, fractions=(0.0, 0.0001, 0.001, 0.01, 0.5)):
    split = tracker.try_split(dice.choice(fractions))
    return None if split is None else (split.residual.start, split.residual.stop)


def the_rest(tracker, dice):
    return some_of_the_rest(tracker, dice, (0.0,))


def work_on(start, stop):
    return OffsetRestrictionTracker(OffsetRange(start, stop))


class Dawdling:
    """The splitting thread is stopped between asking what was claimed and moving the stop."""

    def stop_position(self):
        for _ in range(500):
            pass
        return super().stop_position()


class SlowWork(Dawdling, OffsetRestrictionTracker):
    def __init__(self, start, stop):
        super().__init__(OffsetRange(start, stop))


class SlowTail(Dawdling, GrowableOffsetRestrictionTracker):
    pass


RACES = {
    "one by one": (OffsetRangeTracker, just_ahead, one_by_one, int),
    "in runs": (OffsetRangeTracker, just_ahead, in_runs, int),
    "with records that are no split points": (OffsetRangeTracker, just_ahead, with_followers, int),
    "slowly, one by one": (SlowRangeTracker, just_ahead, one_by_one, Slow),
    "slowly, in runs": (SlowRangeTracker, just_ahead, in_slow_runs, Slow),
    "by fractions, one by one": (work_on, some_of_the_rest, one_by_one, int),
    "by fractions, slowly": (SlowWork, some_of_the_rest, one_by_one, int),
    "by fractions, in runs": (work_on, some_of_the_rest, in_runs, int),
}
race = pytest.mark.parametrize(("track", "split", "read", "position"), RACES.values(), ids=RACES.keys())


@race
def test_every_offset_is_read_once(track, split, read, position):
    run = Race((position(0), position(10_000)), track, split, read)
    assert run.run() == list(range(10_000))
    assert run.cuts > 20


@pytest.mark.trial
@pytest.mark.slow
@race
def test_every_offset_of_a_million_is_read_once(track, split, read, position):
    """All of these together: more than six million claims, and a million splits that were asked for meanwhile."""
    count = 1_000_000 if position is int else 200_000
    run = Race((position(0), position(count)), track, split, read, every=20)
    assert run.run(readers=3, splitters=3) == list(range(count))
    assert run.tries > count / 10
    assert run.cuts > count / 100


def test_a_growing_log_is_read_once():
    """The reader tails; each checkpoint hands an endless residual on, until the log is closed."""
    end = 10_000

    def tail(start, stop):
        return SlowTail(OffsetRange(start, stop), lambda: end)

    def read(tracker, mine):
        position = tracker.start_position()
        while tracker.try_claim(position if position < end else OFFSET_INFINITY):
            mine.append(position)
            position += 1

    run = Race((0, OFFSET_INFINITY), tail, the_rest, read)
    assert run.run() == list(range(end))
    assert run.cuts > 0
