"""The applications that faults are tried on: what each reads, and what must come out whatever happens."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from apps.count.app import CountUp
from apps.file_copy.app import FileCopy
from apps.line_filter.app import LineFilter
from apps.log_levels.app import LogLevels
from apps.tail.app import Tail
from apps.word_count.app import WordCount
from dagkit import StreamingApplication
from dagkit.conf.sources.sources import Sources, load
from dagkit.launching import Launched, Machine, launch
from tests.old_files import aged

NOON = "2024-05-01T12:00:00+00:00"

Result = Any
"""What an application is to have written, in a form that does not depend on how the run was cut into windows."""


@dataclass(frozen=True)
class Tried:
    """An application of ours with input for several windows. All paths are relative to the working directory."""

    application: type[StreamingApplication]
    write_input: Callable[[Random], None]
    expected: Callable[[], Result]
    """What the input says."""
    written: Callable[[], Result]
    """What the output says."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def launch(self, path: str, machine: Machine, **options: Any) -> Launched:
        definitions = [(f"dt.{key}", str(value)) for key, value in self.settings.items()]
        folder = Path(str(sys.modules[self.application.__module__].__file__)).parent
        conf, faults = load(Sources(application=self.application.__name__, folder=folder, definitions=definitions))
        assert not faults, faults
        return launch(self.application(), conf, until="once", machine=machine, path=path, durable=False, **options)


def lines_in(folder: str) -> list[str]:
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def write_lines(chance: Random, line: Callable[[int], str], *, folder: str = "input", ending: str = ".txt") -> None:
    Path(folder).mkdir()
    for number in range(3):
        text = "\n".join(line(each) for each in range(chance.randrange(40, 80)))
        (path := Path(folder, f"{number}{ending}")).write_text(text, encoding="utf-8")
        aged(path)


def _filtered(chance: Random) -> None:
    write_lines(chance, lambda number: f"{chance.choice(('.', ''))}line {number} {'x' * chance.randrange(30)}")


def _worded(chance: Random) -> None:
    words = ("the", "quick", "brown", "größe", "naïve", "x1")
    write_lines(chance, lambda _: " ".join(chance.choices(words, k=chance.randrange(7))))


def _words() -> Counter[str]:
    return Counter(re.findall(r"\w+", "\n".join(lines_in("input")).lower()))


def _counted_words() -> Counter[str]:
    """The newest table. Only a launch with new input writes one."""
    newest = max(Path("output").iterdir())
    pairs = [line.rsplit("\t", 1) for line in lines_in(str(newest))]
    assert len({word for word, _ in pairs}) == len(pairs)
    return Counter({word: int(count) for word, count in pairs})


def _logged(chance: Random) -> None:
    levels, components = ("INFO", "WARN", "ERROR"), ("storage", "network", "queue")
    write_lines(chance, lambda number: f"{chance.choice(levels)} {chance.choice(components)} number {number}")


def _levels() -> Result:
    lines = [line.split(" ") for line in lines_in("input")]
    found = Counter((level, component) for level, component, *_ in lines)
    components = sorted({component for level, component in found if level != "INFO"})
    troubles = [f"{each} {found['WARN', each]} {found['ERROR', each]}" for each in components]
    return sorted(" ".join(line) for line in lines if line[0] == "ERROR"), troubles


def _found_levels() -> Result:
    troubles = lines_in("output/troubles")
    components = len({line.split(" ")[0] for line in troubles})
    return sorted(lines_in("output/errors")), troubles[-components:]


def _tree(chance: Random) -> None:
    Path("input/deep/void").mkdir(parents=True)
    for name, length in (("long.bin", 6000), ("deep/short", 3), ("deep/empty", 0), (".hidden", 130)):
        Path("input", name).write_bytes(chance.randbytes(length))


def _copied(folder: str) -> Result:
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in Path(folder).rglob("*")
    }


def _tailed(chance: Random) -> None:
    levels = ("INFO", "WARN", "no entry")
    write_lines(chance, lambda number: f"{NOON} {chance.choice(levels)} {number}", folder="logs", ending=".log")
    for path in Path("logs").iterdir():
        with path.open("a") as file:
            file.write("\n")


def _entries() -> Result:
    return sorted(line.partition(" ")[2] for line in lines_in("logs"))


TRIED = {
    "count": Tried(
        CountUp,
        lambda _: None,
        lambda: sorted(f"{name} {number}" for name, end in (("x", 3000), ("y", 5000)) for number in range(end)),
        lambda: sorted(lines_in("output")),
        {"operator.Pairs.prop.items": '[["x", 3000], ["y", 5000]]', "operator.Count.prop.atOnce": 500},
    ),
    "file_copy": Tried(
        FileCopy,
        _tree,
        lambda: _copied("input"),
        lambda: _copied("output/input"),
        {"application.FileCopy.prop.blockSize": 512, "operator.Splitter.prop.blocksThreshold": 4},
    ),
    "line_filter": Tried(
        LineFilter,
        _filtered,
        lambda: sorted(line for line in lines_in("input") if not line.startswith(".")),
        lambda: sorted(lines_in("output")),
        {"operator.File-splitter.prop.blockSize": 300, "operator.File-splitter.prop.blocksThreshold": 5},
    ),
    "log_levels": Tried(
        LogLevels,
        _logged,
        _levels,
        _found_levels,
        {"operator.Splitter.prop.blockSize": 400, "operator.Splitter.prop.blocksThreshold": 4},
    ),
    "tail": Tried(Tail, _tailed, _entries, lambda: sorted(lines_in("output/entries")), {}),
    "word_count": Tried(
        WordCount,
        _worded,
        _words,
        _counted_words,
        {"operator.File-splitter.prop.blockSize": 300, "operator.File-splitter.prop.blocksThreshold": 4},
    ),
}
