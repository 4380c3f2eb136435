"""File names that come from data: no record may block an application after its commit."""

import pyarrow as pa
import pytest

from dagkit.errors import RunFailure
from dagkit.testing import Alone
from dagkit_operators import FileOutput, Items, Map, ParquetPartWriter
from tests.engine.cast import Collect, Desk, arrived


class ByName(FileOutput[str]):
    """Writes each name to the file of this name."""

    kind = "names.by-name/1"

    def file_name(self, item):
        return item

    def bytes_for(self, item):
        return item[:3].encode()


def names(home, items, *, rejected=True, **properties):
    def draw(dag, conf):
        output = dag.add_operator("output", ByName(file_path=str(home / "out"), **properties))
        dag.add_operator("items", Items[str](items=items)) >> output
        if rejected:
            text = dag.add_operator("text", Map(lambda rejected: rejected.text))
            dag.add_stream("rejected", output.rejected, text.input)
            text >> dag.add_operator("collect", Collect())

    return draw


@pytest.mark.parametrize(
    ("items", "written", "reasons"),
    [
        (["a", "a/b", "b"], ["a", "b"], ["the name of a file, and of a folder"]),
        (["a/b", "a", "b"], ["a/b", "b"], ["the name of a file, and of a folder"]),
        (["a", "b\0c", "/abs", "../up", "a//b"], ["a"], ["contains a NUL", *["is no name for a file"] * 3]),
        (["n" * 256, "n" * 255, "f/" + "n" * 256], ["n" * 255], ["a part of more than 255 bytes"] * 2),
        (["a", "", "b"], ["a", "b"], []),
    ],
)
def test_an_item_whose_name_no_file_can_have_is_rejected(tmp_path, items, written, reasons):
    output = Alone(ByName(file_path=str(tmp_path)))
    with output.window():
        output.send(*items)
    rejected = output.sent("rejected")
    assert [item.item for item in rejected] == [item for item in items if item and item not in written]
    assert all(reason in item.reason for reason, item in zip(reasons, rejected, strict=True))


def test_names_that_are_refused_leave_the_application_able_to_run(tmp_path):
    long = "x" * 254
    desk = Desk(tmp_path, names(tmp_path, ["a", "a/b", "a", long, "b/c", "b"]))
    assert arrived(desk.run()) == ["a/b", "b"]
    assert desk.outputs() == {"a": b"aa", long: b"xxx", "b/c": b"b/c"}
    desk.run()


@pytest.mark.parametrize(("there", "name"), [("a/b", "a"), ("a", "a/b")])
def test_a_file_that_can_never_be_put_in_place_is_not_committed(tmp_path, there, name):
    """The driver knows what partitions and other applications write, which no partition knows."""
    other = tmp_path / "out" / there
    other.parent.mkdir(parents=True)
    other.write_text("of another application")
    desk = Desk(tmp_path, names(tmp_path, [name], rejected=False))
    with pytest.raises(RunFailure, match="nothing of the window was committed"):
        desk.run()
    other.unlink()
    if other.parent != tmp_path / "out":
        other.parent.rmdir()
    desk.run()
    assert desk.outputs() == {name: name.encode()}


def test_a_value_that_is_too_long_for_a_folder_is_named():
    rows = [{"city": "x" * 300, "n": 1}]
    writer = Alone(ParquetPartWriter(file_path="out", partition_by=["city"]))
    problem = r"the value 'x{80}'… of city is too long for the name of a folder"
    with pytest.raises(ValueError, match=problem), writer.window():
        writer.send(pa.Table.from_pylist(rows))
