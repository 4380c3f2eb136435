"""Photographs the views of the console for the documents: `python docs/site/photograph.py`.

It launches an application that reads orders, three files a window; the third launch fails. The pictures are what the
console shows of that now. It needs Chromium and `pip install 'dagkit[dev]'`.
"""

import base64
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import chdir
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import Console

IMAGES = Path(__file__).parents[1] / "images"
VIEWS = {
    "overview": "overview",
    "graph": "graph",
    "windows": "windows",
    "log": "log",
    "work": "work",
    "items": "items",
    "files": "files",
    "scaling": "scaling",
    "splits": "splits",
    "compare": "compare/windows/2/3",
    "configuration": "configuration",
    "ledger": "ledger",
}
"""The views, and where each is."""
WIDTH, HEIGHT = 1200, 720
FILES, ORDERS = 40, 6_000
"""How many files a launch reads, and how many orders a file has."""
CONF = {
    "dt.attr.APPLICATION_NAME": "Shop",
    "dt.attr.STREAMING_WINDOW_SIZE_MILLIS": "100",
    "dt.operator.Read orders.prop.chunkSize": "16384",
    "dt.operator.Read orders.prop.policy": "apex",
    "dt.operator.Read orders.prop.intervalMillis": "100",
    "dt.operator.Read orders.prop.maxReaders": "4",
}
SHOP = """\
import logging

from dagkit import Config, Dag
from dagkit_operators import FileSplitterInput, Filter, LineReader, Map, PartWriter

log = logging.getLogger("shop")


def amount(line: str) -> float:
    number, text = line.split(",")
    if number == "660000":
        raise RuntimeError(f"order {number} has no customer")
    return float(text)


def fee(value: float) -> float:
    if value > 999.99:
        log.warning("a large amount: %s", value)
    return round(value * 0.02, 2)


def populate_dag(dag: Dag, conf: Config) -> None:
    split = dag.add_operator("Find orders", FileSplitterInput(scanner={"files": ["orders"]}, blocks_threshold=3))
    read = dag.add_operator("Read orders", LineReader())
    amounts = dag.add_operator("Amount", Map(amount))
    large = dag.add_operator("Large", Filter(lambda value: value > 10))
    fees = dag.add_operator("Fee", Map(fee))
    split >> read >> amounts >> large >> fees >> dag.add_operator("Write fees", PartWriter("fees", format=str))
    amounts.rejected >> dag.add_operator("Write rejected", PartWriter("rejected", format=str))
"""
PIXELS = """async (picture) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
    const drawing = new OffscreenCanvas(image.width, image.height).getContext("2d");
    drawing.drawImage(image, 0, 0);
    const { data } = drawing.getImageData(0, 0, image.width, image.height);
    return Array.from({ length: image.height }, (_, row) =>
        btoa(String.fromCharCode(...data.subarray(row * image.width * 4, (row + 1) * image.width * 4))));
}"""
"""The rows of a picture, each as base64: red, green, blue and opacity of each pixel."""


def main(images: Path) -> None:
    """Launch the application in an empty folder, and photograph the console."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "shop")
        (folder / "orders").mkdir(parents=True)
        with chdir(folder):
            run()
            with Console(RunFolder(".dagkit/Shop")).served() as url:
                photograph(url, images)


def run() -> None:
    """Launch the application three times in the current folder."""
    Path("shop.py").write_text(SHOP, encoding="utf-8")
    properties = "".join(
        f"  <property><name>{key}</name><value>{value}</value></property>\n" for key, value in CONF.items()
    )
    Path("shop.xml").write_text(f"<configuration>\n{properties}</configuration>\n", encoding="utf-8")
    command = [sys.executable, "-m", "dagkit.cli", "launch", "shop.py", "--once", "--reference", "--conf", "shop.xml"]
    for day in range(3):
        write_orders(day)
        launched = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - as above
        if launched.returncode != (7 if day == 2 else 0):
            raise SystemExit(launched.stderr)


def write_orders(day: int) -> None:
    """Write files of orders, as if they were a minute old."""
    drawn = random.Random(day)  # noqa: S311 - amounts of a picture
    for part in range(FILES):
        first = (day * FILES + part) * ORDERS
        amounts = ("unknown" if drawn.random() < 0.001 else f"{drawn.random() * 1000:.3f}" for _ in range(ORDERS))
        path = Path(f"orders/{day}-{part}.csv")
        path.write_text("".join(f"{number},{amount}\n" for number, amount in enumerate(amounts, first)))
        os.utime(path, (time.time() - 60,) * 2)


def photograph(url: str, images: Path) -> None:
    """Save a picture of each view."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page, desk = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}), browser.new_page()
        page.goto(url)
        for name, view in VIEWS.items():
            page.evaluate("view => { location.hash = `#/${view}`; }", view)
            page.locator(f".view.{name} :is(table, .chart, svg)").first.wait_for()
            page.locator(".reading").wait_for(state="detached")
            page.wait_for_load_state("networkidle")
            picture = page.screenshot(animations="disabled")
            (images / f"console-{name}.png").write_bytes(indexed(pixels(desk, picture)))
        browser.close()


def pixels(desk: Page, picture: bytes) -> "np.ndarray[tuple[int, int], np.dtype[np.uint32]]":
    """The pixels of a PNG as numbers, which an empty page of the browser reads."""
    rows = [base64.b64decode(row) for row in desk.evaluate(PIXELS, base64.b64encode(picture).decode())]
    return np.array([np.frombuffer(row, dtype=">u4") >> 8 for row in rows], dtype=np.uint32)


def indexed(image: "np.ndarray[tuple[int, int], np.dtype[np.uint32]]") -> bytes:
    """A PNG with a palette: its 256 most frequent colours, and for the other ones the nearest of them."""
    colours, places, counts = np.unique(image, return_inverse=True, return_counts=True)
    parts = (colours[:, None] >> np.array([16, 8, 0], dtype=np.uint32) & 255).astype(np.int32)
    palette = parts[np.argsort(-counts)[:256]]
    nearest = np.array([np.abs(palette - colour).sum(axis=1).argmin() for colour in parts], dtype=np.uint8)
    height, width = image.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each begins with its filter: none
    rows[:, 1:] = nearest[places].reshape(height, width)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": palette.astype(np.uint8).tobytes(),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    written = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
