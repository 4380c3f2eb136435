"""`>>`: the same streams as add_stream draws, with the ports chosen where only one pair can be meant."""

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort
from dagkit.compiler import compile_application
from dagkit.graph import graph_of
from dagkit.plan import fingerprint
from tests.cases import cases
from tests.compiler.cast import Line, Word


class Block: ...


class Splitter(InputOperator):
    blocks = OutputPort(Block, main=True)
    files = OutputPort(Line)


class Reader(Operator):
    blocks_in = InputPort(Block)
    messages = OutputPort(Line)
    blocks_out = OutputPort(Block)


class Keep(Operator):
    input = InputPort(Line)
    output = OutputPort(Line)


class Join(Operator):
    left = InputPort(Line)
    right = InputPort(Line)


class Log(Operator):
    lines = InputPort(Line)
    notes = InputPort(Line, optional=True)


class Spell(Operator):
    words = InputPort(Word)


class Anything(Operator):
    main = InputPort(object, main=True)
    beside = InputPort(object)


CAST = {kind.__name__.lower(): kind for kind in (Splitter, Reader, Keep, Log, Spell, Anything)}


def _placed(names="splitter reader keep log"):
    dag = Dag()
    return dag, *(dag.add_operator(name, CAST[name]()) for name in names.split())


def _drawn(dag):
    graph, faults = graph_of(dag, "app")
    assert faults == []
    return [f"{s.name}: {s.source} > {', '.join(map(str, s.sinks))}" for s in graph.streams]


@pytest.mark.parametrize("by", ["ports", "operators"])
def test_wires_are_the_streams_that_add_stream_draws(by):
    wired, splitter, reader, keep, log = _placed()
    splitter.blocks.named("blocks") >> (reader.blocks_in if by == "ports" else reader)
    reader.messages.named("records") >> (keep.input if by == "ports" else keep)
    keep.output.named("kept") >> (log.lines if by == "ports" else log)
    added, splitter, reader, keep, log = _placed()
    added.add_stream("blocks", splitter.blocks, reader.blocks_in)
    added.add_stream("records", reader.messages, keep.input)
    added.add_stream("kept", keep.output, log.lines)
    assert _drawn(wired) == _drawn(added)
    assert fingerprint(compile_application(wired).plan) == fingerprint(compile_application(added).plan)


def test_wires_chain_and_streams_are_called_after_their_source():
    """The required input is meant where another is optional."""
    dag, splitter, reader, keep, log = _placed()
    splitter >> reader >> keep >> log
    assert _drawn(dag) == [
        "splitter:blocks: splitter.blocks > reader.blocks_in",
        "reader:messages: reader.messages > keep.input",
        "keep:output: keep.output > log.lines",
    ]


def test_wiring_one_output_again_adds_a_sink_to_its_stream_and_another_name_is_reported():
    dag, reader, keep, log = _placed("reader keep log")
    reader.messages.named("records") >> keep
    reader.messages >> log
    assert _drawn(dag) == ["records: reader.messages > keep.input, log.lines"]
    reader.messages.named("lines") >> log
    problem = "reader.messages is already on stream 'records', and cannot be on 'lines'"
    assert [(f.code, f.problem) for f in dag.faults] == [("port-taken", problem)]
    keep.outputs.named("kept") >> log
    keep.outputs.named("others") >> log
    problem = "keep.outputs is already on stream 'kept', and cannot be on 'others'"
    assert [f.problem for f in dag.faults[1:] if f.code == "port-taken"] == [problem]


def test_names_given_to_wires_are_judged_as_stream_names_are():
    dag, splitter, reader, keep, _ = _placed()
    splitter.blocks.named("a.b") >> reader
    reader.messages.named("a.b") >> keep
    assert [fault.code for fault in dag.faults] == ["name-malformed", "name-malformed", "stream-duplicated"]


def test_the_main_ports_are_meant_where_several_fit_and_ports_that_are_written_out_are_taken():
    dag, splitter, anything = _placed("splitter anything")
    splitter >> anything
    assert _drawn(dag) == ["splitter:blocks: splitter.blocks > anything.main"]
    dag, keep, spell = _placed("keep spell")
    keep.output >> spell.words
    assert _drawn(dag) == ["keep:output: keep.output > spell.words"]


NONE = "no output of the left operator matches an input of the right one"


@cases(
    "source, sink, why",
    ("two inputs fit", Keep(), Join(), "several ports match: output to left, output to right"),
    ("none fits", Reader(), Spell(), NONE),
    ("the left has no outputs", Log(), Spell(), NONE),
    ("the right has no inputs", Reader(), Splitter(), NONE),
)
def test_a_wire_that_can_mean_several_things_or_none_is_reported(source, sink, why):
    dag = Dag()
    dag.add_operator("left", source)
    dag.add_operator("right", sink)
    assert (source >> sink) is sink
    assert [(f.code, f.problem) for f in dag.faults] == [("wiring-ambiguous", f"left >> right: {why}")]
    assert dag.streams == []


def test_wiring_what_was_never_added_is_refused():
    with pytest.raises(ValueError, match="Keep is wired with >> before"):
        Keep() >> Log()
