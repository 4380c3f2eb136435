"""What the console answers about a finished run."""

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import quote

import pytest
from starlette.requests import Request

from dagkit.console import graph_answers, work_answers
from dagkit.console.run_folder import RunFolder
from dagkit.console.several import Several
from dagkit.console.window_answers import item_sums
from dagkit.console.work_answers import row_of_work, split_sums
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.record.history import newest_checkpoint, window_at
from dagkit.engine.record.status_file import read_status
from dagkit.engine.record.work_history import ListedWork
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.split import PUT_OFF
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger, Span
from dagkit.render.picture import View
from dagkit.runs.inventory.applications import name_of
from dagkit.runs.inventory.listing import FoundFiles, ListedFile
from dagkit_operators import FileInfo, FileSplitterBase, FileSplitterInput, Items, LineReader, Map, PartWriter
from tests.console.conftest import FILES, LINES, Served, again, run_copying
from tests.engine.cast import Collect, Digits, Ranges, chain
from tests.old_files import old_file
from tests.patience import within
from tests.render.samples import line_filter_plan, m_by_n_plan


def test_the_overview_says_what_ran_and_how_far(console, finished):
    found = console.answer("overview")
    assert (found["application"], found["path"]) == ("Copying", str(finished))
    assert found["last"]["window"] >= FILES
    chains = console.answer("chains")["rows"]
    assert {chain["chain"]: chain["kind"] for chain in chains} == {"Copying": "Derivative", "Splitter": "Root"}


def test_an_answer_has_the_time_that_it_cost(console):
    timing = console.request("/api/v1/overview").headers["server-timing"]
    assert float(timing.removeprefix("cpu;dur=")) > 0


def test_windows_come_newest_first_in_pages_and_series_have_a_value_for_each(console):
    whole, series = console.answer("windows?limit=500"), console.answer("series")
    rows = whole["rows"]
    assert ([row["window"] for row in rows], whole["next"]) == (list(range(len(rows), 0, -1)), None)
    for name in ("window", "positions", "commit_seconds"):
        assert series[name] == [row[name] for row in reversed(rows)]
    paged, after = [], 0
    while after is not None:
        page = console.answer(f"windows?limit=2&after={after}")
        paged += page["rows"]
        after = page["next"]
    assert paged == rows
    assert sum(series["positions"]) == sum(len(f"{file}-{line}\n") for file in range(FILES) for line in range(LINES))


def test_a_window_has_its_work_its_items_and_its_files(console):
    found = console.answer("windows/1")
    (work,) = found["inputs"]
    assert (work["input"], work["given"]) == ("Reader.blocks_metadata_input", work["consumed"])
    assert {row["operator"]: row["received"] for row in console.answer("items?window=1")["rows"]}["Kept"] == LINES
    assert {row["operator"] for row in found["written"]} == {"Writer"}
    assert found["adds_up"]
    kept = console.answer("items?limit=500&like=operator=kept")["rows"]
    assert (sum(row["received"] for row in kept), sum(row["dropped"] for row in kept)) == (FILES * LINES, FILES * 2)


def test_the_items_of_operators_are_summed_over_windows(console):
    sums = {row["operator"]: row for row in console.answer("items/sums")["rows"]}
    kept = {
        "windows": FILES,
        "received": FILES * LINES,
        "sent": FILES * (LINES - 2),
        "rejected": 0,
        "dropped": FILES * 2,
    }
    assert sums["Kept"] == {"operator": "Kept", **kept, "uneven": 0, "adds_up": True}
    assert sums["Reader"]["adds_up"] is None
    row = {"operator": "Parse", "received": 2, "sent": 1, "rejected": None, "dropped": 0}
    (parse,) = item_sums([{**row, "adds_up": False}, {**row, "adds_up": True}])
    assert (parse["uneven"], parse["adds_up"]) == (1, False)


def test_work_without_an_end_is_followed_and_does_not_wait():
    place = Span(source="orders/0", start=5, end=None)
    row = row_of_work(ListedWork("pending", "Read", place))
    assert (row["state"], row["reason"]) == ("followed", "it has no end: what is added to it is read")
    assert row_of_work(ListedWork("set aside", "Read", place, 3, "bad"))["state"] == "set aside"
    assert row_of_work(ListedWork("pending", "Read", Span(source="a", start=5, end=9)))["state"] == "pending"


def test_work_that_had_no_more_to_do_yet_is_no_split_that_is_listed(tmp_path):
    def split(why):
        return Split(into=Address("Read.ranges"), source="orders/0", start=5, at=9, end=None, why=why)

    folder = RunFolder(str(run_copying(tmp_path)))
    with folder.windows() as chain:
        window = window_at(chain, chain.head.seq)
    facts = (split(PUT_OFF), split("the window was over"))
    checkpoint = window.checkpoint.model_copy(update={"facts": facts})
    window = replace(window, checkpoint=checkpoint)
    assert [row["why"] for row in work_answers.cuts(window)] == ["the window was over"]
    assert [row["why"] for row in work_answers.splits(window)] == ["the window was over", PUT_OFF]


def test_splits_are_summed_by_reason():
    row = {"into": "Read.input", "at": 4, "end": 10, "at_share": None, "why": "over"}
    shares, endless = {**row, "at_share": 0.5}, {**row, "end": None}
    assert split_sums([row, shares, endless, {**row, "into": "Poll.input"}], {"Poll": "record"}) == [
        {"why": "over", "splits": 4, "handed": {"byte": 6, "record": 6}}
    ]


def test_decisions_work_the_configuration_and_operators_are_described(console, finished):
    (decision,) = console.answer("decisions")["rows"]
    assert (decision["operator"], decision["before"], decision["after"]) == ("Reader", 1, 1)
    assert decision["sentence"].endswith("1 stays: the current number fits")
    for name in ("splits", "given-up", "work", "rejected"):
        assert (console.answer(name)["rows"], console.answer(name)["next"]) == ([], None)
    entries = {entry["key"]: entry for entry in console.answer("keys?limit=500")["rows"]}
    memory = entries["dt.operator.Reader.attr.MEMORY_MB"]
    assert (memory["value"], memory["source"], memory["holds"]) == ("512", "command line", True)
    found = console.answer("operator?name=Splitter")
    assert found["class"] == "dagkit_operators.finding.splitter.FileSplitterInput"
    assert (found["count"], found["properties"]["scanner"]["files"]) == (1, [str(finished.parent / "in")])


def test_blocks_of_a_chain_come_newest_first_with_their_hashes(console):
    found = console.answer("blocks?chain=Splitter&limit=2")
    rows = found["rows"] + console.answer(f"blocks?chain=Splitter&after={found['next']}")["rows"]
    assert [row["block"] for row in rows] == list(range(len(rows) - 1, -1, -1))
    assert rows[-1]["event"] == "Seed"
    assert rows[0]["previous_hash"] == rows[1]["hash"]
    assert [(row["window"], row["linked"]) for row in rows[:FILES]] == [(window, True) for window in (3, 2, 1)]
    windows = console.answer("blocks?chain=Copying")["rows"]
    assert [row["window"] for row in windows[:FILES]] == [4, 3, 2]
    assert windows[1]["data"] > 0
    heads = {chain["chain"]: chain["head"] for chain in console.answer("chains")["rows"]}
    assert heads == {"Splitter": rows[0]["hash"], "Copying": windows[0]["hash"]}


def test_a_block_of_another_chain_is_not_linked(tmp_path, finished, serve):
    (tmp_path / "other").mkdir()
    block = "ledger/chains/Splitter/blocks"
    name = sorted(path.name for path in (finished / block).iterdir())[2]
    shutil.copytree(finished, tmp_path / "run")
    shutil.copy(run_copying(tmp_path / "other") / block / name, tmp_path / "run" / block / name)
    with serve(tmp_path / "run") as url:
        broken = Served(url).answer("blocks?chain=Splitter&like=linked=false")["rows"]
    assert [row["block"] for row in broken] == [3, 2]


def test_a_run_that_goes_on_is_seen_by_a_console_that_is_open(tmp_path, serve):
    place = run_copying(tmp_path)
    with serve(place) as url:
        console = Served(url)
        before = {chain["chain"]: chain["blocks"] for chain in console.answer("chains")["rows"]}
        old_file(tmp_path / "in" / "more.txt", "one more\n")
        again(tmp_path)
        after = {chain["chain"]: chain["blocks"] for chain in console.answer("chains")["rows"]}
        assert {name: after[name] > before[name] for name in after} == {"Copying": True, "Splitter": True}
        assert console.answer("files")["rows"][0]["path"].endswith("more.txt")
        assert console.answer("work")["rows"] == []


def test_files_are_listed_searched_and_explained(console, finished):
    paths = [str(finished.parent / "in" / f"{file}.txt") for file in range(FILES)]
    found = console.answer("files")["rows"]
    windows = {path: window for window, path in enumerate(paths, start=1)}
    assert {row["path"]: row["window"] for row in found} == windows
    assert [row["path"] for row in found] == paths[::-1]
    size = sum(len(f"0-{line}\n") for line in range(LINES))
    assert {(row["state"], row["bytes"], row["left"]) for row in found} == {("read", size, 0)}
    page = console.answer("files?limit=1&sort=path")
    assert page["sums"] == {"read": {"files": FILES, "bytes": FILES * size, "left": {}}}
    assert console.answer(f"files?limit=1&sort=path&after={page['next']}")["rows"][0]["path"] == paths[1]
    assert [row["path"] for row in console.answer("files?like=/2.txt")["rows"]] == paths[2:]
    (reading,) = console.answer(f"file?path={quote(paths[1])}")["readings"]
    assert [(window["window"], window["items"]) for window in reading["windows"]] == [(2, LINES)]


def test_a_file_shows_how_far_it_is_read(tmp_path, serve):
    old_file(tmp_path / "a.txt", "one\ntwo\nbad\nfour\n")

    def parsing(dag, conf):
        splitter = FileSplitterInput(scanner={"files": [str(tmp_path)]}, block_size=4, blocks_threshold=1)
        reader = dag.add_operator("Reader", LineReader())
        dag.add_operator("Splitter", splitter) >> reader >> dag.add_operator("Checked", Map(checked))

    def checked(line):
        assert line != "bad"

    with pytest.raises(OperatorFailed):
        launch(parsing, until="once", machine=Machine("reference"), path=tmp_path / "run")
    with serve(tmp_path / "run") as url:
        answer = Served(url).answer("files")
    (row,) = answer["rows"]
    assert (row["state"], row["bytes"], row["left"], row["window"]) == ("waiting", 17, 9, 1)
    assert answer["sums"] == {"waiting": {"files": 1, "bytes": 17, "left": {"byte": 9}}}


class Numbered(Digits):
    position_unit = "number"


def test_a_source_that_is_no_file_is_explained_in_the_unit_of_its_positions_from_the_first_window_on(tmp_path, serve):
    draw = chain(ranges=Ranges(looks=((3, 2),)), digits=Numbered(), collect=Collect())
    launch(draw, until="once", machine=Machine("reference"), path=tmp_path / "run")
    with serve(tmp_path / "run") as url:
        console = Served(url)
        answer = console.answer("files")
        (reading,) = console.answer("file?path=numbers")["readings"]
    assert [(row["path"], row["unit"], row["left"]) for row in answer["rows"]] == [("numbers", "number", 0)]
    assert (reading["unit"], sum(window["bytes"] for window in reading["windows"])) == ("number", 5)
    first = read_status(Ledger.open(tmp_path / "run").store)
    assert first.operators[1].unit == "number"


def test_what_waits_of_a_file_is_the_sum_of_its_ranges_in_the_queue(finished):
    ledger, into, path = Ledger.open(finished), Address("Reader.blocks_metadata_input"), "/in/a.txt"
    queue = tuple(WorkItem(into, (start,), {}, start, start + 4, source=path) for start in (8, 20))
    files = FoundFiles.of(ledger, newest_checkpoint(ledger).model_copy(update={"queue": queue}))
    assert files.left_of(ListedFile("Splitter", path, "waiting"), None) == 8
    assert files.left_of(ListedFile("Splitter", path, "quarantined"), None) == 0


def test_the_graph_is_drawn_without_styles_that_the_policy_forbids(console):
    assert [box["name"] for box in console.answer("graph")["boxes"]] == ["Splitter", "Reader", "Kept", "Writer"]
    for view in ("logical", "physical"):
        drawn = console.request(f"/api/v1/graph.svg?view={view}")
        assert drawn.headers["content-type"].startswith("image/svg+xml")
        assert b'data-name="Kept"' in drawn.body
        assert b" style=" not in drawn.body


def test_a_picture_that_is_ready_after_another_launch_began_is_not_shown_as_that_of_its_plan(monkeypatch):
    drawings, earlier, later = graph_answers.Drawings(), line_filter_plan(), m_by_n_plan()
    draw = graph_answers.svg

    def while_another_request_is_answered(picture, **options):
        monkeypatch.undo()
        drawings.svg(later, View.PHYSICAL, ())
        return draw(picture, **options)

    monkeypatch.setattr(graph_answers, "svg", while_another_request_is_answered)
    before = drawings.svg(earlier, View.LOGICAL, ())
    assert drawings.svg(later, View.LOGICAL, ()) != before


class OpenedOnce(dict):
    """Accepts one console for each application."""

    def __setitem__(self, name, console):
        assert name not in self, f"{name} has a console"
        super().__setitem__(name, console)


def test_first_requests_at_one_time_open_one_console(finished):
    several = Several(str(finished.parent), threading.Event(), False, OpenedOnce())
    name, statuses = name_of(str(finished)), []

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        statuses.append(message.get("status", 200))

    async def ask():
        scope = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": [], "query_string": b""}
        await asyncio.gather(*(several({**scope, "path_params": {"name": name}}, receive, send) for _ in range(2)))

    # In a thread, since a browser of other tests may have a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(ask())).result()
    assert set(statuses) == {200}
    assert list(several.opened) == [name]


def test_an_application_whose_ledger_is_damaged_hides_no_other(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "Shop")
    Ledger.create(tmp_path / "Lost")
    (tmp_path / "Lost" / "ledger" / "ledger.json").write_text("")
    several = Several(str(tmp_path), threading.Event(), False, {})
    rows = json.loads(several.listed(Request({"type": "http"})).body)["rows"]
    assert {row["name"]: (row["fault"], row["status"] is None) for row in rows} == {
        "Lost": ("ledger.json is not JSON", True),
        "Shop": ("", False),
    }


WRONG = {"windows?after=x": 400, "graph?view=none": 400, "windows/9999": 404, "windows/0": 404, "none": 404}
WRONG |= {"operator?name=None": 404, "blocks?chain=None": 404}


@pytest.mark.parametrize(("name", "status"), WRONG.items())
def test_a_wrong_request_is_refused_with_its_reason(console, name, status):
    answer = console.request(f"/api/v1/{name}")
    assert (answer.status, bool(answer.document["problem"])) == (status, True)


def test_a_folder_without_a_launch_has_empty_answers(tmp_path, serve):
    with serve(tmp_path / "later") as url:
        console = Served(url)
        assert console.answer("chains")["rows"] == []
        Ledger.create(tmp_path / "later")
        for name in ("windows", "items", "splits", "decisions", "files", "work", "given-up"):
            assert console.answer(name)["rows"] == []
        assert console.answer("series")["at"] == []
        assert console.request("/api/v1/graph").status == 404
        assert console.request("/").status == 200


def test_a_run_whose_process_is_gone_was_killed(tmp_path, serve):
    place = run_copying(tmp_path)
    status = json.loads((place / "status.json").read_text())
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(within(30))
    status |= {"state": "running", "driver": {**status["driver"], "pid": gone.pid}}
    (place / "status.json").write_text(json.dumps(status))
    with serve(place, allows_control=True) as url:
        console = Served(url)
        assert console.answer("overview")["status"]["state"] == "killed"
        assert console.request("/api/v1/stop", method="POST").status == 409


def test_a_damaged_ledger_is_reported_with_its_code(tmp_path, serve):
    place = run_copying(tmp_path)
    last = max((place / "ledger" / "chains" / "Copying" / "blocks").iterdir())
    last.write_bytes(last.read_bytes()[:-10])
    with serve(place) as url:
        answer = Served(url).request("/api/v1/overview")
    assert (answer.status, answer.document["code"]) == (500, "block-torn")


def test_bytes_that_are_divided_and_then_read_count_once(tmp_path, serve):
    path = tmp_path / "a.txt"
    path.write_text("twelve bytes\n")

    def divided(dag, conf):
        found = dag.add_operator("Found", Items[FileInfo](items=[FileInfo(path=str(path))]))
        splitter, reader = dag.add_operator("Splitter", FileSplitterBase()), dag.add_operator("Reader", LineReader())
        writer = dag.add_operator("Writer", PartWriter(file_path=str(tmp_path / "out")))
        found >> splitter >> reader
        dag.add_stream("lines", reader.messages, writer.input)

    launch(divided, until="once", machine=Machine("reference"), path=tmp_path / "run")
    with serve(tmp_path / "run") as url:
        console = Served(url)
        rows = console.answer("windows")["rows"]
        consumed = [work["input"] for row in rows for work in console.answer(f"windows/{row['window']}")["inputs"]]
        series = console.answer("series")
    assert {"Splitter.input", "Reader.blocks_metadata_input"} <= set(consumed)
    assert sum(row["positions"] for row in rows) == sum(series["positions"]) == len("twelve bytes\n")
    assert sum(row["read"].get("byte", 0) for row in rows) == len("twelve bytes\n")


def test_each_window_has_its_duration_and_each_launch_its_moment(tmp_path, serve):
    place = run_copying(tmp_path)
    old_file(tmp_path / "in" / "more.txt", "one more\n")
    again(tmp_path)
    with serve(place) as url:
        console = Served(url)
        rows, series = console.answer("windows")["rows"], console.answer("series")
    for row in rows:
        assert row["seconds"] == pytest.approx(row["slots_seconds"] + row["commit_seconds"], abs=0.002)
    first, second = sorted(set(series["launched"]))
    earlier = [at for at, launched in zip(series["at"], series["launched"], strict=True) if launched == first]
    assert first <= min(earlier) <= max(earlier) <= second <= series["at"][-1]


def test_a_window_that_completes_a_file_of_earlier_windows_has_the_length_of_the_file(console, finished):
    (file,) = (finished.parent / "out").iterdir()
    rows = console.answer("windows")["rows"]
    (last,) = [row["window"] for row in rows if row["files"]]
    assert console.answer(f"windows/{last}")["finished"] == [{"file": str(file), "bytes": file.stat().st_size}]
    written = [piece["bytes"] for row in rows for piece in console.answer(f"windows/{row['window']}")["written"]]
    assert (sum(written), 0 in written) == (file.stat().st_size, False)
    totals = console.answer("overview")["status"]["totals"]
    assert (totals["files"], totals["completed"]) == (1, file.stat().st_size)


def test_the_configuration_has_the_properties_in_effect_with_what_set_them(console, finished):
    values = {}
    for row in console.answer("values?defaults=1&limit=500")["rows"]:
        values.setdefault(row["operator"], {})[row["name"]] = row
    assert values["Splitter"]["blocks_threshold"]["origin"].startswith("code at tests/console/conftest.py:")
    file_path = values["Writer"]["file_path"]
    out = str(finished.parent / "out")
    assert (file_path["value"], file_path["origin"]) == (out, "dt.operator.Writer.prop.filePath")
    assert (values["Writer"]["max_length"]["value"], values["Writer"]["max_length"]["origin"]) == (None, "default")
    assert "default" not in {row["origin"] for row in console.answer("values?limit=500")["rows"]}
    assert values["Reader"]["MEMORY_MB"]["value"] == 512


def test_rejected_records_are_counted_and_the_last_of_each_window_are_shown(tmp_path, serve):
    (tmp_path / "a.txt").write_text("".join("x\n" if number % 5 == 4 else f"{number}\n" for number in range(40)))

    def parsing(dag, conf):
        split, read = dag.add_operator("Split", FileSplitterBase()), dag.add_operator("Read", LineReader())
        found = dag.add_operator("Found", Items[FileInfo](items=[FileInfo(path=str(tmp_path / "a.txt"))]))
        parse = dag.add_operator("Parse", Map(int))
        found >> split >> read
        dag.add_stream("lines", read.messages, parse.input)
        dag.add_stream("rejected", parse.rejected, dag.add_operator("Bad", Map(str)).input)

    launch(parsing, until="once", machine=Machine("reference"), path=tmp_path / "run")
    with serve(tmp_path / "run") as url:
        console = Served(url)
        (parse,) = console.answer("operators?name=Parse")["rows"]
        samples = console.answer("rejected")["rows"]
    assert parse["rejected"] == 8
    first = samples[0]
    assert (first["place"], first["record"]) == (
        f"{tmp_path}/a.txt, byte 8",
        "'x': invalid literal for int() with base 10: 'x'",
    )
    assert ({row["operator"] for row in samples}, len(samples) <= 10) == ({"Parse"}, True)


def test_the_error_that_ended_a_run_keeps_its_lines_and_its_help(tmp_path, serve):
    def failing(dag, conf):
        dag.add_operator("Numbers", Items(items=[0])) >> dag.add_operator("Divide", Map(lambda number: 1 // number))

    with pytest.raises(OperatorFailed):
        launch(failing, until="once", machine=Machine("reference"), path=tmp_path / "run")
    with serve(tmp_path / "run") as url:
        error = Served(url).answer("overview")["status"]["error"]
    first, *rest = error["parts"]
    assert first["text"].startswith("Divide failed in window 1")
    (frame,) = [part for part in rest if part.get("is_authors")]
    assert (frame["file"], frame["function"]) == (__file__, "<lambda>")
    assert frame["code"][0].endswith("Map(lambda number: 1 // number))")
    assert rest[-1] == {"text": "ZeroDivisionError: integer division or modulo by zero"}
    assert error["help"].startswith("fix Divide; the next launch runs the window again")


def test_the_log_has_the_lines_of_a_level_newest_first(console, finished):
    rows = console.answer("log?limit=500")["rows"]
    assert (rows[0]["text"], [row["at"] for row in rows]) == (
        "ended",
        sorted((row["at"] for row in rows), reverse=True),
    )
    (committed,) = [row for row in rows if row["window"] == 1 and "read, " in row["text"]]
    assert (committed["level"], committed["text"].startswith("90 B read")) == ("info", True)
    assert console.answer("log?least=warning")["rows"] == []
    others = console.answer("log?windows=no&limit=500")["rows"]
    assert 0 < len(others) < len(rows)
    assert committed not in others
    assert {row["window"] for row in console.answer("log?like=window=1")["rows"]} == {1}


def test_work_that_was_set_aside_is_retried_by_the_next_launch_only_where_control_is_allowed(finished, console, serve):
    asked = "retry?source=%2Fa%20b.txt&operator=Reader&start=5&end="
    assert console.request(f"/api/v1/{asked}", method="POST").status == 403
    with serve(finished, allows_control=True) as url:
        server = Served(url)
        answer = server.request(f"/api/v1/{asked}", method="POST")
        assert answer.status == 202
        file = f"{answer.document['request']}.json"
        path = finished / "requests" / file
        asks = json.loads(path.read_text())["asks"]
        path.unlink()
        question = f"/api/v1/answer?request={answer.document['request']}"
        assert console.request(question, method="POST").status == 403
        assert server.request("/api/v1/answer?request=../status", method="POST").status == 404
        assert server.request(question, method="POST").document["done"] is None
        (finished / "answers").mkdir(exist_ok=True)
        reply = {"done": False, "window": None, "refused": "nothing was set aside"}
        (finished / "answers" / file).write_text(json.dumps({"id": answer.document["request"], **reply}))
        assert server.request(question, method="POST").document == {"schema": "dagkit.console.answer/1", **reply}
    wanted = {"ask": "retry", "names": ["/a b.txt"], "operator": "Reader", "start": 5, "end": None}
    assert {name: asks.get(name) for name in wanted} == wanted
