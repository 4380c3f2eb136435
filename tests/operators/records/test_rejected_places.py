"""A rejected item names the file and the byte that it was read from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.engine.failures import OperatorFailed
from dagkit_operators import FileSplitterInput, Filter, LineReader, Map, PartWriter, Rejected, Validate, value
from tests.engine.cast import Desk

FILES = {"a.txt": "1\nx\n22\n", "b.txt": "y\n3\n"}


def place(rejected: Rejected) -> str:
    return f"{Path(rejected.path).name} {rejected.start} {rejected.text}"


def rejecting(home: Path, *chain: Any, is_connected: bool = True) -> Any:
    def populate_dag(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("Find", FileSplitterInput(scanner={"files": [str(home / "in")]}))
        reader = dag.add_operator("Read", LineReader())
        splitter.blocks_metadata_output >> reader.blocks_metadata_input
        last: Any = reader.messages
        for number, operator in enumerate(chain):
            step = dag.add_operator(f"Step {number}", operator.configured({}))
            dag.add_stream(f"into {number}", last, step.input)
            last = step.output
        if is_connected:
            step.rejected >> dag.add_operator("Write", PartWriter(file_path=str(home / "out"), format=place))

    return populate_dag


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "in").mkdir()
    for name, content in FILES.items():
        (tmp_path / "in" / name).write_text(content)
    return tmp_path


def written(home: Path) -> list[str]:
    return sorted(line for path in (home / "out").rglob("part-*") for line in path.read_text().splitlines())


CHAINS: dict[str, tuple[Any, ...]] = {
    "a map": (Map(int),),
    "a validation": (Validate(int),),
    "a filter": (Filter(lambda text: int(text) > 0),),
    "a filter before a map": (Filter(value != "22"), Map(int)),
    "a map before a map": (Map(lambda text: text.strip()), Map(int)),
}


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_rejected_item_names_its_file_and_byte(chain: tuple[Any, ...], home: Path) -> None:
    Desk(home, rejecting(home, *chain)).run()
    assert written(home) == ["a.txt 2 x", "b.txt 0 y"]


@pytest.mark.slow
def test_a_run_that_fails_for_an_item_names_its_file(home: Path) -> None:
    with pytest.raises(OperatorFailed, match=r"a\.txt, byte 2 .*the item 'x' of .*a\.txt is rejected"):
        Desk(home, rejecting(home, Map(int), is_connected=False)).run()
