"""What travels by value arrives as it was: an author's dataclasses, too, whoever asks them for their fields."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from dagkit.backends.spark.shipping import Known, by_value, modules_of, shipped
from dagkit.compiler import compile_application
from dagkit.engine.lower import program_of

AUTHOR = """
from dataclasses import dataclass

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
    orders: int


class Customers(InputOperator):
    output = OutputPort(Customer)


class Greet(Operator):
    input = InputPort(Customer)

    def process(self, item: Customer) -> None:
        print(item)


def populate_dag(dag: Dag, conf: object) -> None:
    dag.add_operator("Customers", Customers()) >> dag.add_operator("Greet", Greet())
"""

WORKER = """
import pickle, sys
from pydantic import TypeAdapter

with open(sys.argv[1], "rb") as file:
    found = pickle.load(file)
customer = found if isinstance(found, type) else next(cls for cls in found[1] if cls.__name__ == "Customer")
print(TypeAdapter(customer).validate_python({"name": "anna", "orders": 7}))
"""


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "authors_own.py").write_text(AUTHOR)
    spec = spec_from_file_location("authors_own", tmp_path / "authors_own.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "authors_own", module)
    spec.loader.exec_module(module)
    return module


def read_elsewhere(data: bytes, folder: Path) -> str:
    (folder / "shipped").write_bytes(data)
    worker = [sys.executable, "-c", WORKER, str(folder / "shipped")]
    done = subprocess.run(worker, check=False, capture_output=True, text=True)  # noqa: S603 - our own program
    return done.stdout + done.stderr


def test_a_worker_reads_elements_of_an_authors_dataclass(author: ModuleType, tmp_path: Path) -> None:
    program = program_of(compile_application(author.populate_dag))
    with by_value([author]):
        assert author in modules_of(program)
        data = shipped(program, [author])[0].data
    assert read_elsewhere(data, tmp_path) == "Customer(name='anna', orders=7)\n"


def test_a_class_that_goes_with_an_item_is_whole_on_the_other_side(author: ModuleType, tmp_path: Path) -> None:
    with by_value([author]):
        data = Known([]).dumps(author.Customer)
    assert read_elsewhere(data, tmp_path) == "Customer(name='anna', orders=7)\n"
