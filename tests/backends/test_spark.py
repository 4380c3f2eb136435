"""Windows as Spark jobs: what arrives, what is sent on, and what comes back to the driver."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark import TaskContext

from dagkit import DelayOperator, InputPort, Operator, OutputPort, PortContext, State, StreamCodec
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.shipping.level_files import folder_in
from dagkit.backends.spark.window.task import SlotReport
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.staging import Part
from dagkit.engine.program.failures import OperatorFailed, WindowLost, WorkerDied
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from dagkit.engine.worker.protocol import Attempt, Report, WindowTask
from dagkit.errors import RunFailure
from dagkit_operators import Map
from tests.backends.cast import Count, Round, Words, chain, chained, counting, sent, state_of, states_in
from tests.backends.places import ON_BOTH
from tests.patience import within

pytestmark = pytest.mark.spark


@pytest.fixture
def opened(session):
    with ExitStack() as backends:
        yield lambda compilation: backends.enter_context(closing(SparkBackend(compilation, session)))


@ON_BOTH
def test_what_an_operator_raises_arrives_as_a_failure(opened):
    with pytest.raises(OperatorFailed, match="no such word") as raised:
        opened(counting(2)).run(WindowTask(1, sent(counting(2), ["a", "fail"])))
    assert (raised.value.failure.operator, raised.value.failure.window_id) == ("count", 1)
    assert "in process" in raised.value.failure.traceback


class Careful(StreamCodec[str]):
    def to_bytes(self, item: str) -> bytes:
        if item == "unwritable":
            raise ValueError("no such word can be written")
        return item.encode()

    def from_bytes(self, data: bytes) -> str:
        if data == b"unreadable":
            raise ValueError("no such word can be read")
        return data.decode()

    def get_partition(self, item: str) -> int:
        return len(item)


def coded(receiver: str) -> Compilation:
    """Words go from the driver to `near`, from there to `far`, and back to `near` in the next window."""

    def draw(dag: Any, conf: object) -> None:
        far = chained(dag, {"far": 2}, words=Words(), near=Round(), far=Map(str))
        near, delay = dag.operator("near"), dag.add_operator("delay", DelayOperator[str]())
        far >> delay
        dag.add_stream("back", delay.output, near.again)
        port = {"near": near.words, "far": far.input, "again": near.again}[receiver]
        dag.set_input_port_attribute(port, PortContext.STREAM_CODEC, Careful())

    return compile_application(draw)


@pytest.mark.parametrize("word", ["unwritable", "unreadable"])
@pytest.mark.parametrize("receiver", ["near", "far", "again"])
def test_what_a_codec_raises_is_reported_of_the_operator_that_receives(opened, receiver, word):
    coding = coded(receiver)
    with pytest.raises(OperatorFailed, match=f"no such word can be {word[2:6]}") as raised:
        opened(coding).run(WindowTask(3, sent(coding, ["a", word])))
    failure = raised.value.failure
    assert (failure.operator, failure.window_id) == ("far" if receiver == "far" else "near", 3)
    assert raised.value.code == "codec-failed"
    assert failure.traceback.splitlines()[1].endswith("_bytes")


class Blow(Operator):
    """Holds more than a closure should, and as much on the next level."""

    words = InputPort(str)
    held = State[str](str)
    out = OutputPort(str)

    def process(self, word: str) -> None:
        self.held += word
        self.out.emit(word)


class Laden(Blow):
    load: str = ""


BLOWN_UP = chain({"first": 2, "second": 2}, words=Words(), first=Blow(), second=Blow())
LADEN = chain(words=Words(), laden=Laden(load="x" * 2_000_000))


def test_large_state_goes_to_each_slot_by_itself(opened, monkeypatch):
    monkeypatch.setattr("dagkit.backends.spark.window.backend.LARGEST_SHARED_BYTES", 1000)
    backend, state = opened(BLOWN_UP), {}
    texts = [str(number) * 1_000_000 for number in range(4)]
    for window in (1, 2):
        answer = backend.run(WindowTask(window, sent(BLOWN_UP, texts), state))
        state = states_in(answer)
        held = [sum(len(state["held"]) for state in state_of(answer, operator)) for operator in ("first", "second")]
        assert held == [window * 4_000_000] * 2


@pytest.mark.parametrize("large", [BLOWN_UP, LADEN], ids=["state", "program"])
def test_what_is_large_leaves_nothing_on_the_drivers_disk(spark, large):
    folder = Path(str(spark.sparkContext._temp_dir))
    with closing(SparkBackend(large, spark)) as backend:
        before, state = set(folder.rglob("*")), {}
        for window in (1, 2):
            answer = backend.run(WindowTask(window, sent(large, ["a" * 3_000_000]), state))
            state = states_in(answer)
            assert set(folder.rglob("*")) == before
    assert sum(len(kept["held"]) for report in answer.reports for kept in report.state.values()) >= 6_000_000


def test_a_session_with_settings_of_its_own_is_used_as_it_is(spark):
    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "true")
    own.conf.set("spark.sql.adaptive.coalescePartitions.initialPartitionNum", "1")
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    own.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    with closing(SparkBackend(counting(5), own)) as backend:
        answer = backend.run(WindowTask(1, sent(counting(5), [f"{number % 50}" for number in range(50_000)])))
    (collected,) = state_of(answer, "collect")
    assert sorted(collected["arrived"]) == sorted(str((str(number), 1000)) for number in range(50))


class Query(Operator):
    input = InputPort[Any]()
    numbers = State[list[str | None]](list)

    def process(self, item: Any) -> None:
        self.numbers.append(TaskContext.get().getLocalProperty("spark.sql.execution.id"))


ONE_LEVEL = chain(words=Words(), query=Query())
TWO_LEVELS = chain({"count": 2}, words=Words(), count=Count(), query=Query())


@pytest.mark.parametrize(
    ("levels", "encrypts", "is_planned"),
    [(ONE_LEVEL, False, False), (TWO_LEVELS, False, False), (ONE_LEVEL, True, False), (TWO_LEVELS, True, True)],
)
def test_a_window_is_a_query_of_spark_sql_only_if_spark_encrypts_what_levels_exchange(
    spark, monkeypatch, levels, encrypts, is_planned
):
    monkeypatch.setattr("dagkit.backends.spark.window.backend._encrypts", lambda _: encrypts)
    with closing(SparkBackend(levels, spark)) as backend:
        (state,) = state_of(backend.run(WindowTask(1, sent(levels, ["a"]))), "query")
    assert [number is not None for number in state["numbers"]] == [is_planned]


def test_no_files_of_rows_are_left_after_a_window_and_after_one_that_fails(spark):
    with folder_in(spark.sparkContext) as folder:
        place = Path(folder).parent
    before = set(place.glob("window-*"))  # a task of an abandoned window may still write into one
    with closing(SparkBackend(counting(2), spark)) as backend:
        backend.run(WindowTask(1, sent(counting(2), ["a", "b"])))
        assert set(place.glob("window-*")) <= before
        with pytest.raises(OperatorFailed):
            backend.run(WindowTask(2, sent(counting(2), ["a", "fail"])))
    assert set(place.glob("window-*")) <= before


class Exit(Operator):
    words = InputPort(str)

    def process(self, word: str) -> None:
        os._exit(1)


def test_what_fails_in_spark_is_reported_as_a_failure_of_spark(opened):
    leaving = chain(words=Words(), ends=Exit())
    died = "^Spark failed in window 7: a Python worker ended without an exception; it was killed, ran out of memory, or"
    with pytest.raises(WorkerDied, match=died) as raised:
        opened(leaving).run(WindowTask(7, sent(leaving, ["a"])))
    assert raised.value.__cause__ is not None


class Settled(Operator):
    words = InputPort(str)
    seen = State[tuple[int, str]]((0, ""))

    def process(self, word: str) -> None:
        self.seen = (1, word)


def test_what_keeps_a_slot_from_beginning_fails_with_its_own_code(opened):
    settled = chain(words=Words(), ends=Settled())
    with pytest.raises(RunFailure, match=r"seen .*\[state-unreadable\]"):
        opened(settled).run(WindowTask(2, sent(settled, ["a"]), {(0, 0): {"ends": {"seen": "nothing of the kind"}}}))


def told_by(program: Program, above: bytes) -> list[SlotReport]:
    """The reports of all slots; the last level received from an attempt of this name at each slot of the first."""
    first, last = (range(program.slots_at(level)) for level in (0, 1))
    return [
        *(SlotReport(Report(level=0, slot=slot), None, b"first", {}) for slot in first),
        *(SlotReport(Report(level=1, slot=slot), None, b"last", dict.fromkeys(first, above)) for slot in last),
    ]


def test_parts_of_a_window_that_do_not_fit_together_are_no_answer(spark):
    program = program_of(counting(2))
    whole = told_by(program, b"first")
    with closing(SparkBackend(counting(2), spark)) as backend:
        backend._check(WindowTask(4), whole)
        with pytest.raises(WindowLost, match="ran part of window 4 again"):
            backend._check(WindowTask(4), told_by(program, b"second"))
        with pytest.raises(AssertionError, match="every slot reports"):
            backend._check(WindowTask(4), whole[1:])
        with pytest.raises(AssertionError, match="each slot reports once"):
            backend._check(WindowTask(4), [*whole, whole[0]])


class Linger(Operator):
    words = InputPort(str)

    def process(self, word: str) -> None:
        Path(word).touch()
        time.sleep(600)  # sleeps: the test ends it


LINGERING = chain(words=Words(), ends=Linger())


def test_closing_ends_what_runs(opened, tmp_path):
    backend, sign = opened(LINGERING), tmp_path / "at work"
    with ThreadPoolExecutor(1) as pool:
        window = pool.submit(backend.run, WindowTask(1, sent(LINGERING, [str(sign)])))
        while not sign.exists() and not window.done():
            time.sleep(0.05)  # sleeps: between two looks at a file
        backend.close()
        with pytest.raises(WindowLost, match=r"\[spark-failed\]"):
            window.result(within(60))


def test_closing_ends_what_is_on_its_way_to_spark_and_a_later_window_is_refused(opened, tmp_path, monkeypatch):
    backend = opened(LINGERING)
    is_built, was_interrupted = Event(), Event()
    build, interrupt = backend._closure, backend._jobs._interrupt

    def built(*of: Any) -> Any:
        task = build(*of)
        is_built.set()
        assert was_interrupted.wait(within(60))
        return task

    def interrupted(tag: str) -> None:
        interrupt(tag)
        was_interrupted.set()

    monkeypatch.setattr(backend, "_closure", built)
    monkeypatch.setattr(backend._jobs, "_interrupt", interrupted)
    with ThreadPoolExecutor(1) as pool:
        window = pool.submit(backend.run, WindowTask(1, sent(LINGERING, [str(tmp_path / "at work")])))
        assert is_built.wait(within(60))
        backend.close()
        with pytest.raises(WindowLost, match="Spark failed in window 1"):
            window.result(within(60))
    with pytest.raises(WindowLost, match="the backend is closed and runs no more jobs"):
        backend.run(WindowTask(2, sent(LINGERING, ["a"])))


def test_tasks_are_interrupted_for_the_threads_that_run_jobs_and_for_no_others(spark):
    context, name = spark.sparkContext, "spark.job.interruptOnCancel"
    backend = SparkBackend(counting(1), spark)
    assert context.getLocalProperty(name) is None

    def in_a_thread(before: str | None) -> tuple[str | None, str | None]:
        context.setLocalProperty(name, before)  # None takes it away
        with backend._jobs.tagged("a job"):
            meanwhile = context.getLocalProperty(name)
        return meanwhile, context.getLocalProperty(name)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_a_thread, None).result(within(120)) == ("true", None)
        assert pool.submit(in_a_thread, "false").result(within(120)) == ("true", "false")
    backend.close()


def test_a_job_carries_the_names_of_its_application_window_and_operators(spark):
    with closing(SparkBackend(counting(1), spark)) as backend:
        backend.run(WindowTask(7, sent(counting(1), ["a"]), attempt=Attempt(isolated=True)))
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    described = [jobs.apply(index).description() for index in range(jobs.size())]
    name = counting(1).application
    assert f"Some({name}: window 7, count, collect)" in {each.toString() for each in described}
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_two_windows_run_at_the_same_time(opened):
    with ThreadPoolExecutor(2) as pool:
        both = [WindowTask(number, sent(counting(2), ["a"] * number)) for number in (1, 2)]
        answers = list(pool.map(opened(counting(2)).run, both))
    assert [state_of(answer, "collect")[0]["arrived"] for answer in answers] == [["('a', 1)"], ["('a', 2)"]]


@pytest.mark.parametrize("by_job", [True, False], ids=["by a job", "by the driver"])
def test_files_are_made_of_their_pieces(opened, tmp_path, monkeypatch, by_job):
    if by_job:
        monkeypatch.setattr("dagkit.backends.spark.window.placing.MANY_BYTES", 1)
    backend = opened(counting(1))
    (tmp_path / "staging").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "staging" / name).write_text(name * 3)

    def part(file: str, piece: str) -> Part:
        return Part(operator="o", file=str(tmp_path / "out" / file), part=f"staging/{piece}", length=3)

    one, two = [part("one", "a"), part("one", "b")], [part("two", "c")]
    files = {of[0].file: of for of in (one, two)}
    for _ in range(2):  # again, as after a crash
        backend.put_in_place(files, str(tmp_path), durable=False)
    assert (tmp_path / "out" / "one").read_text() + (tmp_path / "out" / "two").read_text() == "aaabbbccc"
    (tmp_path / "out" / "one").unlink()
    with pytest.raises(PiecesLost, match=r"pieces of [^ ]*one are"):
        backend.put_in_place(files, str(tmp_path), durable=False)
