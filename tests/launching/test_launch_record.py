"""A launch records in the application's folder what it runs: readers of the folder need no code of the application."""

import logging

from pydantic import SecretStr

from dagkit import Config, Dag, InputPort, Operator
from dagkit.compiler import compile_application
from dagkit.engine.run.launch_record import LAUNCHED, last_launch
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit_operators import Items

SECRET = "hunter2"  # noqa: S105 - it opens nothing


class Keeper(Operator):
    """Has a password."""

    kind = "launching.keeper/1"
    input = InputPort(int)
    password: SecretStr = SecretStr("")

    def process(self, item: int) -> None: ...


def keeping(dag: Dag, conf: Config) -> None:
    dag.add_operator("Items", Items(items=[1, 2, 3])) >> dag.add_operator("Keeper", Keeper())


def test_the_record_has_the_plan_and_the_configuration_without_secrets(tmp_path):
    settings = {"dt.operator.Keeper.prop.password": SECRET, "dt.attr.APPLICATION_NAME": "Keeping"}
    launch(keeping, settings, until="once", machine=Machine("reference"), path=tmp_path)
    found = last_launch(Ledger.open(tmp_path).store)
    assert found is not None
    assert found.plan == compile_application(keeping, Config.of(settings)).plan
    assert [(entry["key"], entry["holds"]) for entry in found.configuration] == [(key, True) for key in settings]
    assert SECRET not in (tmp_path / LAUNCHED).read_text()


def test_an_application_runs_in_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = tmp_path / "a\udcff"
    settings = {"dt.attr.APPLICATION_PATH": str(folder)}
    launch(keeping, settings, until="once", machine=Machine("reference"))
    found = last_launch(Ledger.open(folder).store)
    assert found is not None
    assert found.plan == compile_application(keeping, Config.of(settings)).plan


def test_a_folder_without_a_record_and_one_of_a_later_dagkit_have_none(tmp_path, caplog):
    store = Ledger.create(tmp_path).store
    assert last_launch(store) is None
    (tmp_path / LAUNCHED).write_text('{"format": "dagkit.launched/2"}\n')
    with caplog.at_level(logging.WARNING):
        assert last_launch(store) is None
    assert "launched.json cannot be read" in caplog.text
