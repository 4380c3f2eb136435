"""A launch records in the application's folder what it runs: readers of the folder need no code of the application."""

import logging

import pytest
from pydantic import SecretStr

from dagkit import Config, Dag, InputPort, Operator
from dagkit.compiler import compile_application
from dagkit.engine.run.launch_record import LAUNCHED, last_launch
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit_operators import Items

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
