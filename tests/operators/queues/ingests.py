"""Files that messages name, an application that reads them, and what it wrote."""

from pathlib import Path

from pydantic import SecretStr

from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit_operators import AcknowledgeFiles, FileSplitterBase, LineReader, PartWriter, QueuePaths
from tests.engine.cast import Draw
from tests.operators.ways import lines_in
from tests.services.rabbitmq import left

LINES = 3


def files(count: int, first: int = 0) -> list[str]:
    """Paths of files with a few lines each."""
    paths = [Path(f"file-{number}") for number in range(first, first + count)]
    for path in paths:
        path.write_text("".join(f"{path.name}, line {line}\n" for line in range(LINES)))
    return [str(path.absolute()) for path in paths]


def lines_of(count: int) -> list[str]:
    return sorted(f"file-{number}, line {line}" for number in range(count) for line in range(LINES))


def check(url: str, queue: str, count: int, copies: int = 1) -> None:
    """Each line of each file is there once for each message, no message is left, and the ledger proves it."""
    assert lines_in("output") == sorted(lines_of(count) * copies)
    assert left(url, queue) == 0
    assert verify(Ledger.open("app")).is_valid


def lines_copied(url: str, queue: str, **writer: int) -> Draw:
    """An application that copies the lines of the files that messages name, and fails if a file is missing."""

    def draw(dag, conf):
        at = {"url": SecretStr(url), "queue": queue}
        messages = dag.add_operator("messages", QueuePaths(**at))
        acknowledge = dag.add_operator("acknowledge", AcknowledgeFiles(**at))
        splitter, reader = dag.add_operator("splitter", FileSplitterBase()), dag.add_operator("reader", LineReader())
        messages >> splitter >> reader >> dag.add_operator("lines", PartWriter(file_path="output", **writer))
        messages.output >> acknowledge.files
        messages.settled >> acknowledge.settled
        splitter.files_metadata_output >> acknowledge.metadata
        reader.blocks_metadata_output >> acknowledge.blocks

    return draw
