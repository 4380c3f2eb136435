"""The pictures of the documents: each view of the console has one."""

import re
import struct
import zlib

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
