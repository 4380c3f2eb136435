"""What the console needs, and what its files hold."""

import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dagkit.console import serving
from dagkit.console.run_folder import RunFolder
from dagkit.errors import RunFailure
from dagkit.render import content
from tests.console.conftest import Served

STATIC = Path(serving.__file__).parent / "static"


@pytest.mark.parametrize("library", ["uvicorn", "starlette"])
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with (
        pytest.raises(RunFailure, match=r"\[library-missing\]") as missing,
        serving.Console(RunFolder(str(tmp_path))).served(),
    ):
        pass
    assert (missing.value.code, missing.value.help) == ("library-missing", "run: pip install 'dagkit[console]'")
    assert library in missing.value.problem


@pytest.mark.parametrize("address", ["127.0.0.1", "no-such-host.invalid"])
def test_an_address_that_cannot_be_had_is_reported(tmp_path, address):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        console = serving.Console(RunFolder(str(tmp_path)))
        with pytest.raises(RunFailure, match=f"the console cannot be served at {address}:{port}"):
            console.served(port, address).__enter__()


def test_an_address_of_the_sixth_version_is_called_in_brackets(tmp_path):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no ::1")
    with serving.Console(RunFolder(str(tmp_path))).served(address="::1") as url:
        assert url.startswith("http://[::1]:")


@pytest.mark.parametrize("name", ["console.html", "applications.html"])
def test_the_page_names_nothing_on_other_servers_and_holds_no_code(name):
    page = (STATIC / name).read_text()
    assert re.findall(r'(?:src|href)="(?!/static/|#)', page) == []
    assert re.findall(r"<style|<script>| style=| on\w+=|javascript:", page) == []
    own = [path for path in STATIC.iterdir() if path.suffix in (".js", ".css") and not path.name.startswith("uPlot")]
    texts = {path.name: path.read_text() for path in own}
    named = re.compile(r"https?://(?!www\.w3\.org/)|@import|innerHTML|outerHTML|insertAdjacentHTML|eval\(|new Function")
    assert {name: named.findall(text) for name, text in texts.items()} == {name: [] for name in texts}


def test_the_page_loads_all_its_modules_at_once():
    named = set(
        re.findall(r'(?:modulepreload" href|script src)="/static/([^"]+)"', (STATIC / "console.html").read_text())
    )
    assert named == {path.name for path in STATIC.glob("*.js")} - {"applications.js"}


def test_every_colour_of_a_drawing_has_one_in_the_page_for_light_and_dark():
    style = (STATIC / "console.css").read_text()
    tints = [*content.ROLES.values(), *content.GROUPS.values()]
    fills = {content.INK, content.MUTED, content.FAINT, content.AMISS, content.GROUND, *(tint.fill for tint in tints)}
    assert {fill for fill in fills if f'[fill="{fill}"]' not in style} == set()


def test_a_console_has_the_address_of_the_last_one_that_a_browser_opened(tmp_path):
    folder, kept = RunFolder(str(tmp_path)), tmp_path / "console.json"
    with serving.Console(folder).served() as url:
        assert not kept.exists()
        first = url
        assert Served(url).request(f"/?{urlsplit(url).query}", {}).status == 200, "as a browser opens the page"
    assert kept.stat().st_mode & 0o777 == 0o600
    with serving.Console(folder).served() as url:
        assert url == first
        with serving.Console(folder).served() as beside:
            assert (Served(beside).token, Served(beside).address == Served(url).address) == (Served(url).token, False)
    kept.chmod(0o644)
    with serving.Console(folder).served() as url:
        assert Served(url).token != Served(first).token, "other users may have read the token"
