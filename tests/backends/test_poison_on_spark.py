"""On Spark, a record that ends its Python worker is found, and set aside; the rest is processed once."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dagkit.engine.parts.requests import Retry, ask
from dagkit.engine.record.history import history
from dagkit.engine.record.status_file import RUNNING
from dagkit.engine.work.aside import WorkAside
from dagkit.launching import launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit_operators import FileSplitterInput, LineReader
from tests.engine.cast import Collect, Digits, Ranges, chain, files_given
from tests.engine.poison_cast import ON_POISON, TIMEOUT, Poisoned, PoisonedLines, poisoned

pytestmark = pytest.mark.spark


def collected_and_aside(path: Path) -> tuple[list[Any], list[WorkAside]]:
    """What arrived, and what is set aside, in a ledger without faults."""
    ledger = Ledger.open(path)
    assert list(verify(ledger).faults) == []
    last = list(history(ledger))[-1].checkpoint
    collected: Any = last.state["collect"][0]["arrived"]
    return sorted(collected), list(last.aside)


@pytest.mark.trial
@pytest.mark.parametrize(
    ("way", "count", "words"),
    [
        ("signal", 4, "Segmentation fault"),
        ("signal", 10_000, "Segmentation fault"),
        ("memory", 10_000, "MemoryError"),
        ("loop", 4, "Timeout"),
    ],
)
def test_a_record_that_ends_its_worker_is_set_aside(way, count, words, spark, tmp_path):
    poison = count // 2 + 1
    conf = {ON_POISON: "SET_ASIDE", **({TIMEOUT: 600_000} if way == "loop" else {})}
    draw = poisoned(((count // 2, count // 2),), poison, way=way)
    launch(draw, conf, spark=spark, until="once", path=tmp_path)
    collected, (aside,) = collected_and_aside(tmp_path)
    assert collected == [number for number in range(count) if number != poison]
    assert (aside.item.start, aside.item.end) == (poison, poison + 1)
    assert words in aside.reason
    assert len(list(history(Ledger.open(tmp_path)))) <= 3, "only the record has windows of its own"


def test_a_record_behind_an_exchange_that_ends_its_worker_is_set_aside_in_three_windows(spark, tmp_path):
    deadly, marked = (Poisoned(poison=(11,)), 2), list[bool]()

    def seen(*_):
        marked.append((tmp_path / RUNNING).exists())

    draw = chain(ranges=Ranges(looks=((10, 10),)), digits=Digits(), poisoned=deadly, collect=Collect())
    launch(draw, {ON_POISON: "SET_ASIDE"}, spark=spark, until="once", path=tmp_path, probe=seen)
    assert set(marked) == {False}, "only a driver that runs windows itself can be ended by a record"
    collected, (aside,) = collected_and_aside(tmp_path)
    assert collected == [number for number in range(20) if number != 11]
    assert "Segmentation fault" in aside.reason
    assert (aside.item.start, aside.item.end) == (11, 12)
    assert len(list(history(Ledger.open(tmp_path)))) <= 3


@pytest.mark.trial
def test_on_a_connect_server_a_record_is_found_and_retried_by_a_corrected_operator(connected, tmp_path):
    looks, conf = ((2, 2),), {ON_POISON: "SET_ASIDE"}
    launch(poisoned(looks, 2), conf, spark=connected, until="once", path=tmp_path)
    collected, (aside,) = collected_and_aside(tmp_path)
    assert collected == [0, 1, 3]
    assert (aside.item.start, aside.item.end) == (2, 3)
    ask(Ledger.open(tmp_path).store, Retry(by="ada"), datetime.now(UTC))
    launch(poisoned(looks), conf, spark=connected, until="once", path=tmp_path)
    assert collected_and_aside(tmp_path) == ([0, 1, 2, 3], [])


def test_a_file_that_cannot_be_read_is_set_aside_and_retried(spark, tmp_path):
    zipped, path = gzip.compress(b"3\n4\n", mtime=0), tmp_path / "in" / "b.gz"
    files_given(tmp_path, "1\n2\n")
    path.write_bytes(zipped[:-8] + bytes(4) + zipped[-4:])
    os.utime(path, (1_000_000_000, 1_000_000_000))
    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]})
    draw = chain(
        splitter=splitter, reader=LineReader(on_bad_file="quarantine"), lines=PoisonedLines(), collect=Collect()
    )
    launch(draw, {}, spark=spark, until="once", path=tmp_path / "app")
    collected, (aside,) = collected_and_aside(tmp_path / "app")
    assert (collected, aside.item.source) == (["1", "2"], str(path))
    assert "cannot be read as gzip" in aside.reason
    path.write_bytes(zipped)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    ask(Ledger.open(tmp_path / "app").store, Retry(by="ada"), datetime.now(UTC))
    launch(draw, {}, spark=spark, until="once", path=tmp_path / "app")
    assert collected_and_aside(tmp_path / "app") == (["1", "2", "3", "4"], [])
