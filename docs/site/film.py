"""Films a launch in a terminal for README: `python docs/site/film.py`.

It launches an application that reads some hundred MB with several partitions on a local Spark, and records what the
terminal shows. `docs/images/launch.svg` is an SVG that browsers play, with styles of its own, and without scripts.
"""

import os
import pty
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir
from html import escape
from itertools import pairwise
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"
COLUMNS, ROWS = 112, 22
SECONDS, LAST_SECONDS = 17.0, 3.0
"""How long the film lasts, and its last picture of that."""
FILES, COPIES = 40, 8
"""How many files there are, and how many times each holds the same megabyte."""
COMMAND = "dagkit launch shop.py --until-idle --cores 4"
SHOP = """\
from dagkit import Config, Dag, PortContext, StreamingApplication
from dagkit_operators import FileSplitterInput, Filter, LineReader, Map, PartWriter


def amount(line: str) -> float:
    return float(line.partition(",")[2])


class Shop(StreamingApplication):
    def populate_dag(self, dag: Dag, conf: Config) -> None:
        split = dag.add_operator("Find orders", FileSplitterInput(scanner={"files": ["orders"]}, blocks_threshold=4))
        read = dag.add_operator("Read orders", LineReader(max_readers=4))
        amounts = dag.add_operator("Amount", Map(amount))
        large = dag.add_operator("Large", Filter(lambda value: value > 990))
        write = dag.add_operator("Write", PartWriter("large", format=str))
        for operator in (amounts, large, write):  # each has as many partitions as the reader, in one process
            dag.set_input_port_attribute(operator.input, PortContext.PARTITION_PARALLEL, True)
        split >> read >> amounts >> large >> write
"""
CONTROL = re.compile(r"\x1b\[(?P<number>[\d;?]*)(?P<letter>[A-Za-z])|\r|\n|[^\x1b\r\n]+")
CHARACTER, LINE, MARGIN = 7.83, 18, 16
"""Sizes in the drawing: a character's width, a line's height, and the margin."""
STYLE = """\
    text { font: 13px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d5dae1; white-space: pre; }
    g.frame { visibility: hidden; animation-duration: %ss; animation-iteration-count: infinite;
      animation-timing-function: step-end; }
    @media (prefers-reduced-motion: reduce) { g.frame { animation: none; } g.last { visibility: visible; } }
"""

Screen = tuple[str, ...]
"""The lines that a terminal shows."""


def main(images: Path) -> None:
    """Launch the application in an empty folder, and write the film."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        Path("orders").mkdir()
        Path("shop.py").write_text(SHOP, encoding="utf-8")
        some = "".join(f"{number},{number * 7919 % 100_000 / 100:.2f}\n" for number in range(80_000))
        for number in range(FILES):
            Path(f"orders/{number}.csv").write_text(some * COPIES, encoding="utf-8")
            os.utime(f"orders/{number}.csv", (time.time() - 60,) * 2)
        output = list(recorded([sys.executable, "-m", "dagkit.cli", *COMMAND.split()[1:]]))
    (images / "launch.svg").write_text(film(timed(screens(output))), encoding="utf-8")


def recorded(command: list[str]) -> Iterator[tuple[float, str]]:
    """Run a command in a terminal; yield what it prints, each time with the seconds since its start."""
    child, terminal = pty.fork()
    if child == 0:
        size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
        os.execvpe(command[0], command, {**os.environ, **size})  # noqa: S606 - the command above
    began = time.monotonic()
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # its end, on Linux
            break
        yield time.monotonic() - began, data.decode(errors="replace")
    os.waitpid(child, 0)


def screens(output: Iterable[tuple[float, str]]) -> Iterator[tuple[float, Screen]]:
    """What the terminal shows after each piece of output: of control sequences, it knows those that rich writes."""
    lines, row, column = [f"$ {COMMAND}", ""], 1, 0
    yield 0.0, tuple(lines)
    for at, text in output:
        for found in CONTROL.finditer(text):
            number = int(found["number"]) if (found["number"] or "").isdecimal() else 1
            match found["letter"] or found[0]:
                case "\n":
                    row, column = row + 1, 0
                    lines += [""] * (row + 1 - len(lines))
                case "\r":
                    column = 0
                case "A" if found["letter"]:
                    row = max(0, row - number)
                case "K" if found["letter"]:
                    lines[row] = ""
                case shown if not found["letter"]:
                    lines[row] = lines[row][:column].ljust(column) + shown + lines[row][column + len(shown) :]
                    column += len(shown)
        while not lines[-1] and len(lines) > row + 1:
            lines.pop()
        yield at, tuple(lines[-ROWS:])


def timed(shown: Iterable[tuple[float, Screen]]) -> list[tuple[float, Screen]]:
    """The screens that say something new, each with its begin, so that the film lasts SECONDS: pauses become short."""
    different: list[tuple[float, Screen]] = []
    for at, screen in shown:
        if different and (at - different[-1][0] < 0.3 or _news(screen) == _news(different[-1][1])):
            different[-1] = (different[-1][0], screen)
        else:
            different.append((at, screen))
    pauses = [min(after - before, 1.5) for (before, _), (after, _) in pairwise(different)]
    scale = min(1.0, (SECONDS - LAST_SECONDS) / sum(pauses)) if pauses else 1.0
    begins = [scale * sum(pauses[:index]) for index in range(len(different))]
    return [(begin, screen) for begin, (_, screen) in zip(begins, different, strict=True)]


def _news(screen: Screen) -> str:
    """A screen without the seconds that only go on."""
    return re.sub(r"\d+ s\b", "", "\n".join(screen))


def film(frames: Sequence[tuple[float, Screen]]) -> str:
    """An SVG that shows each frame from its begin on, and begins again."""
    whole = frames[-1][0] + LAST_SECONDS
    ends = [*(begin for begin, _ in frames[1:]), whole]
    width, height = round(COLUMNS * CHARACTER) + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    styles, groups = [STYLE % f"{whole:.2f}"], []
    for number, ((begin, screen), end) in enumerate(zip(frames, ends, strict=True)):
        first, last = 100 * begin / whole, 100 * end / whole
        styles.append(
            f"    @keyframes f{number} {{ 0% {{ visibility: {'hidden' if begin else 'visible'}; }} "
            f"{first:.3f}% {{ visibility: visible; }} {last:.3f}%, 100% {{ visibility: hidden; }} }}\n"
        )
        texts = "".join(
            f'<text x="{MARGIN}" y="{MARGIN + LINE * (row + 1) - 5}">{escape(line[:COLUMNS].rstrip())}</text>'
            for row, line in enumerate(screen)
            if line.strip()
        )
        kind = "frame last" if number == len(frames) - 1 else "frame"
        groups.append(f'  <g class="{kind}" style="animation-name: f{number}">{texts}</g>\n')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"  <title>dagkit launch: windows, partitions and the rows of each second</title>\n"
        f"  <style>\n{''.join(styles)}  </style>\n"
        f'  <rect width="{width}" height="{height}" rx="8" fill="#151a21"/>\n{"".join(groups)}</svg>\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
