"""On Spark, a window in which an operator's server does not answer is tried again until it does."""

from pathlib import Path

import pytest

from dagkit import InputPort, Operator, OutputPort, State, Unavailable
from dagkit.engine.record.history import history
from dagkit.launching import launch
from dagkit.ledger import Ledger
from tests.engine.cast import Collect, Script, chain

pytestmark = pytest.mark.spark


class Asking(Operator):
    """Asks a server that does not answer the first requests; a file counts them."""

    kind = "awaited.asking/1"
    input = InputPort(int)
    output = OutputPort(int)
    requests: str
    count = State(0)

    def process(self, item):
        self.count += 1
        self.output.emit(item)
        with Path(self.requests).open("a", encoding="ascii") as file:
            file.write("x")
            if file.tell() in (2, 3):
                raise Unavailable("the server answers 503")


def test_a_window_waits_for_the_server_of_an_operator_and_is_processed_once(spark, tmp_path):
    asking = Asking(requests=str(tmp_path / "requests"))
    draw = chain(numbers=Script(looks=((1, 2),)), asking=asking, collect=Collect())
    launch(draw, {}, spark=spark, until="once", path=tmp_path / "app")
    state = list(history(Ledger.open(tmp_path / "app")))[-1].checkpoint.state
    assert (state["collect"][0]["arrived"], state["asking"][0]["count"]) == ([1, 2], 2)
