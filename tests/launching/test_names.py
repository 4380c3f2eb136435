"""Applications of different programs and notebooks do not share a ledger by accident."""

import logging
import sys
from types import ModuleType

import pytest

from dagkit.api.application import FunctionApplication
from dagkit.launching import Launched, Machine, launch
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


def test_a_function_of_a_notebook_is_called_after_the_notebook(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ann/clicks.ipynb")
    assert named() == "clicks"
    assert named(__vsc_ipynb_file__="/home/ann/orders.ipynb") == "orders"
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert named() == "interactive"


def test_a_module_that_runs_as_a_program_is_called_after_its_package():
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
