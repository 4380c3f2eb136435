"""Makes the pictures of README from a real run: `python docs/site/record.py`.

`docs/images/terminal.svg` shows what the commands below print when they run now, and `docs/images/graph.svg` the graph
of the example.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 104

MISTAKE = "dagkit validate apps/line_filter -D dt.operator.Block-reader.prop.minReader=4"
COMMANDS = (
    "dagkit validate apps/line_filter",
    MISTAKE,
    "dagkit launch apps/line_filter --once --reference",
    "cat output/0",
    "dagkit launch apps/line_filter --once --reference",
    "dagkit ledger verify .dagkit/LineFilter",
)
GRAPH = "dagkit graph --physical apps/line_filter -D dt.operator.Block-reader.prop.minReaders=4 -o graph.svg"


def main(images: Path) -> None:
    """Run the commands in an empty folder with the examples, and write the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "apps", folder / "apps")
        (folder / "input").mkdir()
        (folder / "input" / "notes.txt").write_text("kept\n.dropped\nkept, too\n", encoding="utf-8")
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        for text in lines(folder):
            console.print(text)
        images.mkdir(exist_ok=True)
        drawing = console.export_svg(title="dagkit", unique_id="terminal")
        drawing = re.sub(r"@font-face \{.*?\}", "", drawing, flags=re.DOTALL)  # nothing comes from elsewhere
        (images / "terminal.svg").write_text(drawing, encoding="utf-8")
        typed(GRAPH, folder)
        shutil.copy(folder / "graph.svg", images / "graph.svg")


def lines(folder: Path) -> Iterator[Text]:
    """What a terminal shows: each command, and what it prints."""
    for command in COMMANDS:
        yield Text.assemble(("$ ", "bold green"), (command, "bold"))
        yield Text.from_ansi(typed(command, folder))


def typed(command: str, folder: Path) -> str:
    """Everything that a command prints."""
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": str(COLUMNS)}
    answer = subprocess.run(  # noqa: S603 - the commands above
        shlex.split(command),
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if answer.returncode != (4 if command == MISTAKE else 0):
        raise SystemExit(f"{command} ends with {answer.returncode}: {answer.stdout}")
    return answer.stdout.rstrip("\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
