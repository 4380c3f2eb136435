"""All benchmarks, one after the other, each in a process of its own; those with a part of the page write it."""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bench._page import ROOT

WRITE = "--write-docs"
BENCHMARKS: dict[str, tuple[str, ...]] = {
    "ingest": ("--rounds", "1", "--runs", "7", WRITE),
    "claims": ("--rounds", "30", WRITE),
    "figures": (WRITE,),
    "skew": ("--rounds", "1", WRITE),
    "scale": ("--rounds", "1", "--most", "8", WRITE),
    "finding": ("--rounds", "5", WRITE),
    "compression": ("--rounds", "5", WRITE),
    "copying": ("--rounds", "5", WRITE),
    "formats": ("--rows", "1000000", WRITE),
    "tables": (WRITE,),
    "kafka": ("--messages", "500000", "--rounds", "3", WRITE),
    "small_files": ("--rounds", "1", WRITE),
    "launches": (WRITE,),
    "executors": (WRITE,),
    "console": (WRITE,),
    "window": (),
    "exchange": (),
    "state": (),
    "memory": ("--gib", "1", "4"),
    "compile": (),
    "ledger": ("--longest", "10000"),
}
"""What runs, with sizes with which all of them together take less than 40 minutes on two cores."""


def main(arguments: Sequence[str]) -> int:
    """Run them; return 1 if one missed a bound or failed."""
    parser = argparse.ArgumentParser(prog="python -m bench every", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), metavar="NAME")
    asked = parser.parse_args(arguments)
    codes = {name: _run(name) for name in asked.only}
    print("\n".join(_lines(codes)))
    return int(any(code for code, _ in codes.values()))


def _run(name: str) -> tuple[int, float]:
    """The exit code and the seconds of a benchmark."""
    print(f"\n== {name}", flush=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "bench", name, *BENCHMARKS[name]]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own module
    return code, time.monotonic() - began


def _lines(codes: dict[str, tuple[int, float]]) -> Iterator[str]:
    yield f"\n{'':<16}{'seconds':>8}"
    words = {0: "", 1: "a bound was missed"}
    for name, (code, seconds) in codes.items():
        yield f"{name:<16}{seconds:>8.0f}  {words.get(code, f'failed with {code}')}".rstrip()
    yield f"{'together':<16}{sum(seconds for _, seconds in codes.values()):>8.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
