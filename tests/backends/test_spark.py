"""Windows as Spark jobs: what arrives, what is sent on, and what comes back to the driver."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark import TaskContext

from dagkit import (
    Batch,
    DelayOperator,
    InputOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    State,
    StatelessPartitioner,
    StreamCodec,
)
from dagkit.backends.spark import SparkBackend, SparkFailed
from dagkit.backends.spark.level_files import folder_in
from dagkit.backends.spark.task import SlotReport
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.failures import OperatorFailed, WindowLost, WorkerDied
from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.staging import Part
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from dagkit.engine.worker.instances import StateUnreadable
from dagkit.engine.worker.outbox import Outbox
from dagkit.engine.worker.protocol import Answer, Report, WindowTask
from tests.backends.places import ON_BOTH
from tests.patience import within

pytestmark = [pytest.mark.slow, pytest.mark.spark]


class Words(InputOperator):
    out = OutputPort(str)


class Count(Operator):
    words = InputPort(str)
    totals = OutputPort(tuple)
    counts = KeyedState[str, int](int)

    def process(self, word: str) -> None:
        if word == "fail":
            raise ValueError("no such word")
        self.counts[word] += 1

    def end_window(self) -> None:
        for word, number in self.counts.items():
            self.totals.emit((word, number))


class Collect(Operator):
    input = InputPort[Any]()
    arrived = State[list[str]](list)

    def process(self, item: Any) -> None:
        self.arrived.append(str(item))


def counting(partitions: int) -> Compilation:
    def draw(dag: Any, conf: object) -> None:
        words = dag.add_operator("words", Words())
        count = dag.add_operator("count", Count())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        words >> count >> dag.add_operator("collect", Collect())

    return compile_application(draw)


def sent(compilation: Compilation, items: list[Any], source: str = "words", port: str = "out") -> tuple[Any, ...]:
    outbox = Outbox(0)
    for target in program_of(compilation).sources[source][port]:
        outbox.channel(target).batch(Batch.of(items))
    return tuple(outbox.rest())


def state_of(answer: Answer, operator: str) -> list[Any]:
    return [report.state[operator] for report in answer.reports if operator in report.state]


@pytest.mark.parametrize(
    ("session", "partitions"),
    [("classic", 1), ("classic", 3), pytest.param("connect", 1, marks=pytest.mark.trial), ("connect", 3)],
    indirect=["session"],
)
def test_words_are_counted_over_windows(session, partitions):
    counting_words = counting(partitions)
    backend = SparkBackend(counting_words, session)
    state: Any = {}
    for window, text in enumerate(["a b a", "c a"], 1):
        answer = backend.run(WindowTask(window, sent(counting_words, text.split()), state))
        state = {(report.level, report.slot): report.state for report in answer.reports}
    (collected,) = state_of(answer, "collect")
    assert sorted(collected["arrived"]) == sorted(map(str, [("a", 2), ("b", 1), ("a", 3), ("b", 1), ("c", 1)]))
    backend.close()


@ON_BOTH
def test_what_an_operator_raises_arrives_as_a_failure(session):
    counting_words = counting(2)
    backend = SparkBackend(counting_words, session)
    with pytest.raises(OperatorFailed, match="no such word") as raised:
        backend.run(WindowTask(1, sent(counting_words, ["a", "fail"])))
    assert (raised.value.failure.operator, raised.value.failure.window_id) == ("count", 1)
    assert "in process" in raised.value.failure.traceback
    backend.close()


class Careful(StreamCodec[str]):
    """Writes all words but one, and reads all but one."""

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
        words, near, far = dag.add_operator("words", Words()), dag.add_operator("near", Round()), Same()
        dag.add_operator("far", far)
        delay = dag.add_operator("delay", DelayOperator[str]())
        dag.set_operator_attribute(far, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.add_stream("words", words.out, near.words)
        dag.add_stream("there", near.output, far.input)
        dag.add_stream("held", far.output, delay.input)
        dag.add_stream("back", delay.output, near.again)
        port = {"near": near.words, "far": far.input, "again": near.again}[receiver]
        dag.set_input_port_attribute(port, PortContext.STREAM_CODEC, Careful())

    return compile_application(draw)


@pytest.mark.parametrize("word", ["unwritable", "unreadable"])
@pytest.mark.parametrize("receiver", ["near", "far", "again"])
def test_what_a_codec_raises_is_reported_of_the_operator_that_receives(session, receiver, word):
    coding = coded(receiver)
    backend = SparkBackend(coding, session)
    with pytest.raises(OperatorFailed, match=f"no such word can be {word[2:6]}") as raised:
        backend.run(WindowTask(3, sent(coding, ["a", word])))
    failure = raised.value.failure
    assert (failure.operator, failure.window_id) == ("far" if receiver == "far" else "near", 3)
    assert raised.value.code == "codec-failed"
    assert failure.traceback.splitlines()[1].endswith("_bytes")
    backend.close()


class Blow(Operator):
    """Holds more than a closure should, and as much on the next level."""

    words = InputPort(str)
    held = State[str](str)
    out = OutputPort(str)

    def process(self, word: str) -> None:
        self.held += word
        self.out.emit(word)


def blown_up(dag: Any, conf: object) -> None:
    words, first, second = (
        dag.add_operator("words", Words()),
        *(dag.add_operator(n, Blow()) for n in ("first", "second")),
    )
    for blow in (first, second):
        dag.set_operator_attribute(blow, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    words >> first >> second


def test_large_state_goes_to_each_slot_by_itself(session, monkeypatch):
    monkeypatch.setattr("dagkit.backends.spark.backend.LARGEST_SHARED_BYTES", 1000)
    blowing = compile_application(blown_up)
    backend = SparkBackend(blowing, session)
    texts = [str(number) * 1_000_000 for number in range(4)]
    state: Any = {}
    for window in (1, 2):
        answer = backend.run(WindowTask(window, sent(blowing, texts), state))
        state = {(report.level, report.slot): report.state for report in answer.reports}
        for operator in ("first", "second"):
            held = sum(len(state["held"]) for state in state_of(answer, operator))
            assert held == window * len(texts) * 1_000_000
    backend.close()


def laden(dag: Any, conf: object) -> None:
    dag.add_operator("words", Words()) >> dag.add_operator("laden", Laden(load="x" * 2_000_000))


class Laden(Blow):
    """Travels with more than a closure should hold."""

    load: str = ""


@pytest.mark.parametrize("draw", [blown_up, laden], ids=["state", "program"])
def test_what_is_large_leaves_nothing_on_the_drivers_disk(spark, draw):
    folder = Path(str(spark.sparkContext._temp_dir))
    large = compile_application(draw)
    backend = SparkBackend(large, spark)
    before = set(folder.rglob("*"))
    state: Any = {}
    for window in (1, 2):
        answer = backend.run(WindowTask(window, sent(large, ["a" * 3_000_000]), state))
        state = {(report.level, report.slot): report.state for report in answer.reports}
        assert set(folder.rglob("*")) == before
    assert sum(len(kept["held"]) for report in answer.reports for kept in report.state.values()) >= 6_000_000
    backend.close()


def test_a_session_with_settings_of_its_own_is_used_as_it_is(spark):
    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "true")
    own.conf.set("spark.sql.adaptive.coalescePartitions.initialPartitionNum", "1")
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    own.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    counting_words = counting(5)
    backend = SparkBackend(counting_words, own)
    words = [f"{number % 50}" for number in range(50_000)]
    answer = backend.run(WindowTask(1, sent(counting_words, words)))
    (collected,) = state_of(answer, "collect")
    assert sorted(collected["arrived"]) == sorted(str((str(number), 1000)) for number in range(50))
    backend.close()


class Pair(Operator):
    """Takes from near and from far."""

    near = InputPort(tuple)
    far = InputPort(str)
    arrived = State[list[str]](list)

    @near.process
    def on_near(self, item: Any) -> None:
        self.arrived.append(f"near {item}")

    @far.process
    def on_far(self, item: str) -> None:
        self.arrived.append(f"far {item}")


class Same(Operator):
    input = InputPort(str)
    output = OutputPort(str)

    def process(self, item: str) -> None:
        self.output.emit(item)


def test_what_skips_a_level_passes_through_it(session):
    def draw(dag: Any, conf: object) -> None:
        words, same = dag.add_operator("words", Words()), dag.add_operator("same", Same())
        count, pair = dag.add_operator("count", Count()), dag.add_operator("pair", Pair())
        dag.set_operator_attribute(same, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(3))
        dag.add_stream("words", words.out, same.input)
        dag.add_stream("same", same.output, count.words, pair.far)
        dag.add_stream("counts", count.totals, pair.near)

    skipping = compile_application(draw)
    assert program_of(skipping).levels == 3
    backend = SparkBackend(skipping, session)
    answer = backend.run(WindowTask(1, sent(skipping, ["a", "b", "a"])))
    (paired,) = state_of(answer, "pair")
    assert sorted(paired["arrived"]) == ["far a", "far a", "far b", "near ('a', 2)", "near ('b', 1)"]
    backend.close()


class Round(Operator):
    """Sends what comes; what comes round again it keeps."""

    words = InputPort(str)
    again = InputPort(str)
    output = OutputPort(str)
    arrived = State[list[str]](list)

    @words.process
    def on_word(self, word: str) -> None:
        self.output.emit(word)

    @again.process
    def on_again(self, word: str) -> None:
        self.arrived.append(word)


class Query(Operator):
    """Collects the number of the query of Spark SQL that it runs in."""

    input = InputPort[Any]()
    numbers = State[list[str | None]](list)

    def process(self, item: Any) -> None:
        self.numbers.append(TaskContext.get().getLocalProperty("spark.sql.execution.id"))


def one_level(dag: Any, conf: object) -> None:
    dag.add_operator("words", Words()) >> dag.add_operator("query", Query())


def two_levels(dag: Any, conf: object) -> None:
    words, query = dag.add_operator("words", Words()), dag.add_operator("query", Query())
    count = dag.add_operator("count", Count())
    dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    words >> count >> query


@pytest.mark.parametrize(
    ("draw", "encrypts", "is_planned"),
    [(one_level, False, False), (two_levels, False, False), (one_level, True, False), (two_levels, True, True)],
)
def test_a_window_is_a_query_of_spark_sql_only_if_spark_encrypts_what_levels_exchange(
    spark, monkeypatch, draw, encrypts, is_planned
):
    monkeypatch.setattr("dagkit.backends.spark.backend._encrypts", lambda _: encrypts)
    compilation = compile_application(draw)
    backend = SparkBackend(compilation, spark)
    ((state,),) = [state_of(backend.run(WindowTask(1, sent(compilation, ["a"]))), "query")]
    assert [number is not None for number in state["numbers"]] == [is_planned]
    backend.close()


def test_no_files_of_rows_are_left_after_a_window_and_after_one_that_fails(spark):
    with folder_in(spark.sparkContext) as folder:
        place = Path(folder).parent
    counting_words = counting(2)
    with closing(SparkBackend(counting_words, spark)) as backend:
        backend.run(WindowTask(1, sent(counting_words, ["a", "b"])))
        assert not list(place.glob("window-*"))
        with pytest.raises(OperatorFailed):
            backend.run(WindowTask(2, sent(counting_words, ["a", "fail"])))
    assert not list(place.glob("window-*"))


def test_what_is_held_back_comes_to_the_driver(session):
    def draw(dag: Any, conf: object) -> None:
        words, turn = dag.add_operator("words", Words()), dag.add_operator("turn", Round())
        delay = dag.add_operator("delay", DelayOperator[str]())
        dag.add_stream("words", words.out, turn.words)
        dag.add_stream("out", turn.output, delay.input)
        dag.add_stream("again", delay.output, turn.again)

    delaying = compile_application(draw)
    backend = SparkBackend(delaying, session)
    first = backend.run(WindowTask(1, sent(delaying, ["a", "b"])))
    second = backend.run(WindowTask(2, first.delayed))
    assert [item for held in first.delayed for item in held.batch.items()] == ["a", "b"]
    assert [state["arrived"] for state in state_of(second, "turn")] == [["a", "b"]]
    backend.close()


class Exit(Operator):
    """Takes its whole process with it."""

    words = InputPort(str)

    def process(self, word: str) -> None:
        os._exit(1)


def ending(operator: Operator) -> Compilation:
    def draw(dag: Any, conf: object) -> None:
        dag.add_operator("words", Words()) >> dag.add_operator("ends", operator)

    return compile_application(draw)


def test_what_fails_in_spark_is_reported_as_a_failure_of_spark(session):
    leaving = ending(Exit())
    backend = SparkBackend(leaving, session)
    with pytest.raises(WorkerDied, match="Spark failed in window 7") as raised:
        backend.run(WindowTask(7, sent(leaving, ["a"])))
    assert raised.value.__cause__ is not None
    backend.close()


class Settled(Operator):
    """Remembers a number."""

    words = InputPort(str)
    seen = State[tuple[int, str]]((0, ""))

    def process(self, word: str) -> None:
        self.seen = (1, word)


def told_by(program: Program, above: bytes) -> list[SlotReport]:
    """The reports of all slots; the last level received from an attempt of this name at each slot of the first."""
    first, last = (range(program.slots_at(level)) for level in (0, 1))
    return [
        *(SlotReport(Report(level=0, slot=slot), None, b"first", {}) for slot in first),
        *(SlotReport(Report(level=1, slot=slot), None, b"last", dict.fromkeys(first, above)) for slot in last),
    ]


def test_parts_of_a_window_that_do_not_fit_together_are_no_answer(spark):
    counting_words = counting(2)
    backend = SparkBackend(counting_words, spark)
    whole = told_by(program_of(counting_words), b"first")
    backend._check(WindowTask(4), whole)
    with pytest.raises(SparkFailed, match="ran part of window 4 again"):
        backend._check(WindowTask(4), told_by(program_of(counting_words), b"second"))
    with pytest.raises(AssertionError, match="every slot reports"):
        backend._check(WindowTask(4), whole[1:])
    with pytest.raises(AssertionError, match="each slot reports once"):
        backend._check(WindowTask(4), [*whole, whole[0]])
    backend.close()


def test_what_keeps_a_slot_from_beginning_fails_with_its_own_code(session):
    settled = ending(Settled())
    backend = SparkBackend(settled, session)
    with pytest.raises(StateUnreadable, match=r"seen .*\[state-unreadable\]"):
        backend.run(WindowTask(2, sent(settled, ["a"]), {(0, 0): {"ends": {"seen": "nothing of the kind"}}}))
    backend.close()


class Linger(Operator):
    """Works on for a very long time."""

    words = InputPort(str)

    def process(self, word: str) -> None:
        Path(word).touch()
        time.sleep(600)  # sleeps: the test ends it


def test_closing_ends_what_runs(session, tmp_path):
    lingering = ending(Linger())
    backend = SparkBackend(lingering, session)
    sign = tmp_path / "at work"
    with ThreadPoolExecutor(1) as pool:
        window = pool.submit(backend.run, WindowTask(1, sent(lingering, [str(sign)])))
        while not sign.exists() and not window.done():
            time.sleep(0.05)  # sleeps: between two looks at a file
        backend.close()
        with pytest.raises(SparkFailed):
            window.result(within(60))


def test_closing_ends_what_is_on_its_way_to_spark(session, tmp_path, monkeypatch):
    lingering = ending(Linger())
    backend = SparkBackend(lingering, session)
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
        window = pool.submit(backend.run, WindowTask(1, sent(lingering, [str(tmp_path / "at work")])))
        assert is_built.wait(within(60))
        backend.close()
        with pytest.raises(SparkFailed, match="Spark failed in window 1"):
            window.result(within(60))


def test_a_window_that_comes_after_closing_is_refused(session):
    counting_words = counting(1)
    backend = SparkBackend(counting_words, session)
    backend.close()
    with pytest.raises(WindowLost, match="the backend is closed and runs no more jobs"):
        backend.run(WindowTask(1, sent(counting_words, ["a"])))


def test_tasks_are_interrupted_for_the_threads_that_run_jobs_and_for_no_others(spark):
    context, name = spark.sparkContext, "spark.job.interruptOnCancel"
    backend = SparkBackend(counting(1), spark)
    assert context.getLocalProperty(name) is None

    def in_a_thread(before: str | None) -> tuple[str | None, str | None]:
        context.setLocalProperty(name, before)  # type: ignore[arg-type] # none takes it away
        with backend._jobs.tagged():
            meanwhile = context.getLocalProperty(name)
        return meanwhile, context.getLocalProperty(name)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_a_thread, None).result(within(120)) == ("true", None)
        assert pool.submit(in_a_thread, "false").result(within(120)) == ("true", "false")
    backend.close()


def test_two_windows_run_at_the_same_time(session):
    counting_words = counting(2)
    backend = SparkBackend(counting_words, session)
    with ThreadPoolExecutor(2) as pool:
        both = [WindowTask(number, sent(counting_words, ["a"] * number)) for number in (1, 2)]
        answers = list(pool.map(backend.run, both))
    assert [state_of(answer, "collect")[0]["arrived"] for answer in answers] == [["('a', 1)"], ["('a', 2)"]]
    backend.close()


@pytest.mark.parametrize("by_job", [True, False], ids=["by a job", "by the driver"])
def test_files_are_made_of_their_pieces(session, tmp_path, monkeypatch, by_job):
    if by_job:
        monkeypatch.setattr("dagkit.backends.spark.placing.MANY_BYTES", 1)
    backend = SparkBackend(counting(1), session)
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
    backend.close()
