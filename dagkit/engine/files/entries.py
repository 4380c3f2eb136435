"""Entries for external systems: staged on workers in pieces like those of files, and read again on the driver.

A piece is a sequence of entries, each of them eight bytes of length and then its content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dagkit.api.external import external_outputs
from dagkit.api.files import output_files
from dagkit.api.operators import Operator
from dagkit.engine.files.folders import folder_at
from dagkit.engine.files.pieces import PiecesLost, opened
from dagkit.engine.files.staging import EXTERNAL, Part, Staging, in_order
from dagkit.engine.program.address import Address

_LENGTH_BYTES = 8


class StagedEntries:
    """The entries of one external output in one slot."""

    def __init__(self, staging: Staging, output: Address) -> None:
        self._staging = staging
        self._operator = output.operator
        self._name = EXTERNAL + output

    def add(self, entry: Any, /) -> None:
        content = memoryview(entry)
        # Entries are complete with their window: the driver delivers them after its commit.
        self._staging.finish(self._operator, self._name)
        piece = self._staging.piece(self._operator, self._name, None)
        piece.write(content.nbytes.to_bytes(_LENGTH_BYTES, "big"))
        piece.write(content)


@dataclass(frozen=True, slots=True)
class CommittedEntries:
    """The entries that one committed window staged for one external output: a `StagedWindow`."""

    writer: str
    window_id: int
    parts: Sequence[Part]
    application_path: str

    def entries(self) -> Iterator[bytes]:
        home = folder_at(self.application_path)
        for part in in_order(self.parts):
            yield from _entries_in(home.path_of(part.part), part)


def _entries_in(path: str, part: Part) -> Iterator[bytes]:
    try:
        source = opened(path)
    except FileNotFoundError as error:
        raise PiecesLost(part.file) from error
    with source:
        left = part.length
        while left:
            length = int.from_bytes(_exactly(source, _LENGTH_BYTES, part), "big")
            yield _exactly(source, length, part)
            left -= _LENGTH_BYTES + length


def _exactly(source: Any, length: int, part: Part) -> bytes:
    """Read so many bytes. Raise `PiecesLost` if the piece has fewer."""
    content = bytearray()
    while len(content) < length:
        more = source.read(min(length - len(content), 1 << 20))
        if not more:
            raise PiecesLost(part.file)
        content += more
    return bytes(content)


def serve_outputs(staging: Staging | None, name: str, operator: Operator) -> None:
    """Give the operator the files and the external outputs that it declares."""
    services = operator._services  # noqa: SLF001 - bound here
    for service, files in output_files(type(operator)).items():
        assert staging is not None, f"{name} writes files, and the window has no place to stage them"
        adopts, of_blocks = files.incomplete is not None, files.of_blocks
        services[service] = staging.files(name, files.directory(operator), of_blocks=of_blocks, adopts=adopts)
    for output in external_outputs(type(operator)):
        assert staging is not None, f"{name} has external outputs, and the window has no place to stage their entries"
        services[output] = StagedEntries(staging, Address.of(name, output))
