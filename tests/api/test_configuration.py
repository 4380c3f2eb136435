"""Configuration as an application meets it: the winning value of each key, and where it came from."""

import pytest
from pydantic import ValidationError

from dagkit import Config
from dagkit.api.configuration import DEFAULT, Entry, Origin, Source
from dagkit.errors import Where
from tests.cases import cases


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
