"""Configuration as an application meets it: the winning value of each key, and where it came from."""

import pytest
from pydantic import ValidationError

from dagkit import Config
from dagkit.api.configuration import DEFAULT, Entry, Origin, Source
from dagkit.errors import Where
from tests.cases import cases


def _entry(key: str, value: object, source: Source, line: int = 1) -> Entry:
    return Entry(key, value, Origin(source, Where("conf.xml", line), key))


def test_the_last_entry_of_a_key_wins():
    conf = Config([_entry("a", 1, Source.SITE), _entry("a", 2, Source.FILE), _entry("b", 3, Source.SITE)])
    assert dict(conf) == {"a": 2, "b": 3}
    assert len(conf) == 2


def test_values_are_read_as_the_type_that_is_asked_for():
    conf = Config.of({"count": "3", "flag": "true"})
    assert conf.read("count", int) == 3
    assert conf.read("flag", bool) is True
    assert conf.read("none", int) is None
    assert conf.read("none", int, 7) == 7
    with pytest.raises(ValidationError, match="valid integer"):
        conf.read("flag", int)


def test_what_the_application_asked_for_is_remembered():
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
