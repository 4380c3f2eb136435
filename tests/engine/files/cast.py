"""Operators that write files which a test names, and staged pieces of files."""

from pathlib import Path

from dagkit import InputPort, Operator, OutputFiles
from dagkit.engine.files.staging import Part, Staging, StagingPlace


class Unfinished(Operator):
    """Writes what comes to a file that is named by the hundreds of the number."""

    kind = "cast.unfinished/1"
    input = InputPort(int)
    files = OutputFiles(lambda notes: notes.file_path)
    file_path: str

    def process(self, number: int) -> None:
        self.files.open(f"{number // 100}").write(b"%d " % number)


class Notes(Unfinished):
    """Makes its files complete with each window."""

    kind = "cast.notes/1"

    def process(self, number: int) -> None:
        super().process(number)
        self.files.finish(f"{number // 100}")


def part(file: str = "f", part: str = "staging/1/a/t/0.part", **given: int | str) -> Part:
    return Part(**{"operator": "w", "file": file, "part": part, "length": 1, **given})


def staging(home: Path, *, window: int = 1, attempt: str = "a", slot: int = 0, durable: bool = False) -> Staging:
    return Staging(StagingPlace(str(home / "app"), window, attempt, durable=durable, home=str(home)), slot)
