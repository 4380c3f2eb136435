"""Components: building one never raises. The compiler reports its faults, and files may still fix them."""

import pytest
from pydantic import BaseModel, Field, PositiveInt, PrivateAttr, field_validator, model_validator

from dagkit import InputPort, Operator
from dagkit.api.component import Fault


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
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    @model_validator(mode="after")
    def _name_is_not_label(self) -> "Sample":
        if self.name == self.label:
            raise ValueError("name and label must differ")
        return self


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({"name": "a"}, []),
        ({}, [("name", "field required", True)]),
        ({"name": "a", "count": 0}, [("count", "input should be greater than 0", False)]),
        ({"name": "a", "inner": {"depth": 0}}, [("inner.depth", "input should be greater than 0", False)]),
        ({"name": "a", "even": 1}, [("even", "must be even", False)]),
        ({"name": "a", "label": "a"}, [("", "name and label must differ", False)]),
        ({"name": "a", "cuont": 1}, [("cuont", "there is no such property; did you mean 'count'?", False)]),
        (
            {"count": "x", "even": 3},
            [
                ("name", "field required", True),
                ("count", "input should be a valid integer, unable to parse string as an integer", False),
                ("even", "must be even", False),
            ],
        ),
    ],
    ids=[
        "a component that may run",
        "a property that must be given is not",
        "a bound is broken",
        "a bound of a nested model is broken",
        "a validator of the author's refuses a property",
        "a validator of the author's refuses them together",
        "there is no such property",
        "every fault is kept, in order of declaration",
    ],
)
def test_a_component_says_what_is_wrong_with_it(given, faults):
    told = [(f.path, f.message, f.missing) for f in Sample(**given).faults]
    assert told == faults


def test_a_faulty_component_holds_what_was_given_and_the_defaults_of_the_rest():
    faulty = Sample(name="a", count=0)
    assert (faulty.name, faulty.count, faulty.inner, faulty.even, faulty._memory) == ("a", 0, Inner(), 0, [])


def test_configuring_fixes_a_faulty_component():
    faulty = Sample(count=3)
    mended = faulty.configured({"name": "a"})
    assert mended.faults == ()
    assert (mended.name, mended.count, mended.label) == ("a", 3, "a-3")
    assert faulty.faults != ()


def test_configuring_can_break_a_sound_component():
    assert Sample(name="a").configured({"count": -1}).faults == (Fault("count", "input should be greater than 0"),)


def test_the_kind_is_the_declared_one_and_is_not_inherited():
    class Special(Sample):
        pass

    assert Sample.declared_kind() == "test.sample/2"
    assert Special.declared_kind().endswith("Special/1")


def test_a_component_is_frozen():
    with pytest.raises(AttributeError, match=r"^Sample.count is a property: .* State under another name"):
        Sample(name="a").count = 2
    with pytest.raises(AttributeError, match=r"^Sample.input is declared, but not as State: "):
        Sample(name="a").input = 2  # type: ignore[misc, assignment]


def test_what_is_not_declared_cannot_be_assigned_and_the_error_says_what_to_do():
    with pytest.raises(AttributeError, match=r"declare it, `total = State\(\.\.\.\)`, .* or call it `_total`"):
        Sample(name="a").total = 1


@pytest.mark.parametrize("name", ["a", "not valid, for it is too long"])
def test_what_begins_with_an_underscore_is_assigned_without_a_declaration(name):
    sample = Sample(name=name)
    sample._total = 1
    assert sample._total == 1


def test_a_component_that_cannot_run_shows_why_when_it_is_printed():
    assert repr(Sample(name="a", cuont=0)).endswith(
        " cannot run: cuont: there is no such property; did you mean 'count'?>"
    )
    assert "cannot run: count: input should be greater than 0" in repr(Sample(name="a", count=0))
    assert "cannot run" not in repr(Sample(name="a"))
