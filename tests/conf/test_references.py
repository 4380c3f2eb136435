"""References in values, and what is a secret."""

import pytest

from dagkit.api.config import DEFAULT, Origin, Source
from dagkit.conf.references import MASK, References, Unresolved, is_secret_name, masked, without_secret


def resolve(text, values=None, environment=None):
    return References(values or {}, environment or {}).resolve(text)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("foo ${xyz} bar ${zzz} baz", "foo 123 bar 456 baz"),
        ("${inner}", "in 123"),
        ("${number}", 7),
        ("n = ${number}, ${flag}", "n = 7, true"),
        ("${list}", ["123", "x"]),
        ("$${xyz} ${xyz}", "${xyz} 123"),
        ("$xyz {xyz} $", "$xyz {xyz} $"),
        (["${xyz}", {"a": "${xyz}"}], ["123", {"a": "123"}]),
        (True, True),
    ],
    ids=[
        "Apex's own example",
        "a reference may lead on",
        "a reference alone keeps the type",
        "inside a text it becomes text",
        "a list is resolved part by part",
        "two dollars are one",
        "other dollars stay",
        "values of TOML are resolved inside",
        "what is no text stays",
    ],
)
def test_references(text, resolved):
    values = {"xyz": "123", "zzz": "456", "inner": "in ${xyz}", "number": 7, "flag": True, "list": ["${xyz}", "x"]}
    assert resolve(text, values) == (resolved, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${xyy}", r"nothing gives \$\{xyy\} a value"),
        ("${}", r"nothing gives \$\{\} a value"),
        ("${a}", "the references go in a circle: a -> b -> a"),
        ("${self}", "the references go in a circle: self -> self"),
        ("{% 1 + 1 %}", "it holds a script in {% %}, and scripts are not run"),
        ("${env:NOT_THERE}", "the environment has no variable 'NOT_THERE'"),
        ("${file:/not/there}", "the file '/not/there' cannot be read: No such file or directory"),
        ("${bomb}", "its references unfold to"),
    ],
    ids=[
        "a name that is not there",
        "no name",
        "a circle",
        "a circle of one",
        "a script",
        "a variable that is not there",
        "a file that is not there",
        "references that unfold without end",
    ],
)
def test_what_cannot_be_resolved(text, problem):
    layers = {f"b{n}": f"${{b{n - 1}}}" * 10 for n in range(1, 9)}
    values = {"xyz": "1", "a": "${b}", "b": "x ${a}", "self": "${self}", "b0": "ha", "bomb": "${b8}", **layers}
    with pytest.raises(Unresolved, match=problem):
        resolve(text, values)


def test_a_missing_reference_suggests_a_near_name():
    with pytest.raises(Unresolved) as raised:
        resolve("${inputpath}", {"inputPath": "x"})
    assert raised.value.help == "did you mean 'inputPath'?"


def test_what_comes_from_the_environment_or_a_file_is_secret(tmp_path):
    (tmp_path / "secret").write_text("from file\n")
    assert resolve("${env:PW}", environment={"PW": "hidden"}) == ("hidden", True)
    assert resolve(f"${{file:{tmp_path}/secret}}") == ("from file", True)


def test_what_a_secret_goes_into_is_secret():
    values = {"url": "db://me:${pw}@host", "pw": "${env:PW}", "dt.prop.password": "plain"}
    assert resolve("${url}", values, {"PW": "hidden"}) == ("db://me:hidden@host", True)
    assert resolve("x${dt.prop.password}", values) == ("xplain", True)


def test_references_remember_the_keys_they_used():
    references = References({"a": "${b}", "b": "1", "c": "2"}, {})
    references.resolve("${a}")
    assert references.used == {"a", "b"}


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("dbPassword", True),
        ("scanner.access_token", True),
        ("attr.GATEWAY_PASSWORD", True),
        ("clientSecret", True),
        ("awsCredentials", True),
        ("api_key", True),
        ("accessKey", True),
        ("tokenizer", False),
        ("maxTokens", False),
        ("key", False),
        ("primaryKey", False),
        ("passengers", False),
    ],
)
def test_secrets_are_known_by_name(name, secret):
    assert is_secret_name(name) is secret


def test_a_sentence_that_quotes_a_secret_is_masked():
    assert without_secret("'hunter2' is no number", "hunter2", "${env:PW}") == "'${env:PW}' is no number"


DATA = {
    "host": "h",
    "password": "p",
    "nested": {"url": "u", "api_key": "k", "count": 1},
    "tags": {"a.b": "t", "c": "d"},
    "names": ["n", {"token": ""}],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("host", {"host": "${x}"}),
        ("nested.url", {"nested": {"url": "${x}", "api_key": MASK, "count": 1}}),
        ("nested", {"nested": "${x}"}),
        ("tags.a.b", {"tags": {"a.b": "${x}", "c": "d"}}),
        ("names.0", {"names": ["${x}", {"token": ""}]}),
        ("not.there", {}),
    ],
    ids=["a property", "a nested one", "a whole", "a key with dots", "an item", "a path that leads nowhere"],
)
def test_secrets_are_masked_in_plain_data(path, expected):
    by_name = {"password": MASK, "nested": {"url": "u", "api_key": MASK, "count": 1}}
    origins = {path: Origin(Source.FILE, None, "k", "${x}"), "host.open": DEFAULT}
    assert masked(DATA, origins) == {**DATA, **by_name, **expected}
