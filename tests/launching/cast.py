"""Numbers that are added up, one in each window, and what is kept of them."""

import json
from pathlib import Path

from dagkit import Config, Dag, InputOperator, InputPort, Operator, OutputPort, State
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify

LAST = 4


class Numbers(InputOperator):
    output = OutputPort(int)
    last: int = LAST
    sent = State(0)

    def emit_tuples(self) -> None:
        if self.sent < self.last:
            self.sent += 1
            self.output.emit(self.sent)


class Sum(Operator):
    input = InputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item


def summing(dag: Dag, conf: Config) -> None:
    dag.add_operator("Numbers", Numbers()) >> dag.add_operator("Sum", Sum())


def place() -> str:
    """The folder of the only application that was launched in the working directory."""
    (found,) = Path(".dagkit").iterdir()
    return str(found)


def summed() -> int:
    """The sum that the ledger of the only application has, which verifies."""
    ledger = Ledger.open(place())
    assert verify(ledger).is_valid
    (name,) = {*ledger.names()} - {"Numbers"}
    return json.loads(ledger.chain(name).checkpoint() or b"")["state"]["Sum"][0]["total"]
