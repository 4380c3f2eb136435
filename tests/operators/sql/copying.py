"""An application that copies a table to another one, in a process that tests can kill."""

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from dagkit import OperatorContext, StatelessPartitioner
from dagkit.launching import Machine, launch
from dagkit_operators import SqlReader, SqlSplitter, SqlWriter
from tests.engine.cast import Draw
from tests.operators.driver_kills import SendSteps
from tests.operators.sql.sql_cast import Row, TestDatabase
from tests.operators.ways import placed

Backend = Literal["reference", "spark"]


def rows_copied(database: TestDatabase) -> Draw:
    """The rows of the table `numbers`, read by two, are written to the table `copies`."""

    def draw(dag, conf):
        copies = placed(
            dag,
            split=SqlSplitter(table="numbers", key="number", range_size=6, **database.settings),
            read=SqlReader(record_type=Row, page_rows=2, **database.settings),
            write=SqlWriter(table="copies", record_type=Row, **database.settings),
        )
        dag.set_operator_attribute(copies["read"], OperatorContext.PARTITIONER, StatelessPartitioner(2))

    return draw


def copy(home: Path, database: TestDatabase, backend: Backend, steps: Connection) -> None:
    """Copy the rows that are there, and send each step."""
    launch(
        rows_copied(database),
        {"dt.attr.STREAMING_WINDOW_SIZE_MILLIS": 50},
        until="idle",
        machine=Machine(backend, cores=2),
        path=home / "app",
        probe=SendSteps(steps),
    )
