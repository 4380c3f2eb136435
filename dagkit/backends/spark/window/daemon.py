"""The process from which Spark forks its Python workers on this machine, with the modules that they need.

Spark starts it as `python -m dagkit.backends.spark.window.daemon pyspark.worker`. PySpark's own daemon imports PySpark
from an archive without bytecode, and each of its workers imports pyarrow and dagkit again.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

MODULE = __name__ if __name__ != "__main__" else "dagkit.backends.spark.window.daemon"
KEPT = "DAGKIT_KEPT_JAVA"
"""The environment variable of a Java that outlives launches. Workers do not see it."""


def without_archives(path: Sequence[str]) -> list[str]:
    """The import path without the archives of a PySpark that is also installed as a package on this path."""
    kept = []
    for entry in path:
        folder = Path(entry).parent  # pyspark/python/lib
        package = folder.parents[1] if len(folder.parents) > 1 else folder
        archive = entry.endswith(".zip") and folder.name == "lib" and package.name == "pyspark"
        if not (archive and (package / "__init__.py").is_file() and str(package.parent) in path):
            kept.append(entry)
    return kept


def without_working_folder(path: Sequence[str]) -> list[str]:
    """The import path without the working folder, which `python -m` puts first."""
    # A copy.py of the user there would hide Python's own.
    first, *others = path
    return others if os.path.realpath(first) == os.path.realpath(os.curdir) else list(path)


def main() -> None:
    """Import what workers need, then serve Spark's requests for workers."""
    whole = without_archives(sys.path)
    sys.path[:] = without_working_folder(whole)
    import gc  # noqa: PLC0415

    import pyspark.worker  # noqa: F401, PLC0415 - only now does it come from the package
    from pyspark import daemon  # noqa: PLC0415 - as above

    import dagkit.backends.spark.window.task  # noqa: F401, PLC0415 - as above

    # Operators may import modules of the working folder.
    sys.path[:] = whole
    if os.environ.pop(KEPT, None):
        from dagkit.backends.spark.session.kept_workers import prepare  # noqa: PLC0415 - as above

        prepare()
    # PySpark collects garbage in a worker after each task. Each collection would search what is loaded here, and copy
    # its memory, which a worker shares with this process.
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
