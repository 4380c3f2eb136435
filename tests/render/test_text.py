"""The text form: every operator once, and rails that lead from outlets to inlets."""

import re
import sys
from textwrap import dedent

from dagkit.render import logical, physical, text
from tests.render import samples


def drawn(block):
    return dedent(block).lstrip("\n")


def listing(dag, name="", **options):
    return text(logical(samples.graph(dag, name)), **options)


def test_a_chain_with_parallel_streams():
    assert text(logical(samples.graph(samples.line_filter(), "LineFilter"))) == drawn("""
        LineFilter: logical, 4 operators, 3 streams

            ● File-splitter  (FileSplitter, input)
        ╭──     blocks_metadata_output → file-block metadata (FileBlock)
        │   ● Block-reader  (LineReader)
        ╰─>     blocks_metadata_input
        ╔══     messages → records (Line, thread local)
        ║   ● Filter
        ╚═>     input  (partition-parallel)
        ╔══     output → filtered-records (Line)
        ║   ● Record-writer  (RecordWriter)
        ╚═>     input  (partition-parallel)
        """)


def test_a_fan_out_and_a_loop_print_nothing_twice():
    assert text(logical(samples.graph(samples.word_count(), "WordCount"))) == drawn("""
        WordCount: logical, 6 operators, 5 streams

                ● files  (FileSplitter, input)
            ╭──     blocks_metadata_output → blocks (FileBlock)
            │   ● reader  (LineReader)
            ╰─>     blocks_metadata_input
        ╭──────     messages → lines (Line)
        │       ● split  (Split)
        ├─────>     lines
        │   ╭──     words → words (Word)
        │   │   ● count ×3  (Count)
        │   ╰─>     words
        │ ╭┄┄┄>     feedback  (next window)
        │ ┊ ╭──     counts → counts (dict[str, int])
        │ ┊ │   ● last window  (Delay, delay)
        │ ┊ ╰─>     input
        │ ╰┄┄┄┄     output → counts so far
        │       ● archive  (RecordWriter)
        ╰─────>     input
        """)  # noqa: RUF001 - the sign that is shown


def test_stages_unifiers_and_keys():
    assert text(physical(samples.m_by_n_plan())) == drawn("""
        MxN: physical, 4 operators, 4 stages, 3 levels, 2 exchanges

            stage (driver)
            ● lines  (LineSource, input)
        ╭──     lines → lines (Line)
        │
        │   stage (level 0, 3 slots)
        │   ● split ×3  (Split)  0: keys 0, 3; 1: key 1; 2: key 2
        ╰─>     lines  (from the driver, by key)
        ╭──     words → words (Word, by key, shuffled)
        │
        │   stage (level 1, 3 slots)
        ╰─> ● merge ×3  (unifier of words)
        ╭──     unified
        │   ● count ×3  (Total)  0: keys 0, 3; 1: key 1; 2: key 2
        ╰─>     words
        ╭──     counts → counts (dict[str, int], gathered, shuffled)
        │
        │   stage (level 2, 1 slot)
        ╰─> ● Sum  (unifier of counts)
        ╭──     unified
        │   ● report  (Report)
        ╰─>     counts
        """)  # noqa: RUF001 - the sign that is shown


def test_a_half_wired_dag_says_what_is_missing():
    said = [line.strip(" ╭╰│├─>") for line in listing(samples.half_wired()).splitlines()]
    assert said[0] == "logical, 6 operators, 5 streams"
    assert {
        "input  (not connected)",
        "? from nowhere (Line) has no source",
        "lines → to nowhere (Line, not read) and from both (Line)",
    } <= set(said)


def test_every_operator_is_named_once_and_every_rail_ends_at_its_inlet_however_large_the_graph():
    dag = samples.layered(10, 6)
    shown = listing(dag)
    for placement in dag.placements:
        assert len(re.findall(rf"● {re.escape(placement.name)}  ", shown)) == 1
        assert shown.count(placement.name) == 1
    assert len([line for line in shown.splitlines() if re.match(r"[^●a-z]*>", line)]) == 9 * (6 + 2)


def test_without_room_for_rails_streams_are_reported_by_number(monkeypatch):
    monkeypatch.setattr(sys.modules["dagkit.render.text"], "MOST_RAILS", 1)
    numbered = [line.strip() for line in listing(samples.word_count()).splitlines() if "[1]" in line]
    assert numbered == ["messages → lines (Line)  [1]", "lines  [1]", "input  [1]"]


def test_names_cannot_break_the_lines():
    shown = listing(samples.hostile())
    assert (len(shown.splitlines()), "\x1b" in shown) == (2 + 3 * len(samples.HOSTILE) - 2, False)
