"""Retracing: find the input of a line of an output file, by reading again the blocks that its window consumed.

The ledger names the window and the slot that wrote each piece of a file, and the blocks that the window consumed, but
not the order of their records. So each block runs again, alone, through the operators between its reader and the
writer, and its output is compared with the file: where both agree around the line, the block is the origin.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from posixpath import dirname
from typing import Any

from dagkit.api.external import external_outputs
from dagkit.api.files import content_of_piece, output_files
from dagkit.api.operators import Operator
from dagkit.api.state import declared_state
from dagkit.api.work import ShowsContent, SplittableOperator
from dagkit.backends.reference.one_partition import Origin, Placed
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Wire
from dagkit.engine.files.pieces import look_at
from dagkit.engine.files.staging import Part
from dagkit.engine.program.entrances import code_of
from dagkit.engine.program.program import Program
from dagkit.engine.record.written_file import PiecePlace, WrittenFile, stretches, written_file
from dagkit.engine.work.item import WorkItem
from dagkit.errors import RunFailure
from dagkit.ground.urls import as_text, shown
from dagkit.ledger import Ledger
from dagkit.plan.model import Routing
from dagkit.ranges import OFFSET_INFINITY
from dagkit.runs.window_again import NotFoundAgain, RunAgain, WindowAgain, past_windows

_MOST = 10
"""The highest number of places that are reported for one line."""
_LF = 0x0A
_MOST_SHOWN = 64 << 10
"""The most bytes of a record that are shown."""
_TOGETHER = 1000
"""How many items are written at a time: a window for each takes half a millisecond with a file of Parquet."""


class LineUnknown(ValueError):
    """The application did not write this line: no such file, no such line, or a file that was changed."""


@dataclass(frozen=True, slots=True)
class Source:
    """A range of an input."""

    source: str
    start: int
    end: int | None
    """None if the range has no end."""
    text: str | None = None
    """Its content, cut to _MOST_SHOWN bytes; None if the range is not one record."""
    decompressed: bool = False
    """Whether the positions are those of the decompressed content."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The origin of one line of an output file."""

    text: str
    operator: str
    window: int
    slot: int
    sources: tuple[Source, ...]
    """The record that it was made of; several if they give the same line; or, with a reason, all ranges that the window
    consumed."""
    reason: str = ""
    """Why no single record is reported; empty if the sources are records."""
    keeping: tuple[str, ...] = ()
    """With a reason: the operators whose state may have brought records of earlier windows into the line."""


def trace(compilation: Compilation, ledger: Ledger, file: str, line: int) -> Traced:
    """Return the origin of a line of an output file, the first being line 1. Raise LineUnknown if there is none."""
    found = written_file(ledger, as_text(file))
    operators = RunAgain.of(compilation)
    part, content, place, is_plain = _located(operators.program, found, file, line)
    end = content.find(b"\n", place) + 1 or len(content)
    text = content[place:end].decode(errors="backslashreplace").removesuffix("\n")
    try:
        sources = _Rerun(operators, ledger, found, part, is_plain=is_plain).sources(content, place, end)
    except NotFoundAgain as why:
        consumed = tuple(_consumed(found, part))
        keeping = tuple(_keeping(operators, part.operator)) if part.window > 1 else ()
        return Traced(text, part.operator, part.window, part.slot, consumed, str(why), keeping)
    return Traced(text, part.operator, part.window, part.slot, tuple(sources))


def _located(program: Program, found: WrittenFile, file: str, line: int) -> tuple[Part, bytes, int, bool]:
    """Return the piece that contains a line, its content, and the position of the line there.

    The last value is whether the piece is not compressed.
    """
    if not found.parts:
        raise LineUnknown(f"the ledger names no file {shown(file)}")
    (there,) = look_at([file])
    if there is None:
        raise LineUnknown(f"{shown(file)} does not exist: it is not complete yet, or was moved away")
    if there.length != sum(part.length for part in found.parts):
        raise LineUnknown(f"{shown(file)} was changed after the application had written it")
    before = place = 0
    for part in found.parts:
        piece = PiecePlace(part, file, place).content()
        writer = program.operators.get(part.operator)  # None if the application has changed
        content = piece if writer is None else content_of_piece(writer[0], piece)
        place += part.length
        lines = content.count(b"\n") + (content[-1:] not in (b"\n", b""))
        if line <= before + lines:
            return part, content, _start_of_line(content, line - before), content is piece
        before += lines
    raise LineUnknown(f"{shown(file)} has {before} lines, and no line {line}")


def _start_of_line(content: bytes, line: int) -> int:
    place = 0
    for _ in range(line - 1):
        place = content.index(b"\n", place) + 1
    return place


def _consumed(found: WrittenFile, part: Part) -> Iterator[Source]:
    """Everything that the window of a piece consumed."""
    return (Source(span.source, span.start, span.end) for span in found.work[part.window].all_consumed)


def _keeping(operators: RunAgain, writer: str) -> Iterator[str]:
    """The operators between the readers and a writer that keep state, the nearest first."""
    before = [writer]
    for name in before:
        if name not in operators.program.operators or isinstance(operators.operator(name), SplittableOperator):
            continue
        if name != writer and name not in operators.program.sources and declared_state(type(operators.operator(name))):
            yield name
        before += [each for each in dict.fromkeys(w.source.node for w in operators.into(name)) if each not in before]


@dataclass(frozen=True, slots=True)
class _RecordedFile:
    """A file that an operator writes."""

    content: bytearray

    def write(self, content: Any, /) -> None:
        self.content.extend(content)


@dataclass(slots=True)
class _RecordedFiles:
    """Keeps what an operator writes to each file, instead of staging it."""

    contents: dict[str, bytearray] = field(default_factory=dict)
    began: None = None

    def open(self, name: str, *, block: int | None = None) -> _RecordedFile:  # noqa: ARG002 - as operators call it
        return _RecordedFile(self.contents.setdefault(name, bytearray()))

    def finish(self, name: str) -> None:
        """Do nothing: no file is completed."""

    def add(self, entry: Any, /) -> None:
        """Do nothing: no entry is a part of a file."""


@dataclass(slots=True)
class _Output:
    """The output of one stretch of a source: to the file of the piece by its name, or to all files of its folder."""

    item: WorkItem
    placed: Sequence[Placed]
    """The items that reach the writer."""
    records: Sequence[int]
    """The position of each record that was read, in order; those of a row group or a data block share one."""
    named: bool
    content: bytearray = field(default_factory=bytearray)
    starts: list[int] = field(default_factory=list)
    """Where the content of each _TOGETHER items starts."""

    def add(self, written: Mapping[bool, bytes]) -> None:
        """Add what was written for the next items."""
        self.starts.append(len(self.content))
        self.content += written[self.named]

    def positions(self, content: bytes, place: int, end: int) -> Iterator[int]:
        """Yield the positions of a line of a piece, wherever this output agrees with the piece around the line."""
        line, made = content[place:end], self.content
        at = made.find(line)
        while at >= 0:
            before = min(at, place)
            after = min(len(made) - at, len(content) - place)
            is_line = at == 0 or made[at - 1] == _LF
            if is_line and made[at - before : at + after] == content[place - before : place + after]:
                yield at
            at = made.find(line, at + 1)


class _Rerun:
    """Reads the work of one window again, and follows it to the writer of one piece."""

    def __init__(self, operators: RunAgain, ledger: Ledger, found: WrittenFile, part: Part, *, is_plain: bool) -> None:
        self.operators, self.program = operators, operators.program
        self.ledger, self.found, self.part = ledger, found, part
        self.has_order = is_plain and part.order > 0
        """Whether the piece comes from the stretch that starts at its order; a compressed one may come from several."""

    def sources(self, content: bytes, place: int, end: int) -> list[Source]:
        """The records from which the line at this place of the piece was made."""
        chain = self._chain()
        name = chain[0].source.node
        reader = self.program.operators[name][0]
        places: dict[bool, list[Source]] = {False: [], True: []}
        (past,) = past_windows(self.ledger, [self.part.window])
        again = WindowAgain(self.operators, self.ledger, past)
        for item in self._work(name, again.taken(name)):
            try:
                outputs = self._outputs(item, chain)
            except RunFailure as failure:  # another file of the window may be gone
                again.failures.append(failure)
                continue
            for output in outputs:
                for at in output.positions(content, place, end):
                    for origin in self._origins(output, chain[-1], at, content[place:end]):
                        places[output.named].append(_source_of(reader, output, origin))
        # A name that comes from data is the same again. That of a numbered file depends on what else its partition
        # wrote, so its lines may be in any file of the folder.
        found = places[True] or places[False]
        if not found:
            raise NotFoundAgain(
                "reading the blocks again did not give this line: the application, its configuration or its input "
                f"has changed{''.join(f'; {failure}' for failure in again.failures[:1])}"
            )
        return list(dict.fromkeys(found))[:_MOST]

    def _chain(self) -> list[Wire]:
        """The wires from a reader to the writer."""
        if self.part.operator not in self.program.operators:
            raise NotFoundAgain(f"the application has no operator {self.part.operator} any more")
        chain: list[Wire] = []
        node = self.part.operator
        while not (chain and isinstance(self.program.operators[node][0], SplittableOperator)):
            if chain and declared_state(type(self.program.operators[node][0])):
                raise NotFoundAgain(f"{node} keeps state, so that several records can make one item")
            wires = self.operators.into(node)
            if len(wires) != 1:
                raise NotFoundAgain(f"{node} has {len(wires)} streams that lead to it")
            wire = wires[0]
            target = next((t for t in self.program.targets.values() if t.into == (node, wire.sink.port)), None)
            is_sliding = (wire.source.node, wire.source.port) in self.program.sliders
            if wire.routing is Routing.DELAYED or is_sliding or (target is not None and target.unifier is not None):
                raise NotFoundAgain(f"a delay, a unifier or a sliding window lies before {node}")
            chain.insert(0, wire)
            node = wire.source.node
            if node in self.program.sources:
                raise NotFoundAgain(f"{node} emitted the items itself")
        return chain

    def _work(self, reader: str, taken: Iterable[WorkItem]) -> Iterator[WorkItem]:
        """The stretches of work that the window consumed and that may have become this piece."""
        into, work, cuts = self.operators.elements(reader).into, self.found.work[self.part.window], self.found.cuts
        for item in taken:
            if self.part.element_id in (None, item.element_id):
                places = cuts.get(item.source or "", frozenset()) | {self.part.order}
                for stretch in stretches(work, into, item, places):
                    if not self.has_order or stretch.start == self.part.order:
                        yield stretch

    def _outputs(self, item: WorkItem, chain: Sequence[Wire]) -> Sequence[_Output]:
        placed = self._read(item, chain[0].source.node, chain[0].source.port)
        records = sorted(one.origin.offset for one in placed if one.origin.offset is not None)
        for wire, following in pairwise(chain):
            placed = self._passed(wire, following.source.port, placed)
        outputs = [_Output(item, placed, records, named) for named in (False, True)]
        for written in self._written(chain[-1], placed, _TOGETHER):
            for output in outputs:
                output.add(written)
        return outputs

    def _origins(self, output: _Output, wire: Wire, at: int, line: bytes) -> Iterator[Origin]:
        """Yield the origin of the item of which a line was written at a position of an output."""
        which = bisect_right(output.starts, at) - 1
        placed, start = output.placed[which * _TOGETHER :][:_TOGETHER], output.starts[which]
        for one, written in zip(placed, self._written(wire, placed, 1), strict=True):
            lines = written[output.named]
            # Items that go to several files in turn are in another order if they are written together.
            if start <= at < start + len(lines) and lines[at - start :].startswith(line):
                yield one.origin
            start += len(lines)

    def _read(self, item: WorkItem, name: str, port: str) -> list[Placed]:
        partition = self.operators.partition(name, {})
        self.operators.begin(partition, self.part.window)
        self.operators.process(partition, self.part.window, item)
        self.operators.end(partition)
        return partition.sent[port]

    def _passed(self, wire: Wire, port: str, placed: Sequence[Placed]) -> list[Placed]:
        """Send items through one operator; what it sends for an item has the origin of the item."""
        name = wire.sink.node
        partition = self.operators.partition(name, {})
        self.operators.begin(partition, self.part.window)
        sent = partition.sent[port]
        for one in placed:
            before = len(sent)
            self.operators.take(partition, wire, [one])
            sent[before:] = [Placed(made.item, one.origin) for made in sent[before:]]
        before = len(sent)
        self.operators.end(partition)
        if len(sent) > before:
            raise NotFoundAgain(f"{name} sends items at the end of a window, of which each may come from many records")
        return sent

    def _written(self, wire: Wire, placed: Sequence[Placed], together: int) -> Iterator[Mapping[bool, bytes]]:
        """Write so many items at a time, in a window of their own, so that they are written before the next ones.

        Yield the lines in all files of the folder of the piece, and those in files of its name, as True.
        """
        name, files, file = wire.sink.node, _RecordedFiles(), self.part.file
        partition = self.operators.partition(name, {})
        operator = partition.operator
        declared = [*output_files(type(operator)), *external_outputs(type(operator))]
        operator._services.update(dict.fromkeys(declared, files))  # noqa: SLF001 - bound there
        self.operators.begin(partition, self.part.window, begins=False)
        for start in range(0, len(placed), together):
            with code_of(name):
                operator.begin_window(self.part.window)
            self.operators.take(partition, wire, placed[start : start + together])
            with code_of(name):
                operator.end_window()
                operator.before_checkpoint(self.part.window)
            written = {False: b"", True: b""}
            for file_name, content in files.contents.items():
                if _is_below(dirname(file), dirname(file_name)):
                    lines = content_of_piece(operator, bytes(content))
                    written[False] += lines
                    if _is_below(file, file_name):
                        written[True] += lines
            files.contents.clear()
            yield written
        partition.end()


def _is_below(path: str, name: str) -> bool:
    """Whether a path ends with this name of a file or a folder."""
    return f"/{path}".endswith(f"/{name}" if name else "")


def _source_of(reader: Operator, output: _Output, origin: Origin) -> Source:
    """The record of an origin; the whole stretch if the reader reports no positions, or does not show their bytes."""
    source = output.item.source or output.item.name
    stop = output.item.end if output.item.end < OFFSET_INFINITY else None
    if origin.offset is None or not isinstance(reader, ShowsContent):
        return Source(source, output.item.start, stop)
    end = reader.record_end(origin.element, origin.offset, output.item.end)
    first, following = bisect_left(output.records, origin.offset), bisect_right(output.records, origin.offset)
    if following < len(output.records):
        end = min(end, output.records[following])
    text = None
    if following - first == 1:
        with reader.opened_content(origin.element) as stream:
            content = _content(stream, origin.offset, end)
            text = reader.text_of(origin.element, content, stream).removesuffix("\n")
    return Source(source, origin.offset, end, text, reader.decompresses(origin.element))


def _content(stream: Any, start: int, end: int) -> bytes:
    """The bytes between two positions, at most _MOST_SHOWN of them."""
    content = memoryview(bytearray(min(end - start, _MOST_SHOWN)))
    stream.seek(start)
    count = 0
    while got := stream.readinto(content[count:]):
        count += got
    return bytes(content[:count])
