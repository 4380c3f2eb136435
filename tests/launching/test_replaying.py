"""A window runs again with the state, the items and the work that it had, and touches nothing; lines are traced so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dagkit import Config, InputPort, Operator, OutputPort, State
from dagkit.compiler import compile_application
from dagkit.errors import RunFailure
from dagkit.runs.replaying import Compared, replayed, windows_of
from dagkit.runs.retrace import trace
from dagkit_operators import MatchFiles, PartWriter, ReadFiles
from tests.backends.cast import chained
from tests.engine.cast import Desk, Draw, Hurried, Script, files_in, lines_through_filter, some_lines
from tests.old_files import aged


class Total(Operator):
    input = InputPort(int)
    output = OutputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item
        self.output.emit(self.total)


def totals(home: Path, factor: int = 1) -> Draw:
    """The sum of all numbers so far, in a file that is complete at the end; a window for each number."""

    script = Script(looks=tuple((number,) for number in range(1, 5)))
    writer = PartWriter(file_path=str(home / "out"), format=lambda number: str(number * factor))
    return lambda dag, _: chained(dag, script=script, total=Total(), writer=writer)


def replays(desk: Desk, draw: Callable[..., None], window: int, shadow: Path) -> list[Compared]:
    compilation = compile_application(draw, Config.of({}))
    return list(replayed(compilation, desk.ledger(), desk.place, window, shadow))


def write(home: Path, **texts: str) -> None:
    (home / "in").mkdir()
    for name, text in texts.items():
        (path := home / "in" / name).write_text(text)
        aged(path)


def in_folder(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in files_in(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, False])
def test_every_window_of_divided_blocks_writes_the_same_again(tmp_path, fused):
    write(tmp_path, a=some_lines(30))
    draw = lines_through_filter(tmp_path, block_size=256, fused=fused)
    desk = Desk(tmp_path, draw, backend=Hurried)
    last, before = desk.run().checkpoint.window, in_folder(tmp_path)
    compared = [
        one for window in range(1, last + 1) for one in replays(desk, draw, window, tmp_path / f"shadow{window}")
    ]
    assert sum(len(one.now) for one in compared) == 20
    assert all(one.is_equal for one in compared)
    assert {path: content for path, content in in_folder(tmp_path).items() if "shadow" not in str(path)} == before


@pytest.mark.parametrize("windows", [3, None], ids=["an incomplete file", "a complete one"])
def test_a_window_has_the_state_and_the_items_that_it_had(tmp_path, windows):
    desk = Desk(tmp_path, totals(tmp_path))
    desk.run(windows=windows)
    (same,) = replays(desk, totals(tmp_path), 3, tmp_path / "shadow")
    assert (same.operator, same.file, same.before, same.is_equal) == ("writer", None, (b"6\n",), True)
    (differs,) = replays(desk, totals(tmp_path, factor=2), 3, tmp_path / "other")
    assert (differs.before, differs.now, differs.same, differs.is_equal) == ((b"6\n",), (b"12\n",), 0, False)


def test_the_windows_of_a_file_are_those_that_read_it(tmp_path):
    write(tmp_path, a=some_lines(9), b=some_lines(9))
    desk = Desk(tmp_path, lines_through_filter(tmp_path, block_size=1024, threshold=1))
    last = desk.run().checkpoint.window
    found = {name: windows_of(desk.ledger(), str(tmp_path / "in" / name)) for name in "abc"}
    assert sorted(found["a"] + found["b"]) == list(range(1, last + 1))
    assert found["c"] == []


def test_output_that_was_moved_cannot_be_compared(tmp_path):
    desk = Desk(tmp_path, totals(tmp_path))
    desk.run()
    for path in files_in(desk.out):
        path.unlink()
    with pytest.raises(RunFailure, match="is not there any more"):
        replays(desk, totals(tmp_path), 3, tmp_path / "shadow")


@pytest.mark.parametrize("window", [0, 9])
def test_a_window_that_was_not_committed_is_refused(tmp_path, window):
    desk = Desk(tmp_path, totals(tmp_path))
    desk.run()
    with pytest.raises(RunFailure, match=f"no window {window}"):
        replays(desk, totals(tmp_path), window, tmp_path / "shadow")


class Place(Operator):
    input = InputPort(int)
    output = OutputPort(str)
    folder: str

    def process(self, item: int) -> None:
        self.output.emit(f"{self.folder}/{'ab'[item]}")


class CountedPlace(Place):
    """Keeps how many there were, which could change what it sends."""

    count = State(0)


def matched(home: Path, place: type[Place] = Place, suffix: str = "") -> Draw:
    """Files that an operator in the middle of the graph finds, one in each window, line by line in parts."""

    script, places = Script(looks=((0,), (1,))), place(folder=str(home / "in"))
    writer = PartWriter(file_path=str(home / "out"), format=lambda line: f"{line}{suffix}")
    found = {"found": MatchFiles(), "reader": ReadFiles(parse=str)}
    return lambda dag, _: chained(dag, script=script, places=places, **found, writer=writer)


def matched_files(home: Path) -> None:
    write(home, a="a1\na2\n", b="b1\nb2\n")


def test_work_that_an_operator_in_the_middle_of_the_graph_found_runs_again(tmp_path):
    matched_files(tmp_path)
    desk = Desk(tmp_path, matched(tmp_path))
    desk.run()
    windows = {name: windows_of(desk.ledger(), str(tmp_path / "in" / name)) for name in "ab"}
    assert windows["a"] != windows["b"]
    for name, (window,) in windows.items():
        (same,) = replays(desk, matched(tmp_path), window, tmp_path / f"shadow{name}")
        assert (same.now, same.is_equal) == ((f"{name}1\n".encode(), f"{name}2\n".encode()), True)
    (differs,) = replays(desk, matched(tmp_path, suffix="!"), windows["b"][0], tmp_path / "other")
    assert (differs.now, differs.same) == ((b"b1!\n", b"b2!\n"), 0)


@pytest.mark.parametrize(
    ("place", "is_there", "why"),
    [(CountedPlace, True, "places keeps state"), (Place, False, "not in the ledger")],
    ids=["its finder depends on earlier windows", "its file is gone"],
)
def test_work_that_cannot_be_found_again_is_refused(tmp_path, place, is_there, why):
    matched_files(tmp_path)
    desk = Desk(tmp_path, matched(tmp_path, place))
    desk.run()
    (window,) = windows_of(desk.ledger(), str(tmp_path / "in/a"))
    if not is_there:
        (tmp_path / "in/a").unlink()
    with pytest.raises(RunFailure, match=f"not all elements that .* processed can be found again: .*{why}"):
        replays(desk, matched(tmp_path, place), window, tmp_path / "shadow")


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, False])
def test_lines_of_blocks_that_were_split_have_one_source_each(tmp_path, fused):
    text = some_lines(30)
    write(tmp_path, a=text)
    draw = lines_through_filter(tmp_path, block_size=256, fused=fused)
    desk = Desk(tmp_path, draw, backend=Hurried)
    windows = desk.run().run_state.checkpoint.window
    compilation = compile_application(draw, Config.of({}))
    seen = set()
    for name, content in desk.outputs().items():
        for number, line in enumerate(content.decode().splitlines(), 1):
            traced = trace(compilation, desk.ledger(), str(desk.out / name), number)
            (source,) = traced.sources
            assert (traced.reason, traced.text, source.text) == ("", line, line)
            assert text[source.start : source.end] == f"{line}\n"
            seen.add((source.start, traced.window))
    assert len(seen) == 20
    assert 2 < len({window for _, window in seen}) <= windows
