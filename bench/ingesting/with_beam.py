"""Apache Beam on its direct runner."""

from pathlib import Path

import apache_beam as beam  # type: ignore[import-not-found, unused-ignore]
from apache_beam.options.pipeline_options import PipelineOptions  # type: ignore[import-not-found, unused-ignore]

_ALL_CORES = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=0"]
"""Its fastest mode: a worker process for each core."""


def direct(source: Path, target: Path) -> None:
    """`ReadFromText`, `Filter` with a lambda, `WriteToText`."""
    with beam.Pipeline(options=PipelineOptions(_ALL_CORES)) as pipeline:
        lines = pipeline | beam.io.ReadFromText(str(source))
        kept = lines | beam.Filter(lambda line: not line.startswith("."))
        _ = kept | beam.io.WriteToText(str(target / "kept"))
