"""What the records in `docs/decisions` say was chosen, where no test of the compiler or of plans proves it."""

from dagkit import Config, InputOperator, OutputPort
from dagkit.compiler import compile_application


class Words(InputOperator):
    words = OutputPort(str)
    least: int = 0


def test_0002_configuration_can_fix_what_the_laws_would_have_judged():
    def populate_dag(dag, _):
        dag.add_operator("A", Words(least="many"))

    plan = compile_application(populate_dag, Config.of({"dt.operator.A.prop.least": "3"})).plan
    assert plan.by_name["A"].properties == {"least": 3}
