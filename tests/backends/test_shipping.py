"""What travels by value arrives unchanged: an author's dataclasses, too, whichever module asks for their fields."""

import site
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import networkx as nx
import pytest

from dagkit import Dag, InputPort, Operator, PortContext, StreamCodec
from dagkit.api import installed
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.shipping.kept_state import SentOverlay, changed_in, received
from dagkit.backends.spark.shipping.shipping import Known, by_value, modules_of, shipped
from dagkit.compiler import compile_application
from dagkit.engine.program.differences import applied
from dagkit.engine.program.lower import program_of
from dagkit.errors import RunFailure
from dagkit.ground.overlays import Layer
from tests.backends.cast import Words, chained
from tests.processes import run_program

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
from pathlib import Path
from pydantic import TypeAdapter
from dagkit.backends.spark.shipping.shipping import read_where_it_runs

data = Path(sys.argv[1]).read_bytes()
customer = pickle.loads(data)
if not isinstance(customer, type):
    customer = next(cls for cls in read_where_it_runs(data)[1] if cls.__name__ == "Customer")
print(TypeAdapter(customer).validate_python({"name": "anna", "orders": 7}))
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Makes a module that this process alone can import."""

    def write(name: str, content: str, folder: str = ".") -> ModuleType:
        file = tmp_path / folder / f"{name}.py"
        file.write_text(content)
        spec: Any = spec_from_file_location(name, file)
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return write


@pytest.fixture
def author(written):
    return written("authors_own", AUTHOR)


def read_elsewhere(data: bytes, folder: Path, worker: str = WORKER) -> str:
    (folder / "shipped").write_bytes(data)
    done = run_program([sys.executable, "-c", worker, str(folder / "shipped")], check=False, seconds=120)
    return done.stdout + done.stderr


def sent(application: Any) -> bytes:
    """An application as it travels, with the modules that this process alone can import."""
    program = program_of(compile_application(application))
    modules = modules_of(program)
    with by_value(modules):
        return shipped(program, modules)[0].data


def test_a_worker_reads_elements_of_an_authors_dataclass(author, tmp_path):
    assert author in modules_of(program_of(compile_application(author.populate_dag)))
    assert read_elsewhere(sent(author.populate_dag), tmp_path) == "Customer(name='anna', orders=7)\n"


HELPER = """
from dagkit import StreamCodec
from limits_own import LONGEST


def is_short(word):
    return len(word) <= LONGEST.letters


class Words(StreamCodec):
    def to_bytes(self, item):
        return item.encode()

    def from_bytes(self, data):
        return data.decode()

    def get_partition(self, item):
        return len(item)
"""

LIMITS = """
class Limit:
    def __init__(self, letters):
        self.letters = letters


LONGEST = Limit(3)
"""


class Judges(Operator):
    input = InputPort(str)
    judge: Any = None

    def process(self, item: str) -> None: ...


def judged(judge: Any, codec: StreamCodec[Any] | None = None) -> Any:
    def draw(dag: Dag, _: Any) -> None:
        judges = chained(dag, words=Words(), judges=Judges(judge=judge))
        if codec is not None:
            dag.set_input_port_attribute(judges.input, PortContext.STREAM_CODEC, codec)

    return draw


def found_in(judge: Any, codec: StreamCodec[Any] | None = None) -> list[str]:
    names = [module.__name__ for module in modules_of(program_of(compile_application(judged(judge, codec))))]
    return [name for name in names if not name.startswith("tests.")]


HELD: dict[str, Callable[[Any], Any]] = {
    "itself": lambda function: function,
    "in a list in a dict": lambda function: {"all": [function]},
    "in part of it": lambda function: partial(function, "word"),
    "used by a lambda": lambda function: lambda word: not function(word),
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD.keys())
def test_a_function_in_a_property_takes_its_module_along(written, held):
    written("limits_own", LIMITS)
    assert found_in(held(written("helper_own", HELPER).is_short)) == ["helper_own", "limits_own"]


LOUD = "def loud(word):\n    return word.upper()\n"


@pytest.fixture
def asked_anew():
    installed._libraries.cache_clear()
    yield
    installed._libraries.cache_clear()


ANOTHERS, USERS, PATH = "of another environment", "of a user", "on the path"


@pytest.mark.usefixtures("asked_anew")
@pytest.mark.parametrize(
    ("whose", "folder", "stays"),
    [
        (ANOTHERS, "site-packages", True),
        (ANOTHERS, "dist-packages", True),
        (ANOTHERS, "sources", False),
        (ANOTHERS, "my-site-packages", False),
        (USERS, "lib", True),
        (PATH, "site-packages", False),
    ],
)
def test_what_is_installed_stays_and_what_is_on_the_path_is_taken_along(  # noqa: PLR0917 - fixtures are arguments
    whose, folder, stays, written, tmp_path, monkeypatch
):
    own = tmp_path / "own"
    for each in (own, tmp_path / folder):
        each.mkdir()
    if whose == ANOTHERS:
        (own / "lent.pth").write_text(f"import sys\n{tmp_path / folder}\n")
        monkeypatch.setattr(site, "getsitepackages", lambda: [str(own)])
    elif whose == USERS:
        monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path / folder))
    monkeypatch.syspath_prepend(tmp_path / folder)
    monkeypatch.setattr(sys, "path", [*sys.path, Path("/nowhere"), b"/nowhere"])
    assert found_in(written("loud_own", LOUD, folder).loud) == ([] if stays else ["loud_own"])


def test_a_codec_takes_its_module_along(written):
    written("limits_own", LIMITS)
    helper = written("helper_own", HELPER)
    assert found_in(None) == []
    assert found_in(None, helper.Words()) == ["helper_own"]


def test_a_class_that_goes_with_an_item_is_whole_on_the_other_side(author, tmp_path):
    with by_value([author]):
        data = Known([]).dumps(author.Customer)
    assert read_elsewhere(data, tmp_path) == "Customer(name='anna', orders=7)\n"


def test_a_backend_that_cannot_be_made_leaves_no_module_by_value(written):
    author = written("greeting", AUTHOR)
    session: Any = None
    with pytest.raises(RunFailure, match="could not send dagkit") as raised:
        SparkBackend(compile_application(author.populate_dag), session)
    assert raised.traceback, "the frames keep the unfinished backend alive, so that nothing is undone by its deletion"
    assert "greeting" not in cloudpickle.list_registry_pickle_by_value()


DRIVERS = """
from typing import ClassVar

import networkx
from networkx import DiGraph

import drawing_own
from dagkit import *


class Drawn(StreamingApplication):
    drawn: ClassVar[DiGraph] = DiGraph()

    def populate_dag(self, dag: Dag, conf: object) -> None:
        dag.add_operator("Customers", Customers(drawn=drawing_own.drawn())) >> dag.add_operator("Greet", Greet())


class Customers(InputOperator):
    output = OutputPort(str)
    drawn: object

    def emit_tuples(self) -> None:
        self.output.emit(str(networkx.density(self.drawn)))


class Greet(Operator):
    input = InputPort(str)

    def process(self, item: str) -> None:
        print(drawing_own.greeting(item))
        print(drawing_own.drawn())
"""

DRAWING = """
import networkx
from networkx import DiGraph, NetworkXError


class Largest(DiGraph):
    largest = DiGraph


def greeting(name: str) -> str:
    return f"hello {name}"


def drawn() -> DiGraph:
    return networkx.DiGraph()
"""

LACKING = """
import sys
from pathlib import Path
from dagkit.backends.spark.shipping.shipping import read_where_it_runs

sys.modules["networkx"] = None
program, classes = read_where_it_runs(Path(sys.argv[1]).read_bytes())
print([cls.__name__ for cls in classes], list(program.operators))
try:
    program.operators["Greet"][0].process("anna")
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_a_worker_lacks_what_the_driver_alone_imports_until_it_uses_it(written, tmp_path):
    written("drawing_own", DRAWING.replace("class Largest(DiGraph):", "class Largest:"))
    data = sent(written("drivers_own", DRIVERS).Drawn())
    assert read_elsewhere(data, tmp_path, LACKING) == "['Greet', 'Largest'] ['Greet']\nhello anna\nnetworkx\n"


@pytest.mark.parametrize("lacks", ["what a class is made of", "what the class of an object is made of"])
def test_what_an_operator_is_made_of_is_wanted_at_once_and_reported_by_its_module(written, tmp_path, lacks):
    written("drawing_own", DRAWING)
    drawn = written("drivers_own", DRIVERS).Drawn() if "object" not in lacks else judged(nx.DiGraph())
    last = read_elsewhere(sent(drawn), tmp_path, LACKING).splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert "networkx" in last


DIVIDING = """
from dagkit import Dag, InputOperator, OutputPort
from dagkit_operators import Filter, Map


class Numbers(InputOperator):
    output = OutputPort(int)


def populate_dag(dag: Dag, conf: object) -> None:
    numbers = dag.add_operator("Numbers", Numbers())
    numbers >> dag.add_operator("Over", Map(lambda number: 10 // number)) >> dag.add_operator("Large", Filter(large))


def large(number: int) -> bool:
    return number > undefined_here
"""

WITHOUT_THE_FILE = """
import sys, traceback
from pathlib import Path
from dagkit.backends.spark.shipping.shipping import read_where_it_runs
from dagkit_operators.values.inlined import _lambda_of

operators = {name: of[0] for name, of in read_where_it_runs(Path(sys.argv[1]).read_bytes())[0].operators.items()}
over, large = operators["Over"].function, operators["Large"].predicate
print("inlined" if _lambda_of(over) else "called")
for function in (over, large):
    try:
        function(0)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        print(Path(frame.filename).name, frame.lineno, frame.line)
"""


def test_functions_keep_their_lines_on_a_worker_without_their_file(written, tmp_path):
    author = written("dividing_own", DIVIDING)
    data = sent(author.populate_dag)
    Path(author.__file__).unlink()
    lines = DIVIDING.splitlines()
    over, large = (next(number for number, line in enumerate(lines) if text in line) for text in ("10 //", "undefined"))
    assert read_elsewhere(data, tmp_path, WITHOUT_THE_FILE).splitlines() == [
        "inlined",
        f"dividing_own.py {over + 1} {lines[over].strip()}",
        f"dividing_own.py {large + 1} {lines[large].strip()}",
    ]


def test_a_received_mapping_is_new_under_a_name_that_had_no_state():
    sent = {"op": {"counts": SentOverlay((Layer((), {"a": 1}),), 1)}}
    state = received(sent, {})
    change = changed_in(state, {"op": {"counts": state["op"]["counts"], "copy": state["op"]["counts"]}})
    assert change is not None
    assert applied(state, change) == {"op": {"counts": {"a": 1}, "copy": {"a": 1}}}
