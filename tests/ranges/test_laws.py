"""The laws of tracking, against models that are too simple to be wrong."""

import copy
import pickle
from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from dagkit.ranges import (
    NO_KEYS,
    ByteKeyRange,
    ByteKeyRangeTracker,
    ByteKeyRestrictionTracker,
    GroupedShuffleRangeTracker,
    LexicographicKeyRangeTracker,
    OffsetRange,
    OffsetRangeTracker,
    OffsetRestrictionTracker,
    RangeFault,
)
from tests.examples import examples

START, STOP = 10, 30
offsets = st.integers(START - 3, STOP + 8)
runs = st.lists(offsets, max_size=6, unique=True).map(sorted)
shares = st.floats(0, 1)
FAULT = "fault"
keys = st.binary(min_size=1, max_size=3)
ROWS = list(
    enumerate(sorted([b"a", b"a", b"a\0", b"ab", b"b", b"\0", b"m", b"mm", b"mm", b"\x80", b"\xff", b"\xff\xff"]))
)


def answer(ask, *args):
    try:
        return ask(*args)
    except RangeFault:
        return FAULT


class NaiveReading:
    """A list of all records that were granted, and nothing clever."""

    repeats = False

    def __init__(self, start, stop):
        self.start, self.stop = start, stop
        self.records = []
        self.refused = None

    def asked(self):
        return [r for r, _ in self.records] + ([] if self.refused is None else [self.refused])

    def claim(self, position):
        taken = [r for r, is_split_point in self.records if is_split_point]
        if position < max(self.asked(), default=self.start):
            return FAULT
        if not self.repeats and position in (*taken, self.refused):
            return FAULT
        if position >= self.stop:
            self.refused = position
            return False
        self.records.append((position, True))
        return True

    def follow(self, position):
        if not self.asked() or position < max(self.asked()):
            return FAULT
        if self.refused is not None:
            return False
        self.records.append((position, False))
        return True

    def claim_many(self, positions):
        granted = 0
        for position in positions:
            answer = self.claim(position)
            if answer is FAULT:
                return FAULT
            if not answer:
                break
            granted += 1
        return granted

    def split(self, position):
        if self.refused is not None or not self.records or not self.start < position < self.stop:
            return False
        if all(position > r for r, _ in self.records):
            self.stop = position
        return self.stop == position

    def split_points(self):
        return max(0, sum(is_split_point for _, is_split_point in self.records) - 1)


class NaiveKeys(NaiveReading):
    repeats = True


class TrackedAsModelled(RuleBasedStateMachine):
    """Whatever is asked in whatever order, the tracker answers as the list does."""

    def __init__(self):
        super().__init__()
        self.model = NaiveReading(START, STOP)
        self.tracker = OffsetRangeTracker(START, STOP)

    def at(self, offset):
        return offset

    def ahead(self, step):
        """A position so many steps behind the last record."""
        last = self.model.records[-1][0] if self.model.records else self.at(START)
        return self.at((last if isinstance(last, int) else int(last[1:])) + step)

    @rule(offset=offsets)
    def claim(self, offset):
        assert answer(self.tracker.try_claim, self.at(offset)) == self.model.claim(self.at(offset))

    @rule(run=runs)
    def claim_many(self, run):
        run = [self.at(o) for o in run]
        assert answer(self.tracker.claim_many, run) == self.model.claim_many(run)

    @rule(step=st.integers(0, 2))
    def claim_ahead(self, step):
        position = self.ahead(step)
        assert answer(self.tracker.try_claim, position) == self.model.claim(position)

    @rule(offset=offsets)
    def follow(self, offset):
        assert answer(self.tracker.try_return_record_at, False, self.at(offset)) == self.model.follow(self.at(offset))

    @rule(step=st.integers(0, 2))
    def follow_ahead(self, step):
        position = self.ahead(step)
        assert answer(self.tracker.try_return_record_at, False, position) == self.model.follow(position)

    @rule(offset=offsets)
    def split(self, offset):
        assert bool(self.tracker.try_split_at_position(self.at(offset))) == self.model.split(self.at(offset))

    @rule()
    def copy(self):
        self.tracker = copy.copy(self.tracker)

    @rule()
    def pickle(self):
        self.tracker = pickle.loads(pickle.dumps(self.tracker))  # noqa: S301 - made here

    @invariant()
    def range_and_counts_are_those_of_the_model_and_fractions_lie_between_0_and_1(self):
        assert (self.tracker.start_position(), self.tracker.stop_position()) == (self.model.start, self.model.stop)
        assert self.tracker.split_points().consumed == self.model.split_points()
        fraction = self.tracker.fraction_consumed()
        assert fraction is None or 0.0 <= fraction <= 1.0


class ByteKeysTrackedAsModelled(TrackedAsModelled):
    def __init__(self):
        super().__init__()
        self.model = NaiveKeys(self.at(START), self.at(STOP))
        self.tracker = ByteKeyRangeTracker(ByteKeyRange(self.at(START), self.at(STOP)))

    def at(self, offset):
        return b"k%02d" % offset


class DictionaryKeysTrackedAsModelled(ByteKeysTrackedAsModelled):
    def __init__(self):
        super().__init__()
        self.tracker = LexicographicKeyRangeTracker(self.at(START), self.at(STOP))


class NaiveGroups(NaiveReading):
    def follow(self, position):
        return FAULT if self.asked() and position != self.asked()[-1] else super().follow(position)


class GroupsTrackedAsModelled(ByteKeysTrackedAsModelled):
    def __init__(self):
        super().__init__()
        self.model = NaiveGroups(self.at(START), self.at(STOP))
        self.tracker = GroupedShuffleRangeTracker(self.at(START), self.at(STOP))


class WorkIsNeitherLostNorDoubled(RuleBasedStateMachine):
    """Many restrictions, worked on in turns and split at will, are always together what there was at first."""

    def __init__(self):
        super().__init__()
        self.done = []
        self.trackers = [OffsetRestrictionTracker(OffsetRange(START, STOP))]
        self.next = [START]

    @rule(which=st.integers(0, 50), step=st.integers(1, 3))
    def work(self, which, step):
        i = which % len(self.trackers)
        granted = self.trackers[i].claim_many(range(self.next[i], self.next[i] + step))
        self.done.extend(range(self.next[i], self.next[i] + granted))
        self.next[i] += step

    @rule(which=st.integers(0, 50), fraction=shares)
    def split(self, which, fraction):
        split = self.trackers[which % len(self.trackers)].try_split(fraction)
        if split:
            self.trackers.append(OffsetRestrictionTracker(split.residual))
            self.next.append(split.residual.start)

    @rule(which=st.integers(0, 50), position=offsets)
    def split_there(self, which, position):
        tracker = self.trackers[which % len(self.trackers)]
        whole = tracker.current_restriction()
        split = tracker.try_split_at(position)
        if split:
            assert split == whole.split_at(position)
            self.trackers.append(OffsetRestrictionTracker(split.residual))
            self.next.append(position)
        else:
            claimed = any(whole.start <= position <= done < whole.stop for done in self.done)
            assert claimed or not whole.start < position < whole.stop

    @invariant()
    def nothing_is_done_twice_and_restrictions_are_the_whole(self):
        assert len(set(self.done)) == len(self.done)
        held = [o for t in self.trackers for o in range(t.start_position(), t.stop_position())]
        assert sorted(held) == list(range(START, STOP))
        for tracker in self.trackers:
            assert tracker.current_progress().total == tracker.current_restriction().size

    def teardown(self):
        for tracker, position in zip(self.trackers, self.next, strict=True):
            granted = tracker.claim_many(range(position, position + 99))
            self.done.extend(range(position, position + granted))
            tracker.check_done()
        assert sorted(self.done) == list(range(START, STOP))


class RowsAreNeitherLostNorDoubled(RuleBasedStateMachine):
    """Rows of a sorted table, some of which share a key, are read by trackers of byte keys that are split meanwhile."""

    def __init__(self):
        super().__init__()
        self.done = []
        self.trackers = [ByteKeyRestrictionTracker(ByteKeyRange())]
        self.waiting = [deque(ROWS)]
        self.last = [b""]

    @rule(which=st.integers(0, 50))
    def work(self, which):
        i = which % len(self.trackers)
        if self.waiting[i]:
            self.read(i)
        else:
            assert not self.trackers[i].try_claim(b"")

    def read(self, i):
        number, key = self.waiting[i].popleft()
        if self.trackers[i].try_claim(key):
            self.done.append(number)
            self.last[i] = key
        else:
            self.waiting[i].clear()

    @rule(which=st.integers(0, 50), fraction=shares)
    def split(self, which, fraction):
        i = which % len(self.trackers)
        self.follow(i, self.trackers[i].current_restriction(), self.trackers[i].try_split(fraction))

    @rule(which=st.integers(0, 50), key=keys)
    def split_there(self, which, key):
        i = which % len(self.trackers)
        whole = self.trackers[i].current_restriction()
        split = self.trackers[i].try_split_at(key)
        assert split is None or split.residual == ByteKeyRange(key, whole.stop)
        self.follow(i, whole, split)

    def follow(self, i, whole, split):
        if split is None:
            assert self.trackers[i].current_restriction() == whole
            return
        assert split.primary == NO_KEYS or self.last[i] < split.residual.start
        assert split.residual.stop == whole.stop
        assert split.primary == NO_KEYS or split.primary == ByteKeyRange(whole.start, split.residual.start)
        self.trackers.append(ByteKeyRestrictionTracker(split.residual))
        self.waiting.append(deque(row for row in ROWS if row[1] in split.residual))
        self.last.append(b"")

    @invariant()
    def nothing_is_done_twice_and_progress_adds_up(self):
        assert len(set(self.done)) == len(self.done)
        assert sum(tracker.current_progress().total for tracker in self.trackers) == pytest.approx(1.0)

    def teardown(self):
        for i, tracker in enumerate(self.trackers):
            while self.waiting[i]:
                self.read(i)
            tracker.try_claim(b"")
            tracker.check_done()
        assert sorted(self.done) == [number for number, _ in ROWS]


quick = settings(max_examples=examples(12), stateful_step_count=20)
thorough = settings(max_examples=examples(200), stateful_step_count=60)
MACHINES = [
    TrackedAsModelled,
    ByteKeysTrackedAsModelled,
    DictionaryKeysTrackedAsModelled,
    GroupsTrackedAsModelled,
    WorkIsNeitherLostNorDoubled,
    RowsAreNeitherLostNorDoubled,
]


@pytest.mark.parametrize("machine", MACHINES)
def test_laws(machine):
    run_state_machine_as_test(machine, settings=quick)


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_laws_at_length(machine):
    run_state_machine_as_test(machine, settings=thorough)
