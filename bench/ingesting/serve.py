"""The process of a contestant: `python -m bench.ingesting.serve MODULE:FUNCTION PACKAGE…`.

It reads lines of JSON, `{"source": …, "target": …}`, and answers each with `{"seconds": …, "inner": …, "versions": …}`
when the function has written the kept lines of `source` to the folder `target`. `inner` is what the function returns:
None, or the part of the seconds between its first record and its last. This module needs only the standard library,
because the environments of contestants do not contain dagkit. What a contestant prints goes to stderr.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import cast

Ingest = Callable[[Path, Path], float | None]


def main(arguments: list[str]) -> int:
    """Answer questions until there are no more."""
    call, *packages = arguments
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as answers:
        os.dup2(2, 1)
        ingest = _found(call)
        for question in sys.stdin:
            asked = json.loads(question)
            begun = time.perf_counter()
            inner = ingest(Path(asked["source"]), Path(asked["target"]))
            seconds = time.perf_counter() - begun
            versions = {package: metadata.version(package) for package in packages}
            print(json.dumps({"seconds": seconds, "inner": inner, "versions": versions}), file=answers)
    return 0


def _found(call: str) -> Ingest:
    module, _, function = call.partition(":")
    return cast("Ingest", getattr(import_module(module), function))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
