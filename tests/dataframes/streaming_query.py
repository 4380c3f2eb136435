"""A query of Structured Streaming in a process of its own, so that a test can kill it.

Its arguments are a folder, and how many bytes a micro-batch reads at most; by default, one reads all.
"""

import sys
from pathlib import Path

from dagkit.backends.spark import local_session
from dagkit.dataframes import register


def main(home: Path, most_bytes: str = str(sys.maxsize)) -> None:
    """Read what is available, block by block, and write it to Parquet files."""
    spark = local_session(2)
    register(spark)
    source = spark.readStream.format("dagkit").option("ledger", str(home / "ledger"))
    lines = source.option("input.block_size", "512").option("maxBytesPerTrigger", most_bytes).load(str(home / "in"))
    query = lines.writeStream.format("parquet").option("path", str(home / "out"))
    query = query.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True)
    query.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
