"""Whole launches on bad topics: each ends with a code and a place, and loses nothing when it is repaired."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.ledger import Ledger
from dagkit_operators.kafka.consumers import CONSUMERS
from tests.operators.ways import lines_in

pytestmark = pytest.mark.slow

APPLICATION = """
from dagkit import Dag
from dagkit_operators import *
from tests.operators.test_bad_messages import once


def number(message: KafkaMessage) -> str:
    return str(int(message.value))


def number_or_none(message: KafkaMessage) -> str:
    return message.value.decode() if message.value.isdigit() else "none"


def populate_dag(dag: Dag, conf) -> None:
    first, *others = [dag.add_operator(f"Operator {place}", each) for place, each in enumerate(OPERATORS)]
    for each in others:
        first >> each
        first = each
"""
TO_FILES = 'PartWriter(file_path="out", format=str)'
_hooks = []


def once(item):
    """Call what a test wants to happen while a window runs."""
    while _hooks:
        _hooks.pop()()
    return item


def launched(*operators):
    Path("app.py").write_text(APPLICATION.replace("OPERATORS", f"[{', '.join(operators)}]"))
    return CliRunner().invoke(main, ["launch", "app.py", "--path", "app", "--once", "--no-sync", "--reference"])


def launch(*operators):
    """Launch these operators, and return the report; empty if the launch succeeds."""
    answer = launched(*operators)
    assert (answer.exit_code == 0) == (re.search(r"\[[a-z-]+\]$", answer.stderr, re.MULTILINE) is None), answer.stderr
    return "" if answer.exit_code == 0 else answer.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _hooks.clear()
    return tmp_path


def read(address, topic, *, parse="number", **reader):
    """Operators that write the messages of a topic to files."""
    at = f"bootstrap_servers={address!r}"
    given = ", ".join(f"{name}={value!r}" for name, value in reader.items())
    return f"KafkaSplitter({at}, topics=[{topic!r}])", f"KafkaReader({at}, parse={parse}, {given})", TO_FILES


def test_a_topic_that_is_not_there(kafka, folder):
    topic = f"absent-{folder.name}"
    kafka.topic(name=f"{topic}s")
    report = launch(*read(kafka.address, topic))
    assert f"there is no topic {topic!r} at {kafka.address} [topic-missing]" in report
    assert f"did you mean '{topic}s'?" in report
    kafka.produce(kafka.topic(name=topic), range(3))
    assert ", 3 offsets read, 6 B written to 1 file" in launched(*read(kafka.address, topic)).stdout
    assert lines_in("out") == ["0", "1", "2"]


def test_offsets_that_were_removed_before_they_were_read(kafka):
    topic = kafka.topic(retention_ms="86400000")
    kafka.produce(topic, range(3))
    assert launch(*read(kafka.address, topic)) == ""
    CONSUMERS.close()  # as the end of a process does: a consumer that is kept may have fetched the messages
    kafka.produce(topic, range(3, 9))
    kafka.remove_before(topic, 0, 6)
    report = launch(*read(kafka.address, topic))
    assert f"{topic}/0: the messages from offset 3 up to 6 were removed before they were read" in report
    assert f"topic {topic} has retention.ms=86400000, retention.bytes=-1" in report
    assert "[offsets-removed]" in report
    assert launch(*read(kafka.address, topic, on_removed="skip")) == ""
    assert lines_in("out") == ["0", "1", "2", "6", "7", "8"]


def test_a_message_that_its_decoder_refuses(kafka):
    topic = kafka.topic()
    kafka.produce(topic, [1, "x", 3])
    report = launch(*read(kafka.address, topic))
    assert re.search(rf"the item 'x' of {topic}/0, offset 1 is rejected: .*\[item-rejected\]", report), report
    assert launch(*read(kafka.address, topic, parse="number_or_none")) == ""
    assert lines_in("out") == ["1", "3", "none"]


def test_a_transaction_that_another_producer_fenced(kafka):
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, range(3))
    split, reader, _ = read(kafka.address, source)
    operators = split, reader, "Map(once)", f"KafkaWriter(bootstrap_servers={kafka.address!r}, topic={target!r})"

    def fences():
        ledger = Ledger.open("app")
        writers = [f"{ledger.chain(name).dataset_id}/Operator 3.staged" for name in ledger.names()]
        for writer in writers:
            kafka.producer(transactional_id=writer).init_transactions()

    _hooks.append(fences)
    report = launch(*operators)
    assert f"another launch writes to topic {target} as " in report
    assert "[transaction-fenced]" in report
    assert launch(*operators) == ""
    assert kafka.committed(target) == [[b"0", b"1", b"2"]]
