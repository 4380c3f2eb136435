"""The pictures of the documents: each view of the console has one, and a launch is filmed as a terminal shows it."""

import re
import struct
import zlib
from xml.etree import ElementTree as ET

import pytest

from tests.docs.fences import ROOT

IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 120_000


@pytest.fixture
def site(monkeypatch):
    """The scripts of the site can be imported."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")


def test_each_view_of_the_console_has_a_small_picture_on_its_page():
    scripts = "".join(path.read_text() for path in (ROOT / "dagkit" / "console" / "static").glob("view_*.js"))
    views = re.findall(
        r'^(?:export const \w+ = \{ |  )id: "(\w+)"|^export const \w+ = view\("(\w+)"', scripts, re.MULTILINE
    )
    views = ["".join(found) for found in views]
    shown = re.findall(r"images/console-(\w+)\.png", (ROOT / "docs" / "console.md").read_text())
    assert sorted(shown) == sorted(views)
    assert all((IMAGES / f"console-{view}.png").stat().st_size < MOST_BYTES for view in views)


def test_a_picture_is_written_with_a_palette(site):
    pytest.importorskip("playwright.sync_api", reason="no browser driver: pip install 'dagkit[dev]'")
    from photograph import indexed  # noqa: PLC0415 - it needs the folder of the site

    np = pytest.importorskip("numpy")
    image = np.array([[0xFF0000, 0x00FF00], [0xFF0000, 0x0000FF]], dtype=np.uint32)
    picture = indexed(image)
    start, palette = picture.index(b"IDAT"), picture[picture.index(b"PLTE") + 4 :]
    (size,) = struct.unpack(">I", picture[start - 4 : start])
    rows = zlib.decompress(picture[start + 4 : start + 4 + size])
    places = [rows[1], rows[2], rows[4], rows[5]]
    assert [palette[3 * at : 3 * at + 3].hex() for at in places] == ["ff0000", "00ff00", "ff0000", "0000ff"]


def test_a_terminal_shows_what_was_printed_last_on_each_line(site):
    from film import COMMAND, screens  # noqa: PLC0415 - it needs the folder of the site

    printed = [(0.5, "starting\r\none 10%\r\ntwo 20%"), (1.0, "\r\x1b[2K\x1b[1A\x1b[2Kone 90%\r\ntwo 95%")]
    shown = [screen[1:] for _, screen in screens(iter(printed))]
    assert shown == [("",), ("starting", "one 10%", "two 20%"), ("starting", "one 90%", "two 95%")]
    assert next(screens(iter(())))[1][0] == f"$ {COMMAND}"


def test_a_film_shows_one_frame_after_the_other_in_its_time(site):
    from film import LAST_SECONDS, SECONDS, film, timed  # noqa: PLC0415 - it needs the folder of the site

    frames = timed((float(at), (f"<{at}>",)) for at in (*range(0, 60, 2), 59.1))
    assert (frames[0][0], frames[-1][1]) == (0.0, ("<59.1>",))
    assert frames[-1][0] + LAST_SECONDS == pytest.approx(SECONDS)
    drawn = ET.fromstring(film(frames))  # noqa: S314 - it was made above
    groups = drawn.findall("{*}g")
    assert [group.findtext("{*}text") for group in groups] == [screen[0] for _, screen in frames]
    assert len(re.findall("@keyframes", film(frames))) == len(groups)


def test_the_film_of_readme_is_small_and_short():
    drawn = (IMAGES / "launch.svg").read_text()
    (shown,) = re.findall(r"animation-duration: ([\d.]+)s", drawn)
    assert len(drawn) < 400_000
    assert float(shown) <= 20
    assert "images/launch.svg" in (ROOT / "README.md").read_text()
