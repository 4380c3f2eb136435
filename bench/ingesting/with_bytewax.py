"""Bytewax: a dataflow from one file to another, one worker (a file has one reader)."""

from pathlib import Path

import bytewax.operators as op  # type: ignore[import-not-found, unused-ignore]
from bytewax.connectors.files import FileSink, FileSource  # type: ignore[import-not-found, unused-ignore]
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found, unused-ignore]
from bytewax.testing import run_main  # type: ignore[import-not-found, unused-ignore]


def dataflow(source: Path, target: Path) -> None:
    """Lines in batches of 10,000, a filter with a lambda, a sink with one partition."""
    flow = Dataflow("ingest")
    lines = op.input("lines", flow, FileSource(source, batch_size=10_000))
    kept = op.filter("keep", lines, lambda line: not line.startswith("."))
    op.output("written", op.key_on("key", kept, lambda _: "all"), FileSink(target / "kept"))
    run_main(flow)
