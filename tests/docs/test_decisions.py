"""What the records in `docs/decisions` say was chosen is what the code does."""

import sys
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest

from dagkit import (
    ApplicationFaults,
    Config,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    Partition,
    Partitioner,
    PartitioningContext,
    PortContext,
    RowOperator,
    StatelessPartitioner,
)
from dagkit.compiler import STEPS, compile_application
from dagkit.plan import fingerprint
from dagkit.plan.portable import portable
from tests.docs.fences import ROOT
from tests.processes import run_program

WRONG: dict[str, Any] = {"least": "many"}
UNKNOWN: dict[str, Any] = {"most": "few"}
"""Properties as an untyped caller gives them."""


class Words(InputOperator):
    words = OutputPort(str)
    least: int = 0


class Upper(RowOperator):
    input = InputPort(str)
    output = OutputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield item.upper()


class Join(Operator):
    left = InputPort(str)
    right = InputPort(str)


def test_0001_building_a_component_never_raises_and_configuring_it_validates_again():
    faulty = Words(**WRONG)
    assert [fault.path for fault in faulty.faults] == ["least"]
    assert faulty.configured({"least": 3}).faults == ()


def test_0001_one_report_names_the_faults_of_every_operator():
    def populate_dag(dag, _):
        dag.add_operator("A", Words(**WRONG))
        dag.add_operator("B", Words(**UNKNOWN))

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(populate_dag)
    assert raised.value.codes == ("property-invalid", "property-unknown")


def test_0002_checking_follows_resolving():
    assert STEPS.index("checked") == STEPS.index("resolved") + 1


def _wrong(dag, _):
    dag.add_operator("A", Words(**WRONG))


def test_0002_configuration_can_fix_what_the_laws_would_have_judged():
    plan = compile_application(_wrong, Config.of({"dt.operator.A.prop.least": "3"})).plan
    assert plan.by_name["A"].properties == {"least": 3}


def _joined(order):
    """One graph, its operators placed and its streams led in another order."""

    def populate_dag(dag, _):
        first, second, join = Words(), Words(), Join()
        placing = [("A", first), ("B", second), ("J", join)]
        for index in order:
            dag.add_operator(*placing[index])
        leading = [("a", first.words, join.left), ("b", second.words, join.right)]
        for stream in leading if order[0] < order[1] else reversed(leading):
            dag.add_stream(*stream)
        dag.set_operator_attribute(join, OperatorContext.PARTITIONER, StatelessPartitioner(3))

    return compile_application(populate_dag).plan


def test_0003_keys_go_to_the_first_declared_input_in_any_order_of_insertion():
    plans = [_joined(order) for order in permutations(range(3))]
    assert {tuple(p.keys) for plan in plans for p in plan.by_name["J"].partitions} == {("left",)}
    assert len({fingerprint(plan) for plan in plans}) == 1


class Asked(Partitioner):
    """Keeps the keys that it may use."""

    def __init__(self) -> None:
        self.ports: list[tuple[str, ...]] = []

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        self.ports.append(context.input_ports)
        return partitions


def test_0003_a_parallel_input_is_not_keyed():
    asked = Asked()

    def populate_dag(dag, _):
        first, second, join = (
            dag.add_operator("A", Words()),
            dag.add_operator("B", Words()),
            dag.add_operator("J", Join()),
        )
        dag.add_stream("a", first.words, join.left)
        dag.add_stream("b", second.words, join.right)
        dag.set_input_port_attribute(join.left, PortContext.PARTITION_PARALLEL, True)
        dag.set_operator_attribute(join, OperatorContext.PARTITIONER, asked)

    compile_application(populate_dag)
    assert asked.ports == [("right",)]


def test_0004_a_fan_out_ends_its_stage_and_a_join_starts_one():
    def populate_dag(dag, _):
        words, join = dag.add_operator("W", Words()), dag.add_operator("J", Join())
        a, b, c = (dag.add_operator(name, Upper()) for name in "ABC")
        dag.add_stream("words", words.words, a.input)
        dag.add_stream("both", a.output, b.input, c.input)
        dag.add_stream("left", b.output, join.left)
        dag.add_stream("right", c.output, join.right)

    plan = compile_application(populate_dag).plan
    assert [stage.operators for stage in plan.stages] == [("W",), ("A",), ("B",), ("C",), ("J",)]
    assert {stage.level for stage in plan.stages} == {0}


def test_0005_a_named_function_is_its_name_and_a_lambda_also_what_it_does():
    assert portable(len) == {"$function": "builtins:len"}
    one, two, three = portable(lambda n: n + 1), portable(lambda n: n + 1), portable(lambda n: n + 2)
    assert one == two != three


@pytest.mark.slow
def test_0005_the_digest_is_equal_in_every_process():
    program = (
        "from dagkit.plan.portable import portable; print(portable(lambda w: w in {'apple', 'fig', 'pear', 'plum'}))"
    )
    seen = {
        run_program([sys.executable, "-c", program], cwd=ROOT, env={"PYTHONHASHSEED": seed}, seconds=50).stdout
        for seed in "123"
    }
    assert len(seen) == 1


def test_0006_an_unknown_key_is_an_error_unless_the_launch_allows_it():
    def populate_dag(dag, _):
        dag.add_operator("A", Words())

    conf = Config.of({"dt.operator.B.prop.least": "3"})
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(populate_dag, conf)
    assert raised.value.codes == ("key-unmatched",)
    (note,) = compile_application(populate_dag, conf, allow_unknown=True).notes
    assert (note.code, note.severity) == ("key-unmatched", "warning")


def test_0006_a_key_that_the_application_reads_is_no_unknown_one():
    def populate_dag(dag, conf):
        dag.add_operator("A", Words(least=conf.read("dt.limit", int, 0)))

    assert compile_application(populate_dag, Config.of({"dt.limit": "3"})).notes == ()
