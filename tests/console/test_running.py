"""The console of a running application: its page moves, and its button stops the run, with the token only."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dagkit.engine.record.history import newest_checkpoint
from dagkit.engine.record.status_file import read_status
from dagkit.ledger import Ledger
from tests.console.conftest import PAGE_MILLIS, Served, serious_faults
from tests.patience import PATIENT, within
from tests.processes import killed_after

playwright = pytest.importorskip("playwright.sync_api", reason="no browser driver: pip install 'dagkit[dev]'")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ENDLESS = """
from dagkit import InputOperator, InputPort, Operator, OutputPort, State

class Count(InputOperator):
    kind = "console.count/1"
    output = OutputPort(int)
    sent = State(0)

    def emit_tuples(self) -> None:
        self.sent += 1
        self.output.emit(self.sent)

class Sum(Operator):
    kind = "console.sum/1"
    input = InputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item

def populate_dag(dag, conf) -> None:
    dag.add_operator("Count", Count()) >> dag.add_operator("Sum", Sum())
"""


@pytest.fixture
def run(tmp_path):
    """A function that launches an application without an end, with a console."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    launched = []

    def launch(*options):
        command = [sys.executable, "-m", "dagkit.cli", "launch", "endless.py", "--reference", "--path", "run", *options]
        own = {"PYTHONPATH": f"{ROOT}:{ROOT / 'operators'}", "HOME": str(tmp_path), **PATIENT}
        process = subprocess.Popen(  # noqa: S603 - this very Python
            command, cwd=tmp_path, env=own, stderr=subprocess.PIPE, text=True
        )
        launched.append(process)
        with killed_after(process):
            line = next(line for line in process.stderr if line.startswith("console: "))
        return process, Served(line.removeprefix("console: ").strip())

    yield launch
    for process in launched:
        process.kill()
        process.communicate(timeout=within(30))


@pytest.mark.trial
def test_the_page_of_a_running_application_moves(run, open_page):
    _, console = run("--console")
    page = open_page(console.url)
    playwright.expect(page.locator("#state")).to_have_text("running")
    window = page.locator(".figures dd").first
    playwright.expect(window).not_to_have_text(window.inner_text())
    playwright.expect(page.locator(".figures").first).to_contain_text("In progress")
    assert page.get_by_role("button", name="Stop").count() == 0
    assert serious_faults(page) == []
    page.evaluate("location.hash = '#/windows'")
    newest = page.locator("td a").first
    newest.wait_for()
    playwright.expect(newest).not_to_have_text(newest.inner_text(), timeout=6 * PAGE_MILLIS)
    page.evaluate("location.hash = '#/graph'")
    playwright.expect(page.locator("svg .live").first).to_be_visible()
    assert serious_faults(page) == []


def test_the_page_of_a_killed_driver_says_that_it_has_no_answer_until_the_next_one_serves_it(run, open_page):
    process, console = run("--console")
    page = open_page(console.url)
    state = playwright.expect(page.locator("#state"))
    state.to_have_text("running")
    process.kill()
    state.to_have_text("no answer")
    playwright.expect(page.locator("#beat")).to_contain_text("Last seen running")
    health = playwright.expect(page.locator(".health"))
    health.to_contain_text("the driver may have been killed")
    health.not_to_contain_text("Keeping up")
    run("--console")
    state.to_have_text("running")


def test_a_console_beside_the_run_names_a_killed_driver_and_the_window_after_which_the_next_launch_resumes(
    run, open_page, serve, tmp_path
):
    process, _ = run("--console")
    with serve(tmp_path / "run") as url:
        page = open_page(url)
        state = playwright.expect(page.locator("#state"))
        state.to_have_text("running")
        process.kill()
        state.to_have_text("killed")
        last = newest_checkpoint(Ledger.open(tmp_path / "run")).window
        killed = playwright.expect(page.locator(".health .amiss"))
        killed.to_contain_text(re.compile(rf"was killed at about \d+:\d\d:\d\d.*resumes after window {last:,},"))


def test_the_log_grows_in_the_page_and_items_of_a_stream_are_shown(run, open_page):
    _, console = run("--console")
    page = open_page(console.url)
    page.evaluate("location.hash = '#/log/all'")
    newest = page.locator("tbody tr").first
    playwright.expect(newest).to_contain_text("info")
    playwright.expect(newest).not_to_have_text(newest.inner_text(), timeout=PAGE_MILLIS)
    assert serious_faults(page) == []
    page.evaluate("location.hash = '#/log/error'")
    playwright.expect(page.locator(".listing p")).to_contain_text("The log has no such line")
    page.evaluate("location.hash = '#/graph'")
    page.locator(".canvas").get_by_role("button", name=re.compile("^Count")).press("Enter")
    page.get_by_role("button", name="Show items").click()
    playwright.expect(page.locator(".tap td.path").first).to_have_text(re.compile(r"^\d+$"))
    assert serious_faults(page) == []


def test_items_that_are_shown_again_are_asked_for_once_at_a_time(run, open_page):
    _, console = run("--console")
    page, held = open_page(console.url), []

    def hold(route):
        held.append(route)

    page.route(re.compile("/api/v1/tap"), hold)
    page.evaluate("location.hash = '#/graph'")
    page.locator(".canvas").get_by_role("button", name=re.compile("^Count")).press("Enter")
    for name in ("Show items", "Stop", "Show items"):
        page.get_by_role("button", name=name).click()
    with page.expect_response(re.compile("/api/v1/tap")):
        held[0].fulfill(json={"rows": [], "window": 1})
    page.get_by_role("button", name="Stop").click()
    assert len(held) == 2


def test_the_button_stops_the_run_and_the_page_shows_that(run, open_page, tmp_path):
    process, console = run("--console", "--allow-control")
    page = open_page(console.url)
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    stop.click()  # it asks first
    process.communicate(timeout=within(30))
    assert process.returncode == 0
    playwright.expect(page.locator("#state")).to_have_text("stopped")
    assert read_status(Ledger.open(tmp_path / "run").store).state == "stopped"


@pytest.mark.parametrize("allowed", [True, pytest.param(False, marks=pytest.mark.trial)])
def test_nothing_stops_the_run_but_the_token_with_the_permission(run, allowed):
    process, console = run("--console", *(["--allow-control"] if allowed else []))
    page = {"Origin": f"http://{console.address}", "Content-Type": "application/json"}
    for headers in ({}, page, {**page, "Cookie": "dagkit_console=x"}, {"Authorization": "Bearer x"}):
        assert console.request("/api/v1/stop", headers, method="POST").status == 401
    foreign = {"Authorization": f"Bearer {console.token}", "Origin": "http://attacker.example"}
    assert console.request("/api/v1/stop", foreign, method="POST").status == 403
    assert console.request("/api/v1/stop").status == 405
    assert process.poll() is None
    if not allowed:
        assert console.request("/api/v1/stop", method="POST").status == 403
        return
    while (answer := console.request("/api/v1/stop", method="POST")).status == 409:
        assert process.poll() is None, "the run has not begun yet"
    assert answer.status == 202
    process.communicate(timeout=within(30))
    assert process.returncode == 0
