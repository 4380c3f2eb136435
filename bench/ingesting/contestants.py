"""The contestants, in the order of the reports."""

from dataclasses import dataclass

from bench.ingesting.environments import BEAM, OWN, PEERS, Environment
from bench.ingesting.maven import APEX


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to ingest the text."""

    name: str
    """Its name for `--only` and in the ratios."""
    title: str
    about: str
    call: str
    """The function to call in its own process, as `module:function`."""
    packages: tuple[str, ...] = ()
    """The packages whose versions are reported."""
    environment: Environment = OWN
    share: float = 1.0
    """Its share of the text: only rates are compared, and slow contestants would take too long."""
    one_core: bool = False
    repeats: int = 0
    """How often a process with a wrong output is repeated: some engines lose records now and then."""


_SPARK = ("pyspark", "pyarrow", "numpy")

CONTESTANTS = (
    Contestant(
        "dagkit-batch",
        "dagkit, batch",
        "splitter, reader, `Filter` with an Arrow expression, writer",
        "bench.ingesting.with_dagkit:batch",
        _SPARK,
    ),
    Contestant(
        "dagkit-unsynced",
        "dagkit, batch, not synced",
        "the same with `durable=False`: as with the others, the operating system writes to the disk later",
        "bench.ingesting.with_dagkit:batch_unsynced",
        _SPARK,
    ),
    Contestant(
        "dagkit-record",
        "dagkit, per record",
        "splitter, reader, `Filter` with a plain lambda, writer",
        "bench.ingesting.with_dagkit:record",
        _SPARK,
    ),
    Contestant(
        "native-spark",
        "native Spark",
        "`read.text`, `filter` on a column, `write.text`",
        "bench.ingesting.with_spark:native",
        ("pyspark",),
    ),
    Contestant(
        "native-synced",
        "native Spark, synced",
        "the same, and then each file is synced, as dagkit does before a commit",
        "bench.ingesting.with_spark:native_synced",
        ("pyspark",),
    ),
    Contestant(
        "rdd",
        "PySpark RDD",
        "`textFile`, `filter` with a lambda, `saveAsTextFile`",
        "bench.ingesting.with_spark:rdd",
        ("pyspark",),
        share=0.25,
    ),
    Contestant(
        "polars",
        "Polars, streaming",
        "`scan_lines`, `filter`, `sink_csv`",
        "bench.ingesting.with_polars:streaming",
        ("polars",),
        PEERS,
    ),
    Contestant(
        "duckdb",
        "DuckDB",
        "`COPY (SELECT … FROM read_csv …) TO`, a file for each thread",
        "bench.ingesting.with_duckdb:copy",
        ("duckdb",),
        PEERS,
    ),
    Contestant(
        "bytewax",
        "Bytewax",
        "`FileSource`, `filter` with a lambda, `FileSink`; a file has one reader",
        "bench.ingesting.with_bytewax:dataflow",
        ("bytewax",),
        PEERS,
        share=0.125,
        one_core=True,
    ),
    Contestant(
        "beam",
        "Beam, direct runner",
        "`ReadFromText`, `Filter` with a lambda, `WriteToText`; a process for each core",
        "bench.ingesting.with_beam:direct",
        ("apache-beam",),
        BEAM,
        share=0.125,
    ),
    Contestant(
        "apex",
        "Apache Apex",
        "`FileSplitterInput`, block readers of lines, a filter and a file writer in each reader's thread, local mode; "
        "its **inner rate** is that from its first record to its last, without launch and shutdown",
        "bench.ingesting.with_apex:local",
        environment=APEX,
        share=0.25,
        repeats=2,
    ),
    Contestant(
        "kernel",
        "dagkit's kernel",
        "reads chunks, finds line ends, copies the kept lines, writes once for each chunk; no Spark",
        "bench.ingesting.by_hand:kernel",
        ("pyarrow", "numpy"),
        one_core=True,
    ),
    Contestant(
        "kernel-cores",
        "dagkit's kernel, every core",
        "the same with a process for each core: the upper bound for dagkit on this machine",
        "bench.ingesting.by_hand:kernel_on_every_core",
        ("pyarrow", "numpy"),
    ),
    Contestant("grep", "`grep -v`", "`LC_ALL=C grep -v '^\\.'`", "bench.ingesting.by_hand:grep", one_core=True),
    Contestant(
        "hand-loop",
        "a loop by hand",
        "reads the blocks line by line, decodes, calls the same lambda, writes the same files",
        "bench.ingesting.by_hand:hand_loop",
        one_core=True,
    ),
)

NAMES = tuple(contestant.name for contestant in CONTESTANTS)
