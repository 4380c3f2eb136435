"""The page in a real browser: what it shows, what its policy forbids, and who can use it."""

import json
import re
import shutil
from datetime import UTC, datetime

import pytest

from dagkit import InputPort, Operator
from dagkit.compiler import compile_application
from dagkit.console.serving import Console, FolderOfApplications
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.operator_output import LOG
from dagkit.engine.run.launch_record import LaunchRecord
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.render.folding import PARTS, READABLE
from dagkit_operators import FileSplitterInput, Items, LineReader, Map, Record
from tests.console.conftest import FILES, LINES, Served, again, run_copying, serious_faults
from tests.old_files import aged, old_file
from tests.render import samples

playwright = pytest.importorskip("playwright.sync_api", reason="no browser driver: pip install 'dagkit[dev]'")

COSTLY = {"content-type": "application/json", "server-timing": "cpu;dur=30"}
"""The headers of an answer that is asked for again after three seconds."""
VIEWS = ["overview", "graph", "windows", "windows/1", "ledger", "ledger/Copying", "files", "scaling", "splits", "work"]
VIEWS += ["items", "configuration", "log", "log/warning", "compare"]
pytestmark = pytest.mark.slow


def show(page, view):
    """Go to a view, and wait until it is drawn."""
    page.evaluate("view => { location.hash = `#/${view}`; }", view)
    page.locator(f".view.{view.partition('/')[0]} :is(h2, svg)").first.wait_for()


def test_a_finished_run_opens_with_the_token_which_leaves_the_address(console, open_page):
    stranger = open_page(f"http://{console.address}/")
    assert ("Copying" in stranger.content(), "token" in stranger.content()) == (False, True)
    page = open_page(console.url)
    playwright.expect(page.locator("h1")).to_have_text("Copying")
    playwright.expect(page.locator("#state")).to_have_text("stopped")
    playwright.expect(page.locator(".chart canvas").first).to_be_visible()
    figures = playwright.expect(page.locator(".figures").first)
    playwright.expect(page.locator(".health .fine")).to_contain_text("with nothing left to do")
    figures.to_contain_text(f"{FILES} elements found")
    figures.to_contain_text("1 file")
    figures.not_to_contain_text("1 files")
    assert page.url == f"http://{console.address}/"
    assert page.evaluate("document.cookie") == ""
    page.reload()
    playwright.expect(page.locator("h1")).to_have_text("Copying")


def test_windows_files_and_operators_are_opened_by_keyboard(finished_page):
    page = finished_page
    show(page, "windows")
    page.get_by_role("link", name="1", exact=True).press("Enter")
    playwright.expect(page.get_by_role("heading", name="Window 1", exact=True)).to_be_visible()
    show(page, "files")
    page.get_by_role("link", name=re.compile(r"1\.txt")).press("Enter")
    playwright.expect(page.get_by_role("heading", name="Reading 1")).to_be_visible()
    show(page, "files")
    page.get_by_role("link", name="Waiting").press("Enter")
    playwright.expect(page.locator(".view.files")).to_contain_text("No row has all of this.")
    page.get_by_role("link", name=f"Read {FILES}", exact=True).press("Enter")
    playwright.expect(page.get_by_role("link", name=re.compile(r"^\d\.txt"))).to_have_count(FILES)
    playwright.expect(page.locator(".view.files")).to_contain_text(f"{FILES} files with 270 B; nothing waits.")
    show(page, "windows")
    playwright.expect(page.get_by_role("img", name=re.compile("^Time of a window"))).to_be_visible()
    show(page, "ledger")
    page.get_by_role("link", name="Check all blocks").press("Enter")
    playwright.expect(page.locator(".view.ledger")).to_contain_text(
        "Each block has its hash, and holds the one before it."
    )
    show(page, "ledger/Splitter")
    page.get_by_role("button", name="Copy the hash").first.press("Enter")
    playwright.expect(page.locator("td.hash").first).to_have_text(re.compile("^(Copied|f1620[0-9a-f]{64})$"))
    show(page, "graph")
    page.get_by_role("button", name="Kept").press("Enter")
    playwright.expect(page.get_by_role("heading", name="Kept")).to_be_visible()
    page.get_by_role("button", name="Physical").press("Enter")
    playwright.expect(page.locator("svg.physical")).to_be_visible()


def test_the_items_of_one_operator_are_listed(finished_page):
    page = finished_page
    show(page, "items")
    playwright.expect(page.locator(".view.items")).to_contain_text("All items add up.")
    page.get_by_role("region", name="By operator").get_by_role("link", name="Kept").press("Enter")
    rows = page.get_by_role("region", name="By window").locator("tbody tr")
    playwright.expect(rows).to_have_count(FILES)
    playwright.expect(rows.first).to_contain_text("Kept")


def test_a_split_is_drawn_within_its_file(finished_page):
    page, ranges = finished_page, "(range) => [...range.children].map((part) => part.style.flexGrow)"
    show(page, "splits")
    playwright.expect(page.locator(".view.splits")).to_contain_text("Nothing was split. That is in order")
    shares = dict.fromkeys(["start_share", "at_share", "end_share"])
    rows = [
        {"window": 2, "source": "/in/a.txt", "start": 40, "at": 60, "end": 80, "slot": 0, "why": "", **shares},
        {"window": 1, "source": "/in/a.txt", "start": 0, "at": 40, "end": 100, "slot": 0, "why": "", **shares},
    ]
    page.route("**/splits?*", lambda route: route.fulfill(json={"rows": rows, "next": None, "total": 2}))
    show(page, "overview")
    show(page, "splits")
    drawn = page.get_by_role("img", name="50 % kept")
    drawn.wait_for()
    assert drawn.evaluate(ranges) == ["0.4", "0.2", "0.2", "0.2"]
    page.unroute("**/splits?*")


@pytest.mark.gate(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_serious_fault_of_accessibility(console, open_page, scheme):
    page = open_page(console.url, color_scheme=scheme)
    found = {}
    for view in VIEWS:
        show(page, view)
        found[view] = serious_faults(page)
    assert found == {view: [] for view in VIEWS}
    show(page, "graph")
    pressed = page.get_by_role("button", name="Logical")
    pressed.hover()
    colours = "(button) => [getComputedStyle(button).color, getComputedStyle(button).backgroundColor]"
    text, ground = pressed.evaluate(colours)
    assert text != ground, "it is legible below the pointer"


def test_text_from_files_is_never_code(finished_page):
    show(finished_page, f"files/{'%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E'}")
    playwright.expect(finished_page.locator("h2").first).to_have_text("<img src=x onerror=alert(1)>")
    assert finished_page.locator("main img").count() == 0


def test_a_narrow_screen_needs_no_scrolling_sideways(finished_page):
    finished_page.set_viewport_size({"width": 380, "height": 700})
    for view in VIEWS:
        show(finished_page, view)
        assert finished_page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        playwright.expect(finished_page.locator("nav [aria-current]")).to_be_in_viewport(ratio=0.9)


def test_the_log_leads_to_windows_that_are_committed(finished, serve, open_page, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    line = {"ts": "2026-01-01T12:00:00.000Z", "level": "warning", "event": "logged", "message": "slow\nand long"}
    line |= {"window": 99, "operator": "Write it"}
    with (tmp_path / "run" / LOG).open("a") as log:
        log.write(json.dumps(line) + "\n")
    with serve(tmp_path / "run") as url:
        page = open_page(url)
        for view in ("overview", "log"):
            show(page, view)
            row = page.locator(".log tr").filter(has_text="slow")
            playwright.expect(row.get_by_role("cell", name="99", exact=True)).to_be_visible()
            assert row.get_by_role("link").all_inner_texts() == ["Write it"]
        lines = page.locator(".view.log tbody tr")
        row.get_by_role("link").click()
        playwright.expect(lines).to_have_count(1)
        page.get_by_role("button", name="Time since").click()
        playwright.expect(lines.locator(".at")).to_have_text(re.compile(r"^\d+ h \d+ min ago$"))
        page.get_by_role("searchbox").fill("LONG window=99")
        playwright.expect(lines.locator("details[open] mark")).to_have_text("long")
        assert serious_faults(page) == []
        page.evaluate("location.hash = '#/log/all'")
        page.locator(".view.log").get_by_role("link", name=f"{FILES}", exact=True).first.click()
        playwright.expect(page.get_by_role("heading", name=f"Window {FILES}", exact=True)).to_be_visible()


FOLLOWING = """async () => {
  const { log } = await import('/static/view_log.js');
  const main = document.body.appendChild(document.createElement('div')), run = { status: {}, overview: {} };
  const view = await log.open(main, run, ''), [button] = main.querySelectorAll('button[aria-pressed="true"]');
  let asked = 0, now = performance.now();
  performance.now = () => (now += 1e6);
  window.fetch = async () => { asked += 1; throw new Error('no answer'); };
  return [0, 1].map(() => { button.click(); view.update(run); return asked; });
}"""


def test_new_lines_of_the_log_wait_until_they_are_followed_again(console, open_page):
    assert open_page(console.url).evaluate(FOLLOWING) == [0, 1]


def test_a_view_that_was_left_while_the_server_answered_does_not_get_the_news_of_the_next(serve, open_page, tmp_path):
    place = run_copying(tmp_path)
    with serve(place) as url:
        page, held = open_page(url), []

        def hold(route):
            held.append(route)

        page.route(re.compile("/api/v1/files"), hold)
        with page.expect_request(re.compile("/api/v1/files")):
            page.evaluate("location.hash = '#/files'")
        show(page, "log")
        with page.expect_response(re.compile("/api/v1/files")):
            held[0].continue_()
        newest = page.locator(".view.log tbody tr").first
        before = newest.inner_text()
        old_file(tmp_path / "in" / "more.txt", "one more\n")
        again(tmp_path)
        playwright.expect(newest).not_to_have_text(before)


def test_the_graph_of_a_run_that_ended_shows_what_passed_and_where_it_failed(finished_page, serve, open_page, tmp_path):
    page = finished_page
    show(page, "overview")
    show(page, "graph")
    sums = [str(FILES), str(FILES * (LINES - 2)), str(FILES * LINES)]
    playwright.expect(page.locator(".canvas .live")).to_have_text(sums)

    def parsing(dag, conf):
        numbers = dag.add_operator("Numbers", Items(items=["1", "x", "0"]))
        numbers >> (parse := dag.add_operator("Parse", Map(int)))
        parse >> dag.add_operator("Last", Map(last))
        dag.add_stream("rejected", parse.rejected, dag.add_operator("Bad", Map(str)).input)

    last = str
    launch(parsing, until="once", machine=Machine("reference"), path=tmp_path / "well")
    with serve(tmp_path / "well") as url:
        page = open_page(url)
        show(page, "graph")
        playwright.expect(page.get_by_role("button", name="Parse: received 3, sent 3, 1 rejected")).to_be_visible()
        playwright.expect(page.locator(".canvas .live.bad")).to_have_text("1 rejected")
    last = (1).__floordiv__
    with pytest.raises(OperatorFailed):
        launch(parsing, until="once", machine=Machine("reference"), path=tmp_path / "failed")
    with serve(tmp_path / "failed") as url:
        page = open_page(url)
        show(page, "graph")
        playwright.expect(page.locator(".canvas .box.failed")).to_have_attribute("data-name", "Last")
        playwright.expect(page.locator(".canvas .live.bad")).to_have_text("✕ failed in window 1")
        page.get_by_role("button", name="Last").press("Enter")
        playwright.expect(page.locator(".about .fault")).to_contain_text("ZeroDivisionError")


@pytest.mark.parametrize(("wide", "high"), [(390, 800), (1440, 900), (2560, 1200)])
def test_a_graph_is_first_shown_whole(finished_page, wide, high):
    finished_page.set_viewport_size({"width": wide, "height": high})
    show(finished_page, "overview")
    show(finished_page, "graph")
    fits = "(canvas) => canvas.scrollWidth <= canvas.clientWidth && canvas.scrollHeight <= canvas.clientHeight"
    assert finished_page.locator(".canvas:has(svg)").evaluate(fits)


def test_a_graph_of_hundreds_of_operators_is_folded_and_what_is_sought_is_opened(serve, open_page, tmp_path):
    store, layered = Ledger.create(str(tmp_path), durable=False).store, compile_application(samples.layered(16, 25))
    LaunchRecord.of(layered, layered.plan, "0", datetime.now(UTC)).write(store)
    last = layered.plan.operators[-1].name
    with serve(tmp_path) as url:
        page = open_page(url)
        show(page, "graph")
        boxes = page.locator(".canvas .box")
        boxes.first.wait_for()
        assert PARTS / 2 < boxes.count() <= PARTS
        page.locator(".canvas .box.module").first.press("Enter")
        page.get_by_role("button", name=re.compile("^Close ")).wait_for()
        assert PARTS < boxes.count() <= READABLE
        page.get_by_role("combobox", name="Find an operator").fill(last)
        page.get_by_role("combobox", name="Find an operator").press("Enter")
        page.get_by_role("heading", name=last).wait_for()
        focused = page.locator(":focus")
        assert focused.get_attribute("data-name") == last
        playwright.expect(focused).to_be_in_viewport()
        assert serious_faults(page) == []


def test_charts_have_a_gap_where_nothing_ran(finished_page):
    apart = "async (columns) => (await import('/static/charts.js')).apart(...columns)"
    launches = finished_page.evaluate(apart, [[1, 2, 9, 10], [0, 0, 8, 8], [[5, 6, 7, 8]]])
    assert launches == [[1, 2, 8, 9, 10], [[5, 6, None, 7, 8]]]
    stopped = finished_page.evaluate(apart, [[1, 2, 3, 43, 44], [0, 0, 0, 0, 0], [[5, 6, 7, 8, 9]]])
    assert stopped == [[1, 2, 3, 23, 43, 44], [[5, 6, 7, None, 8, 9]]]


PAUSES = """async () => {
  const { pauses } = await import('/static/answers.js');
  const turn = pauses(), fetched = window.fetch, performed = performance.now;
  let now = 0;
  performance.now = () => now;
  window.fetch = async () => {
    now += 3000;
    return new Response("{}", { headers: { "server-timing": "cpu;dur=20" } });
  };
  await turn.take((ask) => Promise.all([ask("operators"), ask("series")]));
  const due = [9900, 10100].map((then) => { now = then; return turn.isDue(); });
  Object.assign(window, { fetch: fetched });
  performance.now = performed;
  return due;
}"""


def test_answers_are_renewed_after_a_hundred_times_what_they_cost_the_driver_however_long_they_waited(finished_page):
    assert finished_page.evaluate(PAUSES) == [False, True]


def test_the_last_news_of_a_run_reach_a_view_that_pauses(finished, serve, open_page, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    path, ended = tmp_path / "run" / "status.json", json.loads((finished / "status.json").read_text())
    path.write_text(json.dumps({**ended, "window": 1}))
    with serve(tmp_path / "run") as url:
        page, series = open_page(url), json.dumps(Served(url).answer("series"))
        page.route(re.compile("/api/v1/series"), lambda route: route.fulfill(body=series, headers=COSTLY))
        page.reload()
        page.locator(".chart canvas").first.wait_for()
        with page.expect_request(re.compile("/api/v1/series")):
            path.write_text(json.dumps(ended))
            playwright.expect(page.locator(".figures dd").first).to_contain_text(f"{ended['window']:,}")


SCALE = """async (values) => {
  const { overTime } = await import('/static/charts.js'), plots = [], made = window.uPlot;
  window.uPlot = function (...options) { const plot = new made(...options); plots.push(plot); return plot; };
  const columns = ["waiting_positions", "positions", "items", "rejected", "slots_seconds", "commit_seconds"];
  const series = { at: values.map((_, index) => index), launched: values.map(() => 0), partitions: {} };
  for (const name of columns) series[name] = values;
  const { read } = overTime(series, { read: { offset: 1 } });
  document.querySelector("main").append(...read);
  const drawn = () => plots.find((plot) => read[0].contains(plot.root) && plot.axes[1]._values);
  while (!drawn()) await new Promise(requestAnimationFrame);
  window.uPlot = made;
  const { scales, axes } = drawn(), caption = read[0].querySelector("figcaption");
  read[0].remove();
  return [scales.y.max, axes[1]._values.at(-1), caption.textContent];
}"""


def test_the_scale_of_a_chart_has_short_labels_and_is_not_that_of_an_old_peak(finished_page):
    usual = [3000] * 100
    most, label, caption = finished_page.evaluate(SCALE, [90_000, *usual])
    assert (most < 10_000, label[-1], "up to 90K" in caption) == (True, "K", True)
    most, _, caption = finished_page.evaluate(SCALE, [*usual, 90_000])
    assert (most > 90_000, "up to" in caption) == (True, False), "it is new"
    assert finished_page.evaluate(SCALE, [3, 3])[0] < 10


def test_a_table_is_renewed_although_a_link_in_it_was_opened_in_another_tab(finished, serve, open_page, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    path, ended = tmp_path / "run" / "status.json", json.loads((finished / "status.json").read_text())
    with serve(tmp_path / "run") as url:
        page = open_page(url)
        table = page.get_by_role("region", name="Operators")
        table.get_by_role("link", name="Kept").click(modifiers=["Control"])
        assert page.evaluate("document.activeElement.textContent") == "Kept"
        operators = [{**operator, "received": 12_345} for operator in ended["operators"]]
        path.write_text(json.dumps({**ended, "operators": operators, "at": datetime.now(UTC).isoformat()}))
        playwright.expect(table).to_contain_text("12,345")


def test_the_last_windows_do_not_wait_for_charts_that_cost_more(finished, serve, open_page, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    path, ended = tmp_path / "run" / "status.json", json.loads((finished / "status.json").read_text())
    path.write_text(json.dumps({**ended, "window": 1}))
    with serve(tmp_path / "run") as url:
        page, series, asked = open_page(url), json.dumps(Served(url).answer("series")), []
        costly = {**COSTLY, "server-timing": "cpu;dur=300"}
        page.route(
            re.compile("/api/v1/series"), lambda route: asked.append(1) or route.fulfill(body=series, headers=costly)
        )
        page.reload()
        page.locator(".chart canvas").first.wait_for()
        with page.expect_request(re.compile("/api/v1/windows")):
            path.write_text(json.dumps(ended))
        assert len(asked) == 1


REACH = """async (state) => {
  const { overTime } = await import('/static/charts.js'), plots = [], made = window.uPlot;
  window.uPlot = function (...options) { const plot = new made(...options); plots.push(plot); return plot; };
  const columns = ["waiting_positions", "positions", "items", "rejected", "slots_seconds", "commit_seconds"];
  const series = { at: [1000, 1001], launched: [999, 999], partitions: {} };
  for (const name of columns) series[name] = [1, 2];
  const { backlog } = overTime(series, { state, at: "1970-01-01T00:20:00Z" });
  document.querySelector("main").append(...backlog);
  while (!plots[0]?.scales.x.max) await new Promise(requestAnimationFrame);
  window.uPlot = made;
  backlog[0].remove();
  return plots[0].scales.x.max;
}"""


def test_charts_of_a_run_that_goes_on_reach_the_present(finished_page):
    assert [finished_page.evaluate(REACH, state) for state in ("running", "stopped")] == [1200, 1001]


def test_a_run_that_was_killed_shows_what_it_did_last(finished, serve, open_page, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    status |= {"state": "running", "at": "2100-01-01T12:00:09Z", "driver": {**status["driver"], "began": "before"}}
    status["in_flight"] = [{"window": 5, "elements": 4, "since": "2100-01-01T12:00:00Z"}]
    (tmp_path / "run" / "status.json").write_text(json.dumps(status))
    with serve(tmp_path / "run") as url:
        page = open_page(url)
        ended = page.locator("section").filter(has=page.get_by_role("heading", name="How it ended"))
        playwright.expect(ended).to_contain_text("Window 5 had run for 9.0 s, with 4 elements.")
        report = re.compile(r"as its driver last reported them, at [-\d]+ [:\d]+")
        playwright.expect(page.locator(".view.overview")).to_contain_text(report)
        playwright.expect(ended.locator(".log tbody tr").first).to_contain_text("ended")
        show(page, "graph")
        playwright.expect(page.locator(".view.graph")).to_contain_text(report)
        show(page, "overview")
        assert serious_faults(page) == []


HEALTH = """async (changed) => {
  const { health } = await import('/static/health.js');
  const status = { state: "running", in_flight: [], working: [], read: {}, queued: {}, remarks: [], ...changed };
  const [section] = health({ status, isLost: false, overview: {} });
  return [...section.querySelectorAll("li")].map((item) => [item.className, item.lastChild.textContent]);
}"""


def test_the_health_of_a_run_is_sentences_the_worst_first(finished_page):
    behind = {"text": "falling behind", "since": "2026-01-01T11:00:00Z", "details": "much waits", "warns": True}
    busy = {"text": "busiest: Score 92%", "since": None, "details": "", "warns": False}
    shown = finished_page.evaluate(HEALTH, {"remarks": [{**busy, "view": "graph"}, {**behind, "view": ""}]})
    assert [kind for kind, _ in shown] == ["warn", "fine", "note"]
    assert re.fullmatch(r" ?Falling behind, since [-\d]+ [:\d]+; much waits\.", shown[0][1])
    assert {text for _, text in shown[1:]} == {"Keeping up: nothing waits.", "Busiest: Score 92%. More"}


def test_a_run_with_a_long_window_does_not_keep_up_and_one_without_its_server_is_not_done(finished_page):
    long = {"text": "window 6 has run for 25 s", "since": None, "details": "", "warns": True, "view": "windows"}
    assert [kind for kind, _ in finished_page.evaluate(HEALTH, {"remarks": [long]})] == ["warn"]
    stopped = {"state": "stopped", "at": "2026-01-01T11:00:00Z", "waits_for": ["Kafka has not answered for 9 s"]}
    shown = finished_page.evaluate(HEALTH, stopped)
    assert [kind for kind, _ in shown] == ["warn", "warn"]
    assert "there may be input that was not read" in shown[0][1]


def test_a_run_that_waits_for_a_server_does_not_keep_up(finished_page):
    waiting = {"waits_for": ["the broker of the queue q has not answered for 17 s: refused"]}
    shown = finished_page.evaluate(HEALTH, waiting)
    assert shown == [["warn", "The broker of the queue q has not answered for 17 s: refused"]]


def test_a_run_in_trouble_shows_its_progress_without_a_green_mark(finished_page):
    waiting = {"waits_for": ["Kafka has not answered for 17 s"], "read": {"byte": 1}, "queued": {"byte": 3}}
    assert [kind for kind, _ in finished_page.evaluate(HEALTH, waiting)] == ["warn", "note"]


def test_a_run_whose_slots_still_work_is_not_done(finished_page):
    done = {"window": 2, "amounts": {"byte": 1000}, "done": {"byte": 1000}, "since": "2026-01-01T12:00:00Z"}
    shown = finished_page.evaluate(HEALTH, {"in_flight": [done], "at": "2026-01-01T12:00:01Z"})
    assert shown == [["fine", " 99 %: 1.0 kB of 1.0 kB read."]]


@pytest.mark.parametrize("state", ["killed", "failed"])
def test_a_run_that_ended_badly_shows_the_command_that_launches_it_again(finished_page, state):
    ended = {"state": state, "at": "2026-01-01T12:00:00Z", "window": 12, "command": "cd /srv && dagkit launch app.py"}
    ((kind, shown),) = finished_page.evaluate(HEALTH, ended)
    assert kind == "amiss"
    assert shown.endswith(" no record is lost. To launch it again: cd /srv && dagkit launch app.py")


def test_the_sentence_about_a_run_that_failed_has_the_first_line_of_its_error(finished_page):
    failed = {"state": "failed", "at": "2026-01-01T12:00:00Z", "window": 12}
    error = {"at": "2026-01-01T11:59:59Z", "message": "Score: ValueError: no price.\nTraceback …", "again": False}
    ((_, shown),) = finished_page.evaluate(HEALTH, {**failed, "error": error})
    assert ": Score: ValueError: no price. The next launch" in shown
    ((_, shown), *_) = finished_page.evaluate(HEALTH, {**failed, "error": {**error, "again": True}})
    assert "ValueError" not in shown


class Checked(Operator):
    kind = "test.checked/1"
    input = InputPort[Record[str]]()

    def process(self, item):
        if item.value == "bad":
            raise ValueError("no number")


def checking(dag, conf):
    """Reads lines, of which one is set aside."""
    splitter = dag.add_operator("Splitter", FileSplitterInput())
    splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Checked", Checked())


def test_the_outcome_of_a_retry_is_shown(serve, open_page, tmp_path):
    (tmp_path / "a.txt").write_text("good\nbad\n")
    aged(tmp_path / "a.txt")
    settings = {"dt.operator.Splitter.prop.scanner.files": str(tmp_path / "a.txt"), "dt.attr.ON_POISON": "SET_ASIDE"}

    def run():
        launch(checking, settings, until="once", machine=Machine("reference"), path=tmp_path / "run")

    run()
    with serve(tmp_path / "run", allows_control=True) as url:
        page = open_page(url)
        show(page, "work")
        page.get_by_role("button", name="Retry").click()
        outcome = playwright.expect(page.locator(".view.work p[role=status]"))
        outcome.to_contain_text("requested; the next launch does it.")
        run()
        outcome.to_contain_text(re.compile(r"Retry of .*a\.txt.*: put back, in window \d+; if it fails again"))


def test_two_windows_and_two_launches_are_compared(serve, open_page, tmp_path):
    place = run_copying(tmp_path)
    old_file(tmp_path / "in" / "more.txt", "one more\n")
    again(tmp_path)
    with serve(place) as url:
        page = open_page(url)
        show(page, "windows/2")
        page.get_by_role("link", name="Compare with the window before").click()
        operators = page.get_by_role("row").filter(has_text="Kept")
        playwright.expect(operators).to_contain_text(f"{LINES}")
        playwright.expect(page.get_by_role("row").filter(has_text="Items handled").first).to_be_visible()
        launches = page.get_by_role("region", name="Launches")
        launches.get_by_role("link", name="Compare with the one before").click()
        read = page.get_by_role("region", name="Figures").get_by_role("row").filter(has_text="Read")
        before = sum(len(f"{file}-{line}\n") for file in range(FILES) for line in range(LINES))
        after = len("one more\n")
        playwright.expect(read.get_by_role("cell")).to_have_text(
            ["Read", f"{before}", f"{after}", re.compile(rf"^.{before - after} \(.\d+ %\)$")]
        )
        assert serious_faults(page) == []


def test_the_applications_of_a_folder_are_listed_and_opened(finished, open_page, tmp_path):
    shutil.copytree(finished, tmp_path / "One")
    with Console(FolderOfApplications(str(tmp_path))).served() as url:
        page, console = open_page(url), Served(url)
        shutil.copytree(finished, tmp_path / "Two & more")
        shutil.copytree(finished, tmp_path / "Two.20260101T000000")
        page.reload()
        rows = page.locator("tbody tr")
        playwright.expect(rows).to_have_count(2)
        playwright.expect(rows.first).to_contain_text("with nothing left to do")
        assert serious_faults(page) == []
        rows.last.get_by_role("link").click()
        playwright.expect(page.locator("h1")).to_have_text("Copying")
        show(page, "windows/1")
        playwright.expect(page.get_by_role("heading", name="Window 1", exact=True)).to_be_visible()
        page.get_by_role("link", name="All applications").click()
        playwright.expect(rows).to_have_count(2)
        assert [row["name"] for row in console.answer("applications")["rows"]] == ["One", "Two & more"]
        statuses = [console.request(f"/of/{name}/api/v1/overview").status for name in ("One", "..", "%2e%2e", "Three")]
        assert statuses == [200, 404, 404, 404]
        assert console.request("/of/One/api/v1/overview", {}).status == 401
