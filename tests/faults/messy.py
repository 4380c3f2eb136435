"""Messy inputs: what they contain, how they change while they are read, and what must come of every record.

A case is plain data that hypothesis draws, and shrinks if it fails. Its input is made step by step, and each record is
noted as it is made: what must come of it is known from that alone.
"""

import bz2
import gzip
import itertools
import json
import lzma
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st

from dagkit import Dag, OperatorContext, StatelessPartitioner
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.record.work_history import lost_in, work_left
from dagkit.ground.urls import plain
from dagkit.testing import Crash, CrashAfter, FakeClock
from dagkit_operators import (
    CsvContext,
    CsvReader,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    JsonLinesContext,
    JsonLinesReader,
    LineReader,
    Lost,
    Map,
    MatchFiles,
    PartWriter,
    QueueInput,
    ReadFiles,
    RecordWriter,
    Rejected,
    TailFiles,
)
from dagkit_operators.queues import consumer
from tests.engine.cast import Desk, Digits, Draw, Ranges, files_in, reference
from tests.services.rabbitmq import left, send

Fate = tuple[Any, ...]
"""Where a record is in the end, and what shows that it is this one."""

# ---- the oracle


@dataclass
class Made:
    """Records that were put into the input together, such as those of a file as it was for a while."""

    fates: Counter[Fate]
    is_read: bool | None = False
    """Whether they are read: False while no launch has seen them, None if only a launch that was killed knows it."""


@dataclass
class Book:
    """What was put into an input."""

    made: list[Made] = field(default_factory=list)
    present: dict[Any, Made] = field(default_factory=dict)
    """What a launch would read now, by file."""

    def put(self, place: Any, fates: Iterator[Fate]) -> None:
        """Note what a file contains now."""
        self.present[place] = Made(Counter(fates))
        self.made.append(self.present[place])

    def launched(self, *, is_over: bool) -> None:
        """Note that a launch may have read what is there; one that was not disturbed has."""
        for made in self.present.values():
            made.is_read = True if is_over else made.is_read or None

    def outcomes(self) -> Iterator[Counter[Fate]]:
        """What may come of all records. Those that a killed launch may have found are read whole, or not at all."""
        for chosen in itertools.product(*({True: (1,), False: (0,), None: (0, 1)}[each.is_read] for each in self.made)):
            yield sum((each.fates for each, is_read in zip(self.made, chosen, strict=True) if is_read), Counter())


# ---- when something happens


@dataclass(frozen=True)
class Launch:
    """One launch, what changes before it and during it, and where it is killed."""

    before: tuple[int, ...] = ()
    """Which parts of the input change before it."""
    meanwhile: tuple[int, ...] = ()
    at: tuple[Point, int] = (Point.PLANNED, 1)
    """The step of a window after which those change."""
    crash: tuple[Point, int] | None = None
    readers: int = 1


@dataclass
class Input:
    """An input that changes, and the application that reads it."""

    home: Path
    case: Any
    book: Book = field(default_factory=Book)
    is_calm: bool = False
    """Whether a launch has read everything that is there, and nothing changed since."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Prepare the input."""
        raise NotImplementedError

    def draw(self, readers: int) -> Draw:
        """The application, with so many partitions of its reader."""
        raise NotImplementedError

    def change(self, number: int) -> None:
        """Change a part of the input."""
        raise NotImplementedError

    def finish(self) -> None:
        """Make the changes without which no launch reads everything."""

    def killed(self) -> None:
        """Release what the end of the process would."""

    def run(self, backend: Any) -> None:
        """Launch the application again and again while the input changes; at last, let it read everything."""
        for launch in self.case.launches:
            for number in launch.before:
                self.change(number)
            self.launch(launch, backend)
        self.finish()
        self.launch(Launch(), backend)

    def launch(self, launch: Launch, backend: Any) -> None:
        changes = list(launch.meanwhile)

        def probe(point: Point, window_id: int) -> None:
            if (point, window_id - before) == launch.at:
                for number in changes:
                    self.change(number)
                changes.clear()
            if launch.crash is not None:
                CrashAfter(launch.crash[0], before + launch.crash[1])(point, window_id)

        loop = self.desk(launch.readers, backend).loop(probe=probe)
        before = loop.run_state.checkpoint.window
        self.is_calm = False
        self.book.launched(is_over=False)
        try:
            loop.run()
        except Crash:
            self.killed()
        else:
            self.is_calm = changes == list(launch.meanwhile)
        self.book.launched(is_over=self.is_calm)

    def desk(self, readers: int = 1, backend: Any = None) -> Desk:
        return Desk(self.home, self.draw(readers), backend=backend, clock=FakeClock())

    def outcome(self) -> Counter[Fate]:
        """What the output files contain, and what the ledger lists as not read."""
        paths = [(folder, path) for folder in ("out", "rejected") for path in files_in(self.home / folder)]
        lines = [(folder, line) for folder, path in paths for line in path.read_text("ascii").split("\n")[:-1]]
        ledger = self.desk().ledger()
        lost = [work for entry in history(ledger) for work in lost_in(entry.checkpoint)]
        return Counter(lines) + sum((self.fates_of(work) for work in [*work_left(ledger), *lost]), Counter())

    def fates_of(self, work: Any) -> Counter[Fate]:
        """What the ledger says of work that was not done."""
        raise NotImplementedError

    def parted(self, name: str) -> PartWriter:
        return PartWriter(file_path=str(self.home / name))


def as_line(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def place_of(rejected: Rejected | Lost) -> str:
    return as_line([plain(rejected.path).rpartition("/")[2], rejected.start])


def place_of_tailed(rejected: Rejected | Lost) -> str:
    return as_line([first_name(plain(rejected.path).rpartition("/")[2]), rejected.start])


def first_name(name: str) -> str:
    """The name of a file before it was renamed: a tail goes on under the name by which it found the file."""
    return re.sub("^([0-9])r+", r"\1", name)


def parted(dag: Dag, operator: Any, partitions: int) -> Any:
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
    return operator


# ---- files

Way = Literal["blocks", "matched blocks", "files", "tail"]
WAYS: tuple[Way, ...] = ("blocks", "matched blocks", "files", "tail")
Form = Literal["lines", "csv", "json"]
COMPRESSED: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
NAMES = ("a", "a b", "é", "%41", "[x]", "{window}", "-rf", "~", "a\nb", "a@1", "a.gz.txt", "\udcff", "#", "'\"", "a:b")
LETTERS = {
    "latin-1": "a\"',é\t \x85|#",
    "utf-8": "a\"',é\u2028\x0b😀 #",
    "utf-16": "a\"',é\u2028😀 ",
    "cp1252": "a\"',€ ",
}

BROKEN = {"utf-8": b"\xff", "utf-16": b"\x00\xd8", "cp1252": b"\x81", "latin-1": b""}
"""Bytes that are no text."""
MARK = b"\xff\xfe"
"""The byte order mark with which files of UTF-16 begin."""


@dataclass(frozen=True)
class Row:
    text: str
    number: int
    is_bad: bool = False


@dataclass(frozen=True)
class Change:
    kind: Literal["grow", "rename", "replace"]
    rows: tuple[Row, ...]
    is_ended: bool
    """Whether its last row has a line end."""
    held: int
    """How many bytes come with the next change only, if the file is tailed."""


@dataclass(frozen=True)
class File:
    name: str
    compression: str
    is_damaged: bool
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Files:
    """Files that are created, grow, get other names and are replaced."""

    way: Way
    form: Form
    files: tuple[File, ...]
    encoding: str
    line_end: str
    keep_returns: bool
    block_size: int
    most_blocks: int
    """Of a window."""
    chunk_size: int
    by_block: bool
    """Whether output files belong to blocks."""
    launches: tuple[Launch, ...]

    def input(self, home: Path) -> "FilesInput":
        return FilesInput(home, self)


@dataclass
class Present:
    """A file as it is now."""

    path: Path
    changes: list[Change]
    content: bytes = b""
    """What it contains, decompressed."""
    rows: list[tuple[int, Row, bool]] = field(default_factory=list)
    """Its rows, each with its first byte, and whether it has a line end."""
    held: bytes = b""
    is_new: bool = True
    """Whether it changed since a launch began."""


class FilesInput(Input):
    case: Files

    def begin(self) -> None:
        (self.home / "in").mkdir()
        self.files = [
            Present(self.home / "in" / f"{number}{file.name}.txt{file.compression}", list(file.changes))
            for number, file in enumerate(self.case.files)
        ]
        self.seconds = 1_000_000_000

    # ---- what reads them

    def draw(self, readers: int) -> Draw:
        def draw(dag: Dag, conf: object) -> None:
            found = self._found(dag)
            reader = parted(dag, dag.add_operator("reader", self._reader()), readers)
            as_lines = dag.add_operator("lines", Map(as_line))
            by_block = self.case.by_block and "blocks" in self.case.way
            out = RecordWriter(file_path=str(self.home / "out")) if by_block else self.parted("out")
            found >> reader >> as_lines >> dag.add_operator("out", out)
            place = place_of_tailed if self.case.way == "tail" else place_of
            places = dag.add_operator("places", Map(place))
            reader.rejected >> places >> dag.add_operator("rejected", self.parted("rejected"))
            if self.case.way == "tail":
                lost = dag.add_operator("lost places", Map(place_of))
                reader.lost >> lost >> dag.add_operator("lost", self.parted("lost"))

        return draw

    def _found(self, dag: Dag) -> Any:
        place = str(self.home / "in")
        size = {"block_size": self.case.block_size, "blocks_threshold": self.case.most_blocks}
        if self.case.way == "blocks":
            return dag.add_operator("splitter", FileSplitterInput(scanner={"files": [place]}, **size))
        found = dag.add_operator("patterns", Items(items=[place])) >> dag.add_operator("match", MatchFiles())
        if self.case.way == "matched blocks":
            return found >> dag.add_operator("splitter", FileSplitterBase(**size))
        return found

    def _reader(self) -> Any:
        case, chunk = self.case, {"chunk_size": self.case.chunk_size, "encoding": self.case.encoding}
        lines = {**chunk, "keep_returns": case.keep_returns, "undecodable": "reject"}
        if case.way == "tail":
            return TailFiles(**lines, part_size=case.block_size)
        types = {"n": "int64", "text": "string"}
        tables = {"csv": (CsvContext, CsvReader), "json": (JsonLinesContext, JsonLinesReader)}
        read = LineReader if case.way != "files" else ReadFiles
        if case.form == "lines":
            return read(**lines, on_bad_file="quarantine")
        context, reader = tables[case.form]
        read = reader if case.way != "files" else ReadFiles
        return read(reader_context=context(**chunk, types=types), on_bad_file="quarantine")

    def launch(self, launch: Launch, backend: Any) -> None:
        for present in self.files:
            present.is_new = False
        super().launch(launch, backend)

    # ---- what they contain

    def change(self, number: int) -> None:
        file, present = self.case.files[number % len(self.files)], self.files[number % len(self.files)]
        if not present.changes:
            return
        change, is_read = present.changes.pop(0), self.is_calm and not present.is_new
        if change.kind == "grow" or not present.content:
            self._write(file, present, change)
        elif change.kind == "rename" and (is_read or self.case.way == "tail"):
            self._rename(file, present)
        elif change.kind == "replace" and is_read:
            self._replace(file, present, change)

    def finish(self) -> None:
        for number, present in enumerate(self.files):
            while any(change.kind == "grow" for change in present.changes):
                self.change(number)
            if present.held:
                self._append(self.case.files[number], present, present.held)
        if self.case.way == "tail":
            for present in self.files:
                self.book.put(len(self.book.made), self._ended(present))

    def _write(self, file: File, present: Present, change: Change) -> None:
        """Append rows to a file, which may not exist yet."""
        case, is_new = self.case, not present.content
        before = len(present.content) + len(present.held)
        made = [] if not is_new else [MARK if case.encoding == "utf-16" else b""]
        if is_new and case.form == "csv":
            made += [self._bytes("n,text"), self._end]
        rows: list[tuple[int, Row, bool]] = []
        if change.rows and present.rows and not present.rows[-1][2]:
            made.append(self._end)
            present.rows[-1] = (*present.rows[-1][:2], True)
        for row in change.rows:
            start, content = before + sum(map(len, made)), self._row(row)
            start = 0 if start == len(MARK) and case.encoding == "utf-16" else start  # the mark belongs to the line
            is_ended = row is not change.rows[-1] or change.is_ended or not content
            rows.append((start, row, is_ended))
            made += [content, self._end if is_ended else b""]
        present.rows += rows
        content = present.held + b"".join(made)
        kept = min(change.held, len(content) - 1) if case.way == "tail" and content else 0
        present.held = content[len(content) - kept :]
        self._append(file, present, content[: len(content) - kept])

    def _append(self, file: File, present: Present, content: bytes) -> None:
        if not content and present.path.exists():
            return
        present.content += content
        with present.path.open("ab") as stream:
            stream.write(self._stored(file, content))
        self._changed(file, present)

    def _stored(self, file: File, content: bytes) -> bytes:
        stored = COMPRESSED[file.compression](content)
        return stored[:-8] + b"\xff" * 4 + stored[-4:] if self._is_damaged(file) else stored

    def _is_damaged(self, file: File) -> bool:
        return file.is_damaged and file.compression == ".gz"

    def _rename(self, file: File, present: Present) -> None:
        name = present.path.name
        present.path = present.path.rename(present.path.with_name(f"{name[0]}r{name[1:]}"))
        if self.case.way == "blocks":
            self._changed(file, present)

    def _replace(self, file: File, present: Present, change: Change) -> None:
        """Let another file take its name."""
        if self.case.way == "tail":
            self.book.put(len(self.book.made), self._ended(present))
        path, present.content, present.held, present.rows = present.path, b"", b"", []
        present.path = self.home / "new"
        self._write(file, present, change)
        present.path = present.path.rename(path)
        self._changed(file, present)

    def _changed(self, file: File, present: Present) -> None:
        """Note what a file contains, and give it another time, but not while a tail may look at it.

        A file whose time changes and whose length does not counts as overwritten, and is read again as a whole.
        """
        present.is_new = True
        if self.case.way != "tail":
            self.seconds += 100
            os.utime(present.path, (self.seconds, self.seconds))
            self.book.put(id(present), self._fates(file, present))

    def _fates(self, file: File, present: Present) -> Iterator[Fate]:
        if self._is_damaged(file):
            yield "set aside", present.path.name, 0, present.path.stat().st_size
            return
        for start, row, is_ended in present.rows:
            yield self._fate(present, start, row, is_ended=is_ended)

    def _fate(self, present: Present, start: int, row: Row, *, is_ended: bool) -> Fate:
        if row.is_bad and (self.case.form != "lines" or BROKEN[self.case.encoding]):
            name = present.path.name
            return "rejected", as_line([first_name(name) if self.case.way == "tail" else name, start])
        returns = "\r" if is_ended and self.case.keep_returns and self.case.line_end == "\r\n" else ""
        value = {"n": row.number, "text": row.text}
        return "out", as_line(row.text + returns if self.case.form == "lines" else value)

    def _ended(self, present: Present) -> Iterator[Fate]:
        """The rows that a tail reads: those with a line end."""
        for start, row, is_ended in present.rows:
            if is_ended and start + len(self._row(row)) + len(self._end) <= len(present.content):
                yield self._fate(present, start, row, is_ended=True)

    def _row(self, row: Row) -> bytes:
        if self.case.form == "lines":
            return self._bytes(row.text) + (BROKEN[self.case.encoding] if row.is_bad else b"")
        if self.case.form == "json":
            good = json.dumps({"n": row.number, "text": row.text}, ensure_ascii=self.case.encoding != "utf-8")
            return self._bytes(good[:-2] if row.is_bad else good)
        quoted = '"' + row.text.replace('"', '""') + '"'
        return self._bytes(f"{'x' if row.is_bad else row.number},{quoted}")

    def _bytes(self, text: str) -> bytes:
        return text.encode({"utf-16": "utf-16-le"}.get(self.case.encoding, self.case.encoding))

    @property
    def _end(self) -> bytes:
        return self._bytes(self.case.line_end)

    def fates_of(self, work: Any) -> Counter[Fate]:
        if work.state == "pending":  # patterns, and the rest of files that are tailed; `faults` has all others
            return Counter()
        (name,) = (each.path.name for each in self.files if f"/{each.path.name}" in plain(work.place.source))
        return Counter([(work.state, name, work.place.start, work.place.end)])


# ---- messages of a queue


@dataclass(frozen=True)
class Messages:
    """Messages, of which many are equal; each has an ID, or none."""

    messages: tuple[tuple[str, str | None], ...]
    most_unacknowledged: int
    launches: tuple[Launch, ...]

    def input(self, home: Path) -> "MessagesInput":
        return MessagesInput(home, self)


class MessagesInput(Input):
    case: Messages
    url = "memory://"

    def begin(self) -> None:
        self.queue, self.waiting = str(self.home), list(self.case.messages)
        send(self.url, self.queue, ())

    def draw(self, readers: int) -> Draw:
        def draw(dag: Dag, conf: object) -> None:
            most = self.case.most_unacknowledged
            found = dag.add_operator("queue", QueueInput(queue=self.queue, most_unacknowledged=most, quiet_millis=20))
            found >> dag.add_operator("lines", Map(text_of)) >> dag.add_operator("out", self.parted("out"))

        return draw

    def change(self, number: int) -> None:
        """Send some messages. One with the ID of an earlier one is that one, sent again."""
        for text, name in self.waiting[: number + 1]:
            send(self.url, self.queue, [text], message_id=name)
            if name is None or name not in self.book.present:
                self.book.put(name or len(self.book.made), iter([("out", as_line(text))]))
        del self.waiting[: number + 1]

    def finish(self) -> None:
        self.change(len(self.waiting))
        while left(self.url, self.queue):
            self.launch(Launch(), reference)
            self.killed()

    def killed(self) -> None:
        for each in list(consumer._open.values()):
            consumer.disconnect(each)


def text_of(message: Any) -> str:
    return as_line(message.text)


# ---- ranges of which parts are removed


@dataclass(frozen=True)
class Offsets:
    """Ranges of numbers, of which the first ones are removed now and then."""

    looks: tuple[tuple[int, ...], ...]
    launches: tuple[Launch, ...]

    def input(self, home: Path) -> "OffsetsInput":
        return OffsetsInput(home, self)


class Retained(Digits):
    """Reads the numbers that are not removed, and skips the others."""

    kind = "messy.retained/1"
    first_file: str

    def process(self, element: Any, tracker: Any) -> Iterator[int]:
        for number in super().process(element, tracker):
            if number < int(Path(self.first_file).read_text(encoding="ascii")):
                tracker.skip(number, number + 1)
            else:
                yield number


class OffsetsInput(Input):
    case: Offsets

    def begin(self) -> None:
        self.first, self.first_of_all = 0, None
        self._remove(0)
        self.book.put("numbers", ((number,) for number in range(sum(map(sum, self.case.looks)))))

    def draw(self, readers: int) -> Draw:
        def draw(dag: Dag, conf: object) -> None:
            retained = Retained(first_file=str(self.home / "first"))
            reader = parted(dag, dag.add_operator("reader", retained), readers)
            ranges = dag.add_operator("ranges", Ranges(looks=self.case.looks))
            ranges >> reader >> dag.add_operator("lines", Map(as_line)) >> dag.add_operator("out", self.parted("out"))

        return draw

    def change(self, number: int) -> None:
        self._remove(self.first + number)

    def launch(self, launch: Launch, backend: Any) -> None:
        self.first_of_all = self.first if self.first_of_all is None else self.first_of_all
        super().launch(launch, backend)

    def outcome(self) -> Counter[Fate]:
        """Each number that was read or skipped; one that was removed before the first launch cannot be read."""
        return Counter(
            (number,) if can_be else (fate, number)
            for fate, number in super().outcome().elements()
            for number, can_be in [(int(number), self._can_be(fate, int(number)))]
        )

    def _can_be(self, fate: str, number: int) -> bool:
        return number < self.first if fate == "skipped" else number >= self.first_of_all

    def fates_of(self, work: Any) -> Counter[Fate]:
        return Counter((work.state, number) for number in range(work.place.start, work.place.end))

    def _remove(self, first: int) -> None:
        self.first = first
        (self.home / "new first").write_text(f"{first}", encoding="ascii")
        (self.home / "new first").rename(self.home / "first")  # a window may run


# ---- strategies

points = st.sampled_from(list(Point))
launches = st.lists(
    st.builds(
        Launch,
        before=st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple),
        meanwhile=st.lists(st.integers(0, 3), max_size=2).map(tuple),
        at=st.tuples(st.just(Point.PLANNED) | points, st.integers(1, 2)),
        crash=st.none() | st.tuples(points, st.integers(1, 3)),
        readers=st.integers(1, 3),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@st.composite
def files(draw: st.DrawFn, way: Way) -> Files:
    """Files that are found and read in a way."""
    form: Form = "lines" if way == "tail" else draw(st.sampled_from(("lines", "lines", "csv", "json")))
    encoding = draw(st.sampled_from(("utf-8", "utf-8", "latin-1", "cp1252", *(("utf-16",) if way != "tail" else ()))))
    letters = LETTERS[encoding] + ("\n" if form != "lines" else "")
    rows = st.lists(
        st.builds(Row, st.text(letters, max_size=30), st.integers(0, 9), st.integers(0, 9).map(lambda n: n == 0)),
        max_size=6,
    ).map(tuple)
    kinds = st.sampled_from(("grow", "grow", "grow", "rename", "replace"))
    change = st.builds(Change, kinds, rows, is_ended=st.booleans(), held=st.integers(0, 8))
    file = st.builds(
        File,
        name=st.sampled_from(NAMES),
        compression=st.just("") if way == "tail" else st.sampled_from(["", "", *COMPRESSED]),
        is_damaged=st.integers(0, 4).map(lambda n: n == 0),
        changes=st.lists(change, min_size=1, max_size=3).map(tuple),
    )
    block_size = draw(st.sampled_from((1, 7, 20, 64, 1000)))
    most_blocks = st.sampled_from((max(2, 40 // block_size), 1000))  # so that a window takes some bytes
    return Files(
        way=way,
        form=form,
        files=draw(st.lists(file, min_size=1, max_size=4).map(tuple)),
        encoding=encoding,
        line_end=draw(st.sampled_from(("\n", "\r\n"))),
        keep_returns=draw(st.booleans()),
        block_size=block_size,
        most_blocks=draw(most_blocks),
        chunk_size=draw(st.sampled_from((1, 16, 1000))),
        by_block=draw(st.booleans()),
        launches=draw(launches),
    )


messages = st.builds(
    Messages,
    # One ID is one message: which of two different ones a queue keeps depends on which it delivers first.
    messages=st.lists(st.sampled_from((("a", None), ("b", None), ("a", "1"), ("b", "2"), ("b", "3"))), max_size=12).map(
        tuple
    ),
    most_unacknowledged=st.integers(1, 4),
    launches=launches,
)
offsets = st.builds(
    Offsets,
    looks=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4).map(tuple), min_size=1, max_size=3).map(tuple),
    launches=launches,
)
