"""Applications whose input, output and folder are behind URLs, on real servers of each kind."""

import secrets
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyarrow.fs import FileSelector

from apps.line_filter.app import LineFilter
from dagkit.cli import main
from dagkit.conf.sources.sources import Sources, load
from dagkit.engine.files.folders import folder_at
from dagkit.engine.record.run_events import Committed, Observer
from dagkit.errors import DagkitError
from dagkit.ground.urls import below, resolved
from dagkit.launching import Machine, launch
from tests.processes import run_program

PLACES = [
    pytest.param("container", marks=pytest.mark.service("azure")),
    pytest.param("hdfs", marks=pytest.mark.service("hdfs")),
]
"""The fixtures that return the URL of a place."""
HOME = Path(__file__).parents[2] / "apps" / "line_filter"
REFERENCE = Machine(backend="reference")

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("place", PLACES, indirect=True)]


class Remote:
    def __init__(self, url: str) -> None:
        self.url = url
        self.ledger = below(url, "app")

    def write(self, name: str, text: str) -> None:
        folder = folder_at(below(self.url, "in"))
        folder.make()
        with folder.create(name) as file:
            file.write(text.encode())

    def definitions(self) -> list[tuple[str, str]]:
        """Properties by which a window reads two blocks of 20 bytes."""
        properties = {
            "File-splitter.prop.scanner.files": below(self.url, "in"),
            "File-splitter.prop.blockSize": "20",
            "File-splitter.prop.blocksThreshold": "2",
            "Record-writer.prop.filePath": below(self.url, "out"),
        }
        return [(f"dt.operator.{name}", value) for name, value in properties.items()]

    def launch(self, *observers: Observer) -> None:
        conf, faults = load(Sources(application="LineFilter", folder=HOME, definitions=self.definitions()))
        assert not faults
        launch(LineFilter(), conf, until="once", machine=REFERENCE, path=self.ledger, observers=observers)

    def command(self, *options: str) -> list[str]:
        """The command that does the same in another process."""
        definitions = [f"-D{name}={value}" for name, value in self.definitions()]
        dagkit = [sys.executable, "-X", "faulthandler", "-m", "dagkit.cli", "launch", str(HOME)]
        return [*dagkit, "--reference", "--once", f"--path={self.ledger}", *definitions, *options]

    def output(self) -> list[str]:
        filesystem, path, _ = resolved(below(self.url, "out"))
        lines: list[str] = []
        for file in filesystem.get_file_info(FileSelector(path, recursive=True)):
            if file.is_file:
                with filesystem.open_input_file(file.path) as opened:
                    lines += opened.read().decode().splitlines()
        return sorted(lines)

    def verify(self) -> None:
        answer = CliRunner().invoke(main, ["ledger", "verify", "--complete", self.ledger])
        assert answer.exit_code == 0, answer.output


@pytest.fixture
def place(request):
    return Remote(below(request.getfixturevalue(request.param), secrets.token_hex(4)))


def test_files_are_read_once_and_again_if_they_are_overwritten_with_the_same_length(place):
    place.write("a b.txt", "one\n.two\nthree\n" * 4)
    place.write("ü.txt", "four\n")
    place.launch()
    before = place.output()
    assert before == sorted([*["one", "three"] * 4, "four"])
    place.write("ü.txt", "five\n")
    place.launch()
    assert place.output() == sorted([*before, "five"])
    place.verify()


def test_a_second_driver_is_refused_and_one_that_takes_over_stops_the_first(place):
    place.write("a.txt", "one\n.two\nthree\n" * 4)
    second: list[str] = []

    def meddle(event: object) -> None:
        if isinstance(event, Committed) and not second:
            with pytest.raises(DagkitError) as refused:
                place.launch()
            second.append(refused.value.code)
            run_program(place.command("--take-over"), seconds=120)

    with pytest.raises(DagkitError) as stopped:
        place.launch(meddle)
    assert (second, stopped.value.code) == (["driver-runs"], "sequence-taken")
    assert place.output() == sorted(["one", "three"] * 4)
    place.verify()
