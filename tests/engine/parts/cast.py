"""Chains of small operators, whose counts, plans and settings change, and what their ledgers record of it."""

import json
from functools import reduce
from operator import rshift
from pathlib import Path
from typing import Any

from dagkit import Dag, InputPort, KeyedState, Operator, OperatorContext, Partitioner, State, StatelessPartitioner
from dagkit.api.keyed import saved_keys
from dagkit.engine.parts.requests import Reply, Request, ask, reply_to
from dagkit.engine.record.history import history
from dagkit.engine.run.loop import Loop
from dagkit.ledger import Ledger
from dagkit_operators import FileSplitterInput, Items, LineReader, MatchFiles, ReadFiles
from tests.engine.cast import Collect, Desk, Draw, arrived


class Tally(Operator):
    """How often each number came, modulo ten."""

    kind = "changes.tally/1"
    numbers = InputPort(int, key=lambda number: number % 10)
    counts = KeyedState[int, int](int)

    def process(self, number: int) -> None:
        self.counts[number % 10] += 1


class Total(Operator):
    kind = "changes.total/1"
    numbers = InputPort(int, key=lambda number: number)
    step: int = 1
    total = State(0)

    def process(self, number: int) -> None:
        self.total += number * self.step


class Values(Collect):
    kind = "changes.values/1"

    def process(self, item: Any) -> None:
        self.arrived.append(getattr(item, "value", item))


def chained(*chains: dict[str, Any], **partitions: int | Partitioner) -> Draw:
    """Chains of operators by their names, and the partitions of some of them."""

    def draw(dag: Dag, conf: object) -> None:
        for chain in chains:
            for name, operator in chain.items():
                dag.add_operator(name, operator)
                if name in partitions:
                    wanted = partitions[name]
                    partitioner = StatelessPartitioner(wanted) if isinstance(wanted, int) else wanted
                    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, partitioner)
            reduce(rshift, chain.values())

    return draw


def splitting(home: Path, blocks_threshold: int = 1, **scanner: Any) -> Draw:
    """Files in blocks of two bytes."""
    scanner = {"files": [str(home / "in")], **scanner}
    splitter = FileSplitterInput(scanner=scanner, block_size=2, blocks_threshold=blocks_threshold)
    return chained({"finder": splitter, "reader": LineReader(), "collect": Values()})


def matching(home: Path, reader: Operator | None = None, *, continuously: bool = True) -> Draw:
    finder = {"patterns": Items(items=[str(home / "in" / "*.txt")]), "finder": MatchFiles(continuously=continuously)}
    return chained({**finder, "reader": reader or ReadFiles(), "collect": Values()})


def kept(loop: Loop, operator: str = "tally", state: str = "counts") -> dict[int, int]:
    """What all partitions of an operator hold under their keys; each key is held once."""
    states = loop.state.get(operator, ())
    entries = [entry for each in states for entry in saved_keys(each.get(state, {})).items()]
    assert len({text for text, _ in entries}) == len(entries)
    return {json.loads(text): value for text, (value, _) in entries if value}


def lines(loop: Loop) -> list[str]:
    return sorted(arrived(loop))


def facts_in(ledger: Ledger, kind: type) -> list[Any]:
    return [fact for entry in history(ledger) for fact in entry.checkpoint.facts if isinstance(fact, kind)]


def request(desk: Desk, asks: Any) -> Request:
    """Ask for something ten seconds later."""
    desk.clock.advance(seconds=10)
    return ask(desk.ledger().store, asks, desk.clock.now())


def answer(desk: Desk, request: Request) -> Reply | None:
    return reply_to(desk.ledger().store, request)
