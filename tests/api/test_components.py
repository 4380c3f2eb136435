"""Components: building one never raises. The compiler reports its faults, and the configuration may still fix them."""

import pytest
from pydantic import BaseModel, Field, PositiveInt, PrivateAttr, ValidationError, field_validator, model_validator

from dagkit import Config, InputPort, Operator
from dagkit.api.component import Fault
from dagkit.api.configuration import DEFAULT, Entry, Origin, Source
from dagkit.errors import Where
from tests.cases import cases


class Inner(BaseModel):
    depth: PositiveInt = 1


class Sample(Operator):
    """Every way in which a property can be wrong."""

    kind = "test.sample/2"
    input = InputPort(int)
    name: str
    count: PositiveInt = 1
    inner: Inner = Inner()
    label: str = Field(default_factory=lambda data: f"{data['name']}-{data['count']}")
    even: int = 0
    _memory: list[int] = PrivateAttr(default_factory=list)

    @field_validator("even")
    @classmethod
    def _is_even(cls, value):
        if value % 2:
            raise ValueError("must be even")
        return value

    @model_validator(mode="after")
    def _name_is_not_label(self):
        if self.name == self.label:
            raise ValueError("name and label must differ")
        return self


NO_NAME, ABOVE_0 = ("name", "field required", True), "input should be greater than 0"
NO_CUONT = ("cuont", "there is no such property; did you mean 'count'?", False)
NO_COUNT = ("count", "input should be a valid integer, unable to parse string as an integer", False)


@cases(
    "given, faults",
    ("a component that may run", {"name": "a"}, []),
    ("a property that must be given is not", {}, [NO_NAME]),
    ("a bound is broken", {"name": "a", "count": 0}, [("count", ABOVE_0, False)]),
    ("a bound of a nested model", {"name": "a", "inner": {"depth": 0}}, [("inner.depth", ABOVE_0, False)]),
    ("a validator refuses a property", {"name": "a", "even": 1}, [("even", "must be even", False)]),
    ("or all together", {"name": "a", "label": "a"}, [("", "name and label must differ", False)]),
    ("none of this name", {"name": "a", "cuont": 1}, [NO_CUONT]),
    ("all, in their order", {"count": "x", "even": 3}, [NO_NAME, NO_COUNT, ("even", "must be even", False)]),
)
def test_a_component_says_what_is_wrong_with_it(given, faults):
    assert [(f.path, f.message, f.missing) for f in Sample(**given).faults] == faults


def test_a_faulty_component_holds_what_was_given_and_shows_why_it_cannot_run():
    faulty = Sample(name="a", count=0)
    assert (faulty.name, faulty.count, faulty.inner, faulty.even, faulty._memory) == ("a", 0, Inner(), 0, [])
    assert repr(Sample(name="a", cuont=0)).endswith(
        " cannot run: cuont: there is no such property; did you mean 'count'?>"
    )
    assert "cannot run: count: input should be greater than 0" in repr(Sample(name="a", count=0))
    assert "cannot run" not in repr(Sample(name="a"))


def test_configuring_fixes_a_faulty_component_or_breaks_a_sound_one():
    faulty = Sample(count=3)
    mended = faulty.configured({"name": "a"})
    assert (mended.name, mended.count, mended.label, mended.faults) == ("a", 3, "a-3", ())
    assert faulty.faults
    assert mended.configured({"count": -1}).faults == (Fault("count", ABOVE_0),)


def test_the_kind_is_the_declared_one_and_is_not_inherited():
    class Special(Sample):
        pass

    assert Sample.declared_kind() == "test.sample/2"
    assert Special.declared_kind().endswith("Special/1")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("count", r"^Sample.count is a property: .* State under another name"),
        ("input", r"^Sample.input is declared, but not as State: "),
        ("total", r"declare it, `total = State\(\.\.\.\)`, .* or call it `_total`"),
    ],
)
def test_what_is_not_state_cannot_be_assigned_and_the_error_says_what_to_do(name, words):
    with pytest.raises(AttributeError, match=words):
        setattr(Sample(name="a"), name, 2)


@pytest.mark.parametrize("given", [{"name": "a"}, {"name": "a", "count": 0}], ids=["sound", "faulty"])
def test_what_begins_with_an_underscore_is_assigned_without_a_declaration(given):
    sample = Sample(**given)
    sample._total = 1
    assert sample._total == 1


def test_an_unknown_attribute_is_one_error():
    with pytest.raises(AttributeError, match="'Sample' object has no attribute 'nam'") as unknown:
        Sample(name="a").nam  # type: ignore[attr-defined]  # noqa: B018
    assert unknown.value.__context__ is None


def test_one_text_in_the_place_of_several_is_shown_as_it_is_to_be_written():
    class Columns(Operator):
        by: tuple[str, ...] = ()
        of: list[str] = Field(default_factory=list)

    faults = [str(fault) for fault in Columns(by="day", of="day").faults]
    assert faults == [
        "by: input should be a valid tuple, such as ('day',)",
        "of: input should be a valid list, such as ['day']",
    ]


def _entry(key, value, source):
    return Entry(key, value, Origin(source, Where("conf.xml", 1), key))


def test_the_last_entry_of_a_key_wins():
    conf = Config([_entry("a", 1, Source.SITE), _entry("a", 2, Source.FILE), _entry("b", 3, Source.SITE)])
    assert (dict(conf), len(conf)) == ({"a": 2, "b": 3}, 2)


def test_values_are_read_as_the_type_that_is_asked_for_and_what_was_asked_for_is_remembered():
    conf = Config.of({"count": "3", "flag": "true"})
    assert (conf.read("count", int), conf.read("flag", bool)) == (3, True)
    assert (conf.read("none", int), conf.read("none", int, 7)) == (None, 7)
    with pytest.raises(ValidationError, match="valid integer"):
        conf.read("flag", int)
    conf = Config.of({"a": 1, "b": 2, "c": 3})
    assert conf["a"] == 1
    assert "b" in conf
    assert conf.asked == {"a", "b"}


@cases(
    "origin, text",
    ("nobody", DEFAULT, "default"),
    ("a line of code", Origin(Source.CODE, Where("app.py", 3)), "code at app.py:3"),
    ("code", Origin(Source.CODE), "code"),
    ("a line of a file", Origin(Source.FILE, Where("conf.xml", 4), "dt.attr.X"), "dt.attr.X at conf.xml:4"),
    ("the command line", Origin(Source.COMMAND_LINE, None, "dt.attr.X"), "dt.attr.X"),
)
def test_an_origin_says_who_set_it(origin, text):
    assert str(origin) == text


def test_values_do_not_show_in_what_is_printed():
    assert "hush" not in repr(_entry("password", "hush", Source.FILE))
    assert repr(Config.of({"password": "hush"})) == "Config(1 keys)"
