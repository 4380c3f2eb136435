"""What a launch reports as changed is what people changed, not what its runs did."""

from datetime import UTC, datetime

import pytest

from dagkit import Config, OperatorContext, StatelessPartitioner
from dagkit.compiler import compile_application
from dagkit.engine.run.launch_record import LaunchRecord, differences
from dagkit.ledger import Ledger
from tests.engine.cast import Collect, Digits, Ranges


def compiled(readers, waits_every=0):
    def graph(dag, conf):
        digits = dag.add_operator("digits", Digits(waits_every=waits_every))
        dag.add_operator("ranges", Ranges()) >> digits >> dag.add_operator("collect", Collect())
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(readers))

    return compile_application(graph, Config.of({}))


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (compiled(1), None),
        (compiled(1, waits_every=3), ("operator digits: property waits_every changes from 0 to 3",)),
    ],
)
def test_the_partitions_that_a_run_ended_with_are_no_change(tmp_path, now, changes):
    store = Ledger.create(str(tmp_path), durable=False).store
    LaunchRecord.of(compiled(1), compiled(2).plan, "1", datetime.now(UTC)).write(store)
    differing = differences(store, now.plan, 1)
    assert (None if differing is None else differing.changes) == changes
