"""Configuration calls nothing: code comes from the author and from libraries, and objects are of the kind wanted."""

import sys
from collections.abc import Callable, Sequence
from subprocess import Popen
from typing import Any, ClassVar, Protocol, runtime_checkable

import pytest
from pydantic import ImportString

from dagkit import Operator
from dagkit.api.attributes import CONTEXTS, DagContext, Instance, OperatorContext, PortContext
from dagkit.api.stats import BatchedOperatorStats, Response, StatsListener
from dagkit.conf.values.attribute_values import KINDS, attribute_value
from dagkit.conf.values.classes import ClassNotFound, ForeignCode, find_class, find_function
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.object_making import CodeRefused, Unfit

HERE = __name__
Foreign = Popen
"""What an application imports is not its own."""


class Made(StatsListener):
    count: ClassVar[int] = 0

    def __init__(self, argument: str = "") -> None:
        type(self).count += 1

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        return Response()


@runtime_checkable
class Runs(Protocol):
    """A protocol of the author's, which a class of Python happens to fulfil."""

    def communicate(self) -> Any: ...


class Longer:
    def __init__(self) -> None:
        self.than = 0

    def __call__(self, text: str) -> bool:
        return len(text) > self.than


class Holder(Operator):
    runs: Runs | None = None
    made: Made | None = None
    keep: Callable[[str], bool] | None = None
    many: Sequence[Callable[[str], bool]] = ()
    named: ImportString[Any] | None = None
    payload: type | None = None
    listener: type[StatsListener] | None = None


def converted(name: str, raw: Any, *, data_only: bool = False) -> Any:
    return Conversion(data_only=data_only).convert(Holder.model_fields[name].annotation, raw)


EVERY = [attribute for context in CONTEXTS for attribute in context.attributes().values()]
OF_A_KIND = [attribute for attribute in EVERY if isinstance(attribute.holds, Instance)]


NAMED = ["{}:argument", '{{"@class": "{}"}}', '{{"{}": {{}}}}', '[{{"class": "{}"}}]']


@pytest.fixture
def trap(monkeypatch):
    """The name of a class that fails the test when it is called."""

    class Trap:
        def __init__(self, *_: object) -> None:
            pytest.fail("the object was made before its kind was known")

    monkeypatch.setattr(sys.modules[HERE], "Trap", Trap, raising=False)
    return f"{HERE}.Trap"


@pytest.mark.parametrize("attribute", OF_A_KIND, ids=str)
@pytest.mark.parametrize("raw", NAMED)
def test_an_attribute_makes_no_object_of_another_kind(attribute, raw, trap):
    """The text of a kind that dagkit does not have stays as it is."""
    if attribute.holds.of not in KINDS:
        assert attribute_value(attribute, raw.format(trap)) == raw.format(trap)
        return
    with pytest.raises(Unfit, match="and Trap is not one"):
        attribute_value(attribute, raw.format(trap))


def test_an_attribute_runs_no_program(tmp_path):
    mark = tmp_path / "ran"
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    for name in ("subprocess.Popen", "subprocess:Popen", f"{HERE}.Foreign"):
        with pytest.raises(ValueError, match=r"neither the application's|Popen is not one|is not a class"):
            attribute_value(OperatorContext.PARTITIONER, f"{name}:{script}")
    assert not mark.exists()


@pytest.mark.parametrize("raw", ["{}", "{}:argument", '{{"class": "{}"}}'])
def test_a_property_makes_no_object_of_another_kind(raw):
    with pytest.raises(Unfit, match="it must be a kind of Made, and Longer is not one"):
        converted("made", raw.format(f"{HERE}.Longer"))


def test_a_class_that_is_of_a_kind_by_its_methods_must_be_the_authors():
    with pytest.raises(ValueError, match=r"neither the application's|and Popen is not one"):
        converted("runs", f"{HERE}.Foreign:true")


FOREIGN = ["os:system", "os.system", "builtins:eval", "builtins:__import__", "subprocess:Popen", "shutil:rmtree"]
FOREIGN += [f"{HERE}:Foreign", f"{HERE}:sys.exit", f"{HERE}:find_class", "pyarrow.fs:LocalFileSystem"]


@pytest.mark.parametrize("name", [*FOREIGN, "dagkit.cli.application.importing:imported"])
@pytest.mark.parametrize("field", ["keep", "many", "named"])
def test_functions_are_the_authors_or_a_librarys(name, field):
    with pytest.raises(ForeignCode, match="is neither the application's nor a library's of operators"):
        converted(field, [name] if field == "many" else name)


@pytest.mark.parametrize("name", [f"{HERE}:converted.__globals__.get", f"{HERE}:Holder.__init__"])
def test_a_name_leads_nowhere_below_what_python_keeps_to_itself(name):
    with pytest.raises(ClassNotFound, match="has no '__"):
        find_function(name)


def test_functions_of_the_author_are_found():
    assert find_function(f"{HERE}:converted") is converted
    assert find_function(f"{HERE}.converted") is converted
    assert find_function("builtins:str.isdigit") is str.isdigit
    with pytest.raises(ClassNotFound, match="is not callable; it is"):
        find_function(f"{HERE}:Holder.model_config")
    longer = converted("keep", f"{HERE}:Longer::than=3")
    assert (longer("abc"), longer("abcd")) == (False, True)
    assert converted("named", f"{HERE}:converted") is converted


def test_what_makes_an_object_that_can_be_called_must_be_the_authors():
    with pytest.raises(ForeignCode):
        converted("keep", "functools.partial:os.system:x=1")
    with pytest.raises(ForeignCode):
        attribute_value(DagContext.STRING_CODECS, f"{HERE}.Longer=os:system")


@pytest.mark.parametrize("name", ["subprocess.Popen", f"{HERE}.Foreign", "pydantic:BaseModel", "this:s"])
def test_a_class_that_may_be_called_is_the_authors(name):
    with pytest.raises(ForeignCode):
        attribute_value(PortContext.TUPLE_CLASS, name)
    with pytest.raises(ForeignCode):
        converted("payload", name)


@pytest.mark.parametrize("name", ["this.s", "this:s", "lib2to3.pgen2.driver:main", "idlelib.__main__:x"])
@pytest.mark.parametrize("find", [find_class, find_function])
def test_no_module_of_python_or_of_a_library_is_imported(name, find, capsys):
    with pytest.raises(ClassNotFound):
        find(name)
    assert name.partition(".")[0].partition(":")[0] not in sys.modules
    assert capsys.readouterr().out == ""


def test_modules_of_the_author_are_imported_and_programs_are_not(tmp_path, monkeypatch):
    package = tmp_path / "mine_of_this_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("class Thing: ...\nraise SystemExit('it was run')\n")
    (package / "parts.py").write_text("class Thing: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_class("mine_of_this_test.parts.Thing").__module__ == "mine_of_this_test.parts"
    with pytest.raises(ClassNotFound):
        find_class("mine_of_this_test.__main__.Thing")


def test_an_installed_application_is_its_own_author(tmp_path, monkeypatch):
    """Wherever it lies, the package of the application is the author's."""
    monkeypatch.setattr("dagkit.api.code_origin.is_authored", lambda _: False)
    with pytest.raises(ForeignCode):
        find_function(f"{HERE}:converted")
    assert find_function(f"{HERE}:converted", home="tests.conf.elsewhere") is converted


CONVERTED = {"$function": f"{HERE}:converted"}


@pytest.mark.parametrize(
    ("field", "raw"),
    [
        *(("keep", raw) for raw in ("os:system", f"{HERE}:converted", f"{HERE}:Longer::than=3", CONVERTED)),
        *(("many", raw) for raw in (f'["{HERE}:converted"]', [CONVERTED])),
        *(("payload", raw) for raw in ("str", {"$class": "str"})),
        *(("made", raw) for raw in (f"{HERE}:Made:argument", {"class": f"{HERE}.Made"})),
        *(("named", f"{HERE}:converted"), ("listener", f"{HERE}:Made")),
    ],
)
def test_a_request_names_no_code(field, raw):
    before = Made.count
    with pytest.raises(CodeRefused, match="a request may contain data only, no functions or classes"):
        converted(field, raw, data_only=True)
    assert Made.count == before


def test_a_request_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "beside_of_this_test.py").write_text("raise SystemExit('it was run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("beside_of_this_test:Part", "beside_of_this_test.Part"):
        with pytest.raises(ClassNotFound):
            attribute_value(OperatorContext.PARTITIONER, f"{name}:3", imports=False)
    assert isinstance(attribute_value(OperatorContext.STATS_LISTENERS, f"{HERE}.Made", imports=False)[0], Made)
