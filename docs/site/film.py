"""Films the console for README: `python docs/site/film.py`.

It launches an application that reads orders, and takes a picture of the console each second until the launch has ended.
The film is an animated PNG, which browsers play. It needs Chromium and `pip install 'dagkit[dev]'`.
"""

import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path

from photograph import IMAGES, SHOP, write_orders
from playwright.sync_api import Page, sync_playwright

from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import Console

WIDTH, HEIGHT = 900, 560
FILES, ORDERS = 40, 40_000
SIGNATURE = b"\x89PNG\r\n\x1a\n"
LAST_MILLIS = 4000
"""How long the last picture stays."""


def main(images: Path) -> None:
    """Launch the application in an empty folder, and film the console meanwhile."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        Path("orders").mkdir()
        Path("shop.py").write_text(
            SHOP.replace("8700", "none").replace("def shop", "def populate_dag"), encoding="utf-8"
        )
        for number in range(FILES):
            write_orders(number, ORDERS)
        settings = ["-D", "dt.attr.APPLICATION_NAME=Shop", "-D", "dt.attr.STREAMING_WINDOW_SIZE_MILLIS=500"]
        command = [sys.executable, "-m", "dagkit.cli", "launch", "shop.py", "--once", "--reference", *settings]
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launch:  # noqa: S603 - as above
                pictures = list(taken(page, launch))
            browser.close()
        (images / "console.png").write_bytes(animated(pictures, millis=500))


def taken(page: Page, launch: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """Pictures of the console, one a second, and one after the launch has ended."""
    while not Path(".dagkit/Shop/status.json").exists() and launch.poll() is None:
        time.sleep(0.1)
    with Console(RunFolder(".dagkit/Shop")).served() as url:
        page.goto(url)
        page.locator(".view.overview").first.wait_for()
        while launch.poll() is None:
            yield page.screenshot(animations="disabled")
            page.wait_for_timeout(1000)
        page.wait_for_timeout(3000)
        yield page.screenshot(animations="disabled")


def animated(pictures: Sequence[bytes], millis: int) -> bytes:
    """An animated PNG of pictures of one size, shown for so long each."""
    header, numbers = next(data for kind, data in chunks(pictures[0]) if kind == b"IHDR"), iter(range(1 << 20))
    film = SIGNATURE + chunk(b"IHDR", header) + chunk(b"acTL", struct.pack(">II", len(pictures), 0))
    for number, picture in enumerate(pictures, 1):
        shown = LAST_MILLIS if number == len(pictures) else millis
        frame = struct.pack(">IIIIIHHBB", next(numbers), *struct.unpack(">II", header[:8]), 0, 0, shown, 1000, 0, 0)
        film += chunk(b"fcTL", frame)
        for data in (data for kind, data in chunks(picture) if kind == b"IDAT"):
            later = number > 1
            film += chunk(b"fdAT", struct.pack(">I", next(numbers)) + data) if later else chunk(b"IDAT", data)
    return film + chunk(b"IEND", b"")


def chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kinds and the data of the chunks of a PNG."""
    at = len(SIGNATURE)
    while at < len(picture):
        size, kind = struct.unpack_from(">I4s", picture, at)
        yield kind, picture[at + 8 : at + 8 + size]
        at += 12 + size


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
