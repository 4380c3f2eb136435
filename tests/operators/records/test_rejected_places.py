"""A rejected item names the file and the byte that it was read from."""

from pathlib import Path

import pytest

from dagkit import Batch
from dagkit.engine.program.failures import OperatorFailed
from dagkit.testing import Alone
from dagkit_operators import FileSplitterInput, Filter, FlatMap, LineReader, Map, PartWriter, Rejected, Validate, value
from tests.engine.cast import Desk
from tests.old_files import aged
from tests.operators.ways import lines, of_block, read_lines

FILES = {"a.txt": "1\nx\n22\n", "b.txt": "y\n3\n"}


def place(rejected: Rejected) -> str:
    return f"{Path(rejected.path).name} {rejected.start} {rejected.text}"


def rejecting(home, *chain, is_connected=True):
    def populate_dag(dag, conf):
        last = dag.add_operator("Find", FileSplitterInput(scanner={"files": [str(home / "in")]}))
        for number, operator in enumerate((LineReader(), *chain)):
            last = last >> dag.add_operator(f"Step {number}", operator.configured({}))
        if is_connected:
            last.rejected >> dag.add_operator("Write", PartWriter(file_path=str(home / "out"), format=place))

    return populate_dag


@pytest.fixture
def home(tmp_path):
    (tmp_path / "in").mkdir()
    for name, content in FILES.items():
        (tmp_path / "in" / name).write_text(content)
        aged(tmp_path / "in" / name)
    return tmp_path


def written(home):
    return sorted(line for path in (home / "out").rglob("part-*") for line in path.read_text().splitlines())


CHAINS = {
    "a map": (Map(int),),
    "a validation": (Validate(int),),
    "a filter": (Filter(lambda text: int(text) > 0),),
    "a filter before a map": (Filter(value != "22"), Map(int)),
    "a map before a map": (Map(lambda text: text.strip()), Map(int)),
}


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_rejected_item_names_its_file_and_byte(chain, home):
    Desk(home, rejecting(home, *chain)).run()
    assert written(home) == ["a.txt 2 x", "b.txt 0 y"]


@pytest.mark.slow
def test_a_run_that_fails_for_an_item_names_its_file(home):
    with pytest.raises(OperatorFailed, match=r"a\.txt, byte 2 .*the item 'x' of .*a\.txt is rejected"):
        Desk(home, rejecting(home, Map(int), is_connected=False)).run()


TEXTS = ["1", "x", "22", "", "1", "3", "y"]
EARLIER = {
    "a predicate": Filter(lambda text: text != "22"),
    "a predicate that raises for one": Filter(lambda text: text != "22" or bool(int("no"))),
    "an expression": Filter(value != "22"),
    "a test of beginnings": Filter(~value.starts_with("22")),
    "both": Filter(~value.starts_with("22") & (value != "1")),
    "a batch function": Filter(batch=lambda column: [text != "22" for text in column.values()]),
    "a map": Map(lambda text: text.strip()),
    "a map of a batch": Map(batch=lambda column: [text.strip() for text in column.values()]),
    "a map of which one fails": Map(lambda text: text if text != "22" else str(int("no"))),
    "a flat map": FlatMap(lambda text: [text] if text != "22" else [text, text]),
}


@pytest.mark.parametrize("as_records", [True, False], ids=["records", "texts"])
@pytest.mark.parametrize("column_of", [lines, read_lines])
@pytest.mark.parametrize("earlier", EARLIER.values(), ids=EARLIER)
def test_places_are_known_behind_an_operator_that_takes_batches(earlier, column_of, as_records):
    column, path = column_of(*TEXTS, base=100), "in/a" if as_records else ""
    last = Alone(Map(int))
    passed = Alone(earlier).operator.process_batch(of_block(column, path) if as_records else Batch.of_column(column))
    for part in [passed] if isinstance(passed, Batch) else passed:
        last.send_batch(part)
    places = [(rejected.text, rejected.path, rejected.start) for rejected in last.sent("rejected")]
    assert places == [("x", path, 102), ("", path, 107), ("y", path, 112)]
