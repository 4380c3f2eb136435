"""Two drivers of one application: each number is won by one of them, and the other stops and has changed nothing."""

import multiprocessing
import os
import shutil
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from dagkit.ledger import Ledger, SequenceTaken
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import LocalStore, MemoryStore
from tests.ledger.desk import SPLITTER, remark
from tests.patience import join, within

APPENDS = 2500
"""More than two segments, so that packing is raced too."""


def drive(place: str, driver: int, start: Barrier, answers) -> None:
    """Append until the chain is long enough; after each loss open it again."""
    start.wait(within(60))  # for the other driver
    chain = Ledger.open(LocalStore(place, durable=False)).chain(SPLITTER)
    won, lost = [], 0
    while chain.standing.next_seq < APPENDS:
        try:
            record = chain.append(remark(f"{driver} {len(won)}"))
        except SequenceTaken:
            lost += 1
            chain.reopen()
        else:
            won.append((record.seq, record.hash))
    answers.put((driver, won, lost))


@pytest.mark.trial
@pytest.mark.slow
def test_two_processes_never_win_the_same_number(tmp_path):
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path  # noqa: S108 - a folder of ours is made in it
    place = folder / f"racing-{os.getpid()}-{tmp_path.name}"
    try:
        Ledger.create(LocalStore(place, durable=False)).root(SPLITTER)
        context = multiprocessing.get_context("spawn")
        answers, start = context.Queue(), context.Barrier(2)
        drivers = [context.Process(target=drive, args=(str(place), n, start, answers)) for n in range(2)]
        for driver in drivers:
            driver.start()
        told = [answers.get(timeout=within(120)) for _ in drivers]
        for driver in drivers:
            join(driver)
        ledger = Ledger.open(LocalStore(place, durable=False))
        chain = ledger.chain(SPLITTER)
        won = sorted(win for _, wins, _ in told for win in wins)
        assert won == [(r.seq, r.hash) for r in chain.records(2)], "what a driver believes it won is what is there"
        assert [seq for seq, _ in won] == list(range(2, chain.standing.next_seq))
        assert all(wins for _, wins, _ in told), "both drivers took part"
        assert sum(lost for _, _, lost in told) > 0, "they did meet"
        assert verify(ledger).is_valid
        assert len(chain.log.loose()) <= 1000
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def drivers(store):
    """Two drivers that have opened the same chain."""
    return Ledger.create(store).root(SPLITTER), Ledger.open(store).chain(SPLITTER)


@pytest.mark.parametrize("other", ["same", "second"], ids=["the same event at the same instant", "another event"])
def test_of_two_appends_one_wins_and_the_loser_has_changed_nothing(store, drivers, other):
    """The winner is decided by the file, not by its content."""
    first, second = drivers
    first.append(remark("same"))
    before = {key: store.get(key) for key in store._contents}
    with pytest.raises(SequenceTaken, match="another writer has appended this block"):
        second.append(remark(other))
    assert {key: store.get(key) for key in store._contents} == before


def test_a_driver_that_was_overtaken_does_not_quietly_follow(drivers):
    """Two drivers that always plan afresh would otherwise take turns for ever, each believing that it runs alone."""
    first, second = drivers
    first.append(remark("first"))
    assert second.refresh(), "who has not appended yet may follow"
    second.append(remark("second"))
    for act in (first.plan_next, first.refresh, lambda: first.append(remark("third"))):
        with pytest.raises(SequenceTaken):
            act()
    first.reopen()
    assert first.standing == second.standing
