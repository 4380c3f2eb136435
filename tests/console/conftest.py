"""A console that is served over a finished run, and requests to it."""

import json
import shutil
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import parse_qs, urlsplit

import pytest

from bench.console import grow
from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import Console
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit_operators import FileSplitterInput, Filter, LineReader, PartWriter
from tests.old_files import aged
from tests.patience import within

FILES, LINES = 3, 20
MANY = 1_250
"""Windows of a long run."""
PAGE_MILLIS = within(10) * 1000
"""How long a test waits for something on a page."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NOTED = """
window.violations = [];
const note = (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`);
document.addEventListener("securitypolicyviolation", note);
"""
"""Notes what the content security policy forbids."""


def copying(dag, conf):
    """Reads files, drops every line that ends with 3, and writes the others."""
    splitter = dag.add_operator("Splitter", FileSplitterInput(blocks_threshold=1))
    reader = dag.add_operator("Reader", LineReader())
    kept = dag.add_operator("Kept", Filter(lambda line: not line.endswith("3")))
    writer = dag.add_operator("Writer", PartWriter())
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, kept.input)
    dag.add_stream("kept", kept.output, writer.input)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self):
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Served:
    """A running console."""

    url: str

    @property
    def address(self):
        return urlsplit(self.url).netloc

    @property
    def token(self):
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def request(self, path, headers=None, *, method="GET"):
        """Send a request; without headers, with the token in one."""
        connection = HTTPConnection(self.address, timeout=within(30))
        headers = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        try:
            connection.request(method, path, headers=headers)
            response: HTTPResponse = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def answer(self, name):
        """The document of an answer below `/api/v1/`."""
        answer = self.request(f"/api/v1/{name}")
        assert answer.status == 200, answer.body
        return answer.document


def run_copying(folder):
    """Read three files in as many windows; return the application's folder."""
    (folder / "in").mkdir()
    for file in range(FILES):
        (path := folder / "in" / f"{file}.txt").write_text("".join(f"{file}-{line}\n" for line in range(LINES)))
        aged(path)
    return again(folder)


def again(folder):
    """Read what is new in the folder; return the application's folder."""
    settings = {
        "dt.operator.Splitter.prop.scanner.files": str(folder / "in"),
        "dt.operator.Writer.prop.filePath": str(folder / "out"),
        "dt.attr.APPLICATION_NAME": "Copying",
        "dt.operator.Reader.attr.MEMORY_MB": "512",
    }
    launch(copying, settings, until="once", machine=Machine("reference"), path=folder / "run")
    return folder / "run"


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of an application that ran."""
    return run_copying(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="session")
def long(tmp_path_factory):
    """A finished run of many windows."""
    finished = run_copying(tmp_path_factory.mktemp("long"))
    grow(Ledger.open(finished, durable=False).chain("Copying"), MANY)
    return RunFolder(str(finished))


@pytest.fixture(scope="session")
def serve():
    """A function that serves a folder within a block."""

    def served(place, **options):
        return Console(RunFolder(str(place)), **options).served()

    return served


@pytest.fixture(scope="session")
def console(finished, serve):
    """A console over the finished run."""
    with serve(finished) as url:
        yield Served(url)


@pytest.fixture(scope="session")
def browser():
    """A real browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no browser driver: pip install 'dagkit[dev]'")
    if CHROMIUM is None:
        pytest.skip("there is no browser: apt-get install chromium")
    playwright.expect.set_options(timeout=PAGE_MILLIS)
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def opening(browser):
    """A function that opens an address in a browser of its own; in the end, no page has broken a rule."""
    pages, raised = [], list[str]()

    def open_page(url, **options):
        context = browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(PAGE_MILLIS)
        page.add_init_script(NOTED)
        page.on("pageerror", lambda error: raised.append(str(error)))
        page.goto(url)
        pages.append((context, page))
        return page

    yield open_page
    for context, page in pages:
        assert page.evaluate("violations") == []
        context.close()
    assert raised == []


@pytest.fixture
def open_page(browser):
    """A function that opens an address in a browser of its own."""
    with opening(browser) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def finished_page(browser, console):
    """A page of the finished run, which tests share."""
    with opening(browser) as open_page:
        yield open_page(console.url)


SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .filter((fault) => ["serious", "critical"].includes(fault.impact)).map((fault) => [fault.id, fault.nodes[0].html])"""


def serious_faults(page):
    """The serious faults of accessibility on a page, each with an element."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe-core: pip install 'dagkit[dev]'")
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.AXE_SCRIPT)
    return page.evaluate(SERIOUS)
