"""Photographs views of the console for the documents: `python docs/site/photograph.py`.

It launches an application that reads orders, one file a launch; the third launch fails. The pictures are what the
console shows of that now. It needs Chromium and `pip install 'dagkit[dev]'`.
"""

import importlib
import os
import random
import shutil
import sys
import tempfile
import time
from contextlib import chdir, nullcontext, suppress
from pathlib import Path

from playwright.sync_api import sync_playwright

from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import Console
from dagkit.engine.program.failures import OperatorFailed
from dagkit.launching import Machine, launch

IMAGES = Path(__file__).parents[1] / "images"
VIEWS = {
    "overview": "overview",
    "graph": "graph",
    "work": "work",
    "log": "log",
    "compare": "compare/windows/1/3",
}
"""The views, and where each is."""
WIDTH, HEIGHT = 1200, 720
ORDERS = 4000
"""How many orders a file has."""
SETTINGS = {"dt.attr.APPLICATION_NAME": "Shop", "dt.attr.STREAMING_WINDOW_SIZE_MILLIS": "200"}
SHOP = """\
import logging

from dagkit import Config, Dag
from dagkit_operators import FileSplitterInput, Filter, LineReader, Map, PartWriter

log = logging.getLogger("shop")


def amount(line: str) -> float:
    number, text = line.split(",")
    if number == "8700":
        raise RuntimeError(f"order {number} has no customer")
    return float(text)


def fee(value: float) -> float:
    if value > 999.5:
        log.warning("a large amount: %s", value)
    return round(value * 0.02, 2)


def shop(dag: Dag, conf: Config) -> None:
    split = dag.add_operator("Find orders", FileSplitterInput(scanner={"files": ["orders"]}))
    read = dag.add_operator("Read orders", LineReader())
    amounts = dag.add_operator("Amount", Map(amount))
    large = dag.add_operator("Large", Filter(lambda value: value > 10))
    fees = dag.add_operator("Fee", Map(fee))
    split >> read >> amounts >> large >> fees >> dag.add_operator("Write fees", PartWriter("fees", format=str))
    amounts.rejected >> dag.add_operator("Write rejected", PartWriter("rejected", format=str))
"""


def main(images: Path) -> None:
    """Launch the application in an empty folder, and photograph the console."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        Path("orders").mkdir()
        Path("shop.py").write_text(SHOP, encoding="utf-8")
        sys.path.insert(0, name)
        shop = importlib.import_module("shop").shop
        for day in range(3):
            write_orders(day)
            with suppress(OperatorFailed) if day == 2 else nullcontext():
                launch(shop, SETTINGS, until="once", machine=Machine("reference"), path=".dagkit/Shop")
        with Console(RunFolder(".dagkit/Shop")).served() as url:
            photograph(url, images)


def write_orders(day: int) -> None:
    """Write a file of orders, as if it were a minute old."""
    drawn = random.Random(day)  # noqa: S311 - amounts of a picture
    numbers = range(day * ORDERS, (day + 1) * ORDERS)
    amounts = ("unknown" if drawn.random() < 0.002 else f"{drawn.random() * 1000:.2f}" for _ in numbers)
    path = Path(f"orders/{day}.csv")
    path.write_text("".join(f"{number},{amount}\n" for number, amount in zip(numbers, amounts, strict=True)))
    os.utime(path, (time.time() - 60,) * 2)


def photograph(url: str, images: Path) -> None:
    """Save a picture of each view."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(url)
        for name, view in VIEWS.items():
            page.evaluate("view => { location.hash = `#/${view}`; }", view)
            page.locator(f".view.{name} :is(table, .chart, svg)").first.wait_for()
            page.wait_for_load_state("networkidle")
            page.screenshot(path=images / f"console-{name}.png", animations="disabled")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
