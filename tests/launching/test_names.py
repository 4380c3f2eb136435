"""Applications of different programs and notebooks do not share a ledger by accident."""

import logging
import sys
from types import ModuleType

import pytest
from pydantic import SecretStr

from dagkit import Config, Dag, InputPort, Operator
from dagkit.api.application import FunctionApplication
from dagkit.compiler import compile_application
from dagkit.engine.run.launch_record import LAUNCHED, last_launch
from dagkit.launching import Launched, Machine, launch
from dagkit.ledger import Ledger
from dagkit_operators import Items
from tests.engine.cast import numbers_collected
from tests.processes import run_program

PROGRAM = """
from dagkit.api.application import FunctionApplication


def populate_dag(dag, conf):
    pass


print(FunctionApplication(populate=populate_dag).application_name)
"""


def named(**known: str) -> str:
    """The name of an application of a function in a main module with these attributes."""

    def populate(dag: object, conf: object) -> None:
        pass

    populate.__module__ = "__main__"
    main = ModuleType("__main__")
    vars(main).update(known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", main)
        return FunctionApplication(populate=populate).application_name


@pytest.mark.slow
@pytest.mark.parametrize(("file", "name"), [("orders.py", "orders"), ("app.py", "shop")])
def test_a_function_of_a_program_is_called_after_its_file(tmp_path, file, name):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / file).write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "shop" / file)]
    assert run_program(command, seconds=50).stdout == f"{name}\n"


def test_a_function_of_a_notebook_is_called_after_it_and_one_of_a_package_that_runs_after_the_package(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ann/clicks.ipynb")
    assert named() == "clicks"
    assert named(__vsc_ipynb_file__="/home/ann/orders.ipynb") == "orders"
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert named() == "interactive"
    assert named(__file__="/home/ann/shop/__main__.py") == "shop"


def test_a_program_resumes_in_the_ledger_of_an_earlier_version(tmp_path, monkeypatch):
    def run(called: str) -> Launched:
        application = FunctionApplication(populate=numbers_collected(((3,),)), called=called)
        return launch(application, until="once", machine=Machine("reference"), durable=False)

    monkeypatch.chdir(tmp_path)
    before = run("__main__").window_id  # what an earlier version called it
    resumed = run(named(__file__=str(tmp_path / "orders.py")))
    assert resumed.application_path == str(tmp_path / ".dagkit/__main__")
    assert (resumed.window_id, before > 0) == (before, True)
    (tmp_path / ".dagkit/__main__").rename(tmp_path / ".dagkit/first")
    own = run(named(__file__=str(tmp_path / "orders.py")))
    assert own.application_path == str(tmp_path / ".dagkit/orders")


def test_another_application_of_the_same_name_is_reported(tmp_path, caplog):
    def run(looks: tuple[tuple[int, ...], ...]) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            options = {"machine": Machine("reference"), "path": tmp_path / "app", "durable": False}
            launch(numbers_collected(looks), until="once", **options)
        return [record.getMessage() for record in caplog.records if record.name == "dagkit.launching"]

    assert run(((3,),)) == []
    assert run(((3,),)) == []
    (warning,) = run(((4,),))
    assert "operator ranges: property looks changes" in warning
    assert "input that was processed is not processed again" in warning


SECRET = "hunter2"  # noqa: S105 - it opens nothing


class Keeper(Operator):
    input = InputPort(int)
    password: SecretStr = SecretStr("")

    def process(self, item: int) -> None: ...


def keeping(dag: Dag, conf: Config) -> None:
    dag.add_operator("Items", Items(items=[1, 2, 3])) >> dag.add_operator("Keeper", Keeper())


@pytest.mark.parametrize("name", ["a", "a\udcff"], ids=["UTF-8", "a folder whose name is not UTF-8"])
def test_the_record_has_the_plan_and_the_configuration_without_secrets(tmp_path, name):
    settings = {"dt.operator.Keeper.prop.password": SECRET, "dt.attr.APPLICATION_PATH": str(tmp_path / name)}
    launch(keeping, settings, until="once", machine=Machine("reference"))
    found = last_launch(Ledger.open(tmp_path / name).store)
    assert found.plan == compile_application(keeping, Config.of(settings)).plan
    assert [(entry["key"], entry["holds"]) for entry in found.configuration] == [(key, True) for key in settings]
    assert SECRET not in (tmp_path / name / LAUNCHED).read_text()


def test_a_folder_without_a_record_and_one_of_a_later_dagkit_have_none(tmp_path, caplog):
    store = Ledger.create(tmp_path).store
    assert last_launch(store) is None
    (tmp_path / LAUNCHED).write_text('{"format": "dagkit.launched/2"}\n')
    with caplog.at_level(logging.WARNING):
        assert last_launch(store) is None
    assert "launched.json cannot be read" in caplog.text
