"""Bytewax: from topic to topic with its connectors, one worker. Its sink writes messages at least once, not once."""

from pathlib import Path

import bytewax.operators as op  # type: ignore[import-not-found, unused-ignore]
from bytewax.connectors.kafka import (  # type: ignore[import-not-found, unused-ignore]
    KafkaSinkMessage,
    KafkaSourceMessage,
)
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found, unused-ignore]
from bytewax.testing import run_main  # type: ignore[import-not-found, unused-ignore]

from bench.messages.task import task_in, use_one_core


def passed(message: KafkaSourceMessage) -> KafkaSinkMessage:
    """The function of each message."""
    return KafkaSinkMessage(message.key, message.value)


def dataflow(task: Path, folder: Path) -> None:  # noqa: ARG001 - contestants are called alike
    """Messages in batches of 10,000, a function of each, a sink."""
    use_one_core()
    asked = task_in(task)
    flow = Dataflow("copy")
    read = kop.input("read", flow, brokers=[asked.address], topics=[asked.source], tail=False, batch_size=10_000)
    made = op.map("pass", read.oks, passed)
    kop.output("write", made, brokers=[asked.address], topic=asked.target)
    run_main(flow)
