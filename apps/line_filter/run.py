"""Runs the application on your text, or on a generated sample, and shows the result.

    python -m apps.line_filter.run [TEXT]

All its files are in the folder `run`, under the name of the text; a second run finds that the text was read already.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
HOME = Path("run")
LINES = 1_000_000
SHOWN = 5


def main(arguments: Sequence[str]) -> int:
    """Run the commands; return the exit code of the first that fails, else 0."""
    if arguments and not Path(arguments[0]).is_file():
        print(f"there is no file {arguments[0]!r} to read", file=sys.stderr)  # noqa: T201
        return 2
    text = Path(arguments[0]) if arguments else made(HOME / "lines.txt")
    place = HOME / text.name.replace(".", "-")
    application, output, ledger = os.path.relpath(HERE), place / "output", str(place / "ledger")
    settings = {
        "dt.operator.File-splitter.prop.scanner.files": text.absolute(),
        "dt.operator.Record-writer.prop.filePath": output,
        "dt.operator.Block-reader.prop.minReaders": os.cpu_count(),
        "dt.operator.File-splitter.prop.blockSize": 16 << 20,
    }
    definitions = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    return (
        typed("launch", application, "--once", "-v", "--path", ledger, *definitions)
        or shown(output)
        or typed("ledger", "ls", ledger)
        or typed("ledger", "verify", ledger)
    )


def made(text: Path) -> Path:
    """Generate a text of some hundred megabytes; every tenth line begins with a dot."""
    if not text.exists():
        text.parent.mkdir(parents=True, exist_ok=True)
        print(f"generating {text}: {LINES:,} lines, every tenth of which begins with a dot")  # noqa: T201
        unfinished = text.with_suffix(".making")
        with unfinished.open("w", encoding="utf-8") as lines:
            for number in range(LINES):
                lines.write(
                    f"{'.' if number % 10 == 0 else ''}line {number:08} {'of a text that goes on and on ' * 3}\n"
                )
        unfinished.replace(text)
    return text


def typed(*words: str) -> int:
    """Print and run a dagkit command; only that command receives interrupts."""
    print(f"\n$ dagkit {shlex.join(words)}", flush=True)  # noqa: T201
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command = [sys.executable, "-m", "dagkit.cli", *words]
        return subprocess.Popen(command, preexec_fn=_interruptible).wait()  # noqa: S603, PLW1509 - one thread here
    finally:
        signal.signal(signal.SIGINT, before)


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def shown(output: Path) -> int:
    """Print the first lines of the output."""
    files = sorted(output.iterdir(), key=lambda file: int(file.name, 16)) if output.is_dir() else []
    if not files:
        print("\nno line was kept")  # noqa: T201
        return 0
    print(f"\n{len(files)} files in {output}, a file for each block; {files[0].name} begins with:")  # noqa: T201
    with files[0].open(encoding="utf-8", errors="replace") as lines:
        for line, _ in zip(lines, range(SHOWN), strict=False):
            print(f"    {line.rstrip()[:100]}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
