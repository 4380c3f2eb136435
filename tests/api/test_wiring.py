"""`>>`: the same streams as add_stream draws, with the ports chosen where only one pair can be meant."""

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort
from dagkit.compiler import compile_application
from dagkit.graph import graph_of
from dagkit.plan import fingerprint


class Block: ...


class Line: ...


class Word: ...


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


def _cast(dag: Dag) -> tuple[Splitter, Reader, Keep, Log]:
    return (
        dag.add_operator("splitter", Splitter()),
        dag.add_operator("reader", Reader()),
        dag.add_operator("keep", Keep()),
        dag.add_operator("log", Log()),
    )


def _drawn(dag: Dag) -> list[str]:
    graph, faults = graph_of(dag, "app")
    assert faults == []
    return [f"{s.name}: {s.source} > {', '.join(map(str, s.sinks))}" for s in graph.streams]


def by_ports(dag: Dag) -> None:
    splitter, reader, keep, log = _cast(dag)
    splitter.blocks.named("blocks") >> reader.blocks_in
    reader.messages.named("records") >> keep.input
    keep.output.named("kept") >> log.lines


def by_operators(dag: Dag) -> None:
    splitter, reader, keep, log = _cast(dag)
    splitter.blocks.named("blocks") >> reader
    reader.messages.named("records") >> keep
    keep.output.named("kept") >> log


def by_add_stream(dag: Dag) -> None:
    splitter, reader, keep, log = _cast(dag)
    dag.add_stream("blocks", splitter.blocks, reader.blocks_in)
    dag.add_stream("records", reader.messages, keep.input)
    dag.add_stream("kept", keep.output, log.lines)


@pytest.mark.parametrize("draw", [by_ports, by_operators], ids=["by ports", "by operators"])
def test_wires_are_the_streams_that_add_stream_draws(draw):
    wired, added = Dag(), Dag()
    draw(wired)
    by_add_stream(added)
    assert _drawn(wired) == _drawn(added)
    assert fingerprint(compile_application(wired).plan) == fingerprint(compile_application(added).plan)


def test_wires_chain_and_streams_are_called_after_their_source():
    dag = Dag()
    splitter, reader, keep, log = _cast(dag)
    splitter >> reader >> keep >> log
    assert _drawn(dag) == [
        "splitter:blocks: splitter.blocks > reader.blocks_in",
        "reader:messages: reader.messages > keep.input",
        "keep:output: keep.output > log.lines",
    ]


def test_wiring_one_output_again_adds_a_sink_to_its_stream():
    dag = Dag()
    _, reader, keep, log = _cast(dag)
    reader.messages.named("records") >> keep
    reader.messages >> log
    assert _drawn(dag) == ["records: reader.messages > keep.input, log.lines"]


def test_another_name_for_a_wired_output_is_reported():
    dag = Dag()
    _, reader, keep, log = _cast(dag)
    reader.messages.named("records") >> keep
    reader.messages.named("lines") >> log
    assert [(f.code, f.problem) for f in dag.faults] == [
        ("port-taken", "reader.messages is already on stream 'records', and cannot be on 'lines'")
    ]


def test_names_given_to_wires_are_judged_as_stream_names_are():
    dag = Dag()
    splitter, reader, keep, _ = _cast(dag)
    splitter.blocks.named("a.b") >> reader
    reader.messages.named("a.b") >> keep
    assert [fault.code for fault in dag.faults] == ["name-malformed", "name-malformed", "stream-duplicated"]


def test_the_main_ports_are_meant_where_several_fit():
    dag = Dag()
    splitter, anything = dag.add_operator("splitter", Splitter()), dag.add_operator("anything", Anything())
    splitter >> anything
    assert _drawn(dag) == ["splitter:blocks: splitter.blocks > anything.main"]


def test_the_required_input_is_meant_where_another_is_optional():
    dag = Dag()
    _, _, keep, log = _cast(dag)
    keep >> log
    assert _drawn(dag) == ["keep:output: keep.output > log.lines"]


def test_ports_that_are_written_out_are_taken_even_if_they_do_not_fit():
    dag = Dag()
    keep, spell = dag.add_operator("keep", Keep()), dag.add_operator("spell", Spell())
    keep.output >> spell.words
    assert _drawn(dag) == ["keep:output: keep.output > spell.words"]


@pytest.mark.parametrize(
    ("source", "sink", "why"),
    [
        (Keep(), Join(), "left >> right: several ports match: output to left, output to right"),
        (Reader(), Spell(), "left >> right: no output of the left operator matches an input of the right one"),
        (Log(), Spell(), "left >> right: no output of the left operator matches an input of the right one"),
        (Reader(), Splitter(), "left >> right: no output of the left operator matches an input of the right one"),
    ],
    ids=["two inputs fit", "none fits", "the left has no outputs", "the right has no inputs"],
)
def test_a_wire_that_can_mean_several_things_or_none_is_reported(source, sink, why):
    dag = Dag()
    dag.add_operator("left", source)
    dag.add_operator("right", sink)
    assert (source >> sink) is sink
    assert [(fault.code, fault.problem) for fault in dag.faults] == [("wiring-ambiguous", why)]
    assert dag.streams == []


def test_wiring_what_was_never_added_is_refused():
    with pytest.raises(ValueError, match="Keep is wired with >> before"):
        Keep() >> Log()
