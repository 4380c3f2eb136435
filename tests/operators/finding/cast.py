"""Finders of files, each alone: what their scans find."""

import os
from pathlib import Path
from typing import Any

from dagkit import Until
from dagkit.testing import Alone, FakeClock
from dagkit_operators import Block, FileMetadata, FileSplitterInput, Map, MatchFiles, QuarantinedFile
from tests.engine.cast import Collect
from tests.old_files import old_file


def write(path: Path, content: str = "x", at: int = 1) -> Path:
    """Write a file that changed last so many seconds after 1970."""
    os.utime(old_file(path, content), (at, at))
    return path


class Splitting:
    """A splitter that scans places. After each of its windows, the next scan is due."""

    def __init__(self, *places, scanner=None, until=Until.STOPPED, **properties):
        self.clock = FakeClock()
        settings = {"files": [str(place) for place in places], **(scanner or {})}
        self.alone = Alone(FileSplitterInput(scanner=settings, **properties), now=self.clock.now, until=until)

    def window(self) -> tuple[list[FileMetadata], list[Block]]:
        self.alone.look()
        self.clock.advance(millis=self.alone.operator.scanner.scan_interval_millis)
        return self.alone.sent("files_metadata_output"), self.alone.sent()

    def names(self) -> list[str]:
        """The names of the files of the next window."""
        return [info.file_name for info in self.window()[0]]

    def counts(self) -> tuple[int, int]:
        files, blocks = self.window()
        return len(files), len(blocks)

    def restart(self) -> "Splitting":
        """Leave nothing but the saved state."""
        self.alone = self.alone.restarted()
        return self


class Running(Splitting):
    """A splitter in one launch, with settings of its scanner."""

    def __init__(self, *places, blocks_threshold=None, **scanner):
        super().__init__(*places, scanner=scanner, blocks_threshold=blocks_threshold)

    def look(self) -> list[str]:
        """The names of the files that a scan finds to be read."""
        return sorted(self.names())

    def quarantined(self) -> list[QuarantinedFile]:
        return self.alone.sent("quarantined")


class Restarted(Running):
    """A splitter that is restarted before each scan."""

    def look(self) -> list[str]:
        self.restart()
        return super().look()


class Matching:
    """A `MatchFiles` for places, restarted before each scan."""

    def __init__(self, *places, overwritten_by="time", grown=None, known=(), **completeness):
        self.left: dict[str, Any] = dict.fromkeys(map(str, places))
        self.clock = FakeClock()
        settings = {"overwritten_by": overwritten_by, "grown": grown, "completeness": completeness}
        state = {"known": {str(places[0]): list(known)}} if known else None
        self.alone = Alone(MatchFiles(continuously=True, **settings), state=state, now=self.clock.now)

    def look(self) -> list[str]:
        """The names of the files that a scan finds to be read."""
        self.alone = self.alone.restarted()
        for place, left in self.left.items():
            self.alone.work(place, left)
            self.left[place] = self.alone.deferred.residual
        self.clock.advance(seconds=5)
        return sorted(Path(info.path).name for info in self.alone.sent())

    def quarantined(self) -> list[QuarantinedFile]:
        return self.alone.sent("quarantined")


def stretches(blocks: list[Block]) -> list[tuple[int, int]]:
    return [(block.start, block.end) for block in blocks]


def collected(dag: Any, outlet: Any, function: Any, name: str = "collect") -> None:
    """Collect what a function makes of each item of an outlet."""
    outlet >> dag.add_operator(f"{name} items", Map(function)) >> dag.add_operator(name, Collect())
