"""References in values, and what is a secret."""

import os
from pathlib import Path

import pytest

from dagkit.api.secrets import MASK
from dagkit.conf.grammar.property_keys import parse_key
from dagkit.conf.sources.references import References, Unresolved, is_secret_name, shown_instead, without_secret
from tests.cases import cases


def resolve(text, values=None, environment=None):
    return References(values or {}, environment or {}).resolve(text)


@cases(
    "text, resolved",
    ("Apex's own example", "foo ${xyz} bar ${zzz} baz", "foo 123 bar 456 baz"),
    ("a reference may lead on", "${inner}", "in 123"),
    ("a reference alone keeps the type", "${number}", 7),
    ("inside a text it becomes text", "n = ${number}, ${flag}", "n = 7, true"),
    ("a list is resolved part by part", "${list}", ["123", "x"]),
    ("two dollars are one", "$${xyz} ${xyz}", "${xyz} 123"),
    ("other dollars stay", "$xyz {xyz} $", "$xyz {xyz} $"),
    ("what is escaped needs no end", "$${${xyz}} $${", "${123} ${"),
    ("values of TOML are resolved inside", ["${xyz}", {"a": "${xyz}"}], ["123", {"a": "123"}]),
    ("what is no text stays", True, True),
)
def test_references(text, resolved):
    values = {"xyz": "123", "zzz": "456", "inner": "in ${xyz}", "number": 7, "flag": True, "list": ["${xyz}", "x"]}
    assert resolve(text, values) == (resolved, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("${xyy}", r"\$\{xyy\} has no value", id="a name that is not there"),
        pytest.param("${}", r"\$\{\} has no value", id="no name"),
        pytest.param("${a}", "the references form a circle: a -> b -> a", id="a circle"),
        pytest.param("${self}", "the references form a circle: self -> self", id="a circle of one"),
        pytest.param("{% 1 + 1 %}", "it contains a script in {% %}, and dagkit does not run scripts", id="a script"),
        ("${env:NOT_THERE}", "the environment has no variable 'NOT_THERE'"),
        ("${file:/not/there}", "the file '/not/there' cannot be read: No such file or directory"),
        pytest.param("${bomb}", "its references resolve to", id="references that unfold without end"),
        ("${${x}}", "the reference that begins at character 1 contains another reference, or a brace"),
        ("a ${xyz", "the reference that begins at character 3 is not closed"),
        ("${xyz} ${", "the reference that begins at character 8 is not closed"),
        pytest.param("${env:}", r"\$\{env:\} names no variable", id="no variable"),
        pytest.param("${chain2999}", "the chain of references is longer than 100", id="a long chain"),
    ],
)
def test_what_cannot_be_resolved(text, problem):
    layers = {f"b{n}": f"${{b{n - 1}}}" * 10 for n in range(1, 9)}
    layers |= {"chain0": "x"} | {f"chain{n}": f"${{chain{n - 1}}}" for n in range(1, 3000)}
    values = {"xyz": "1", "a": "${b}", "b": "x ${a}", "self": "${self}", "b0": "ha", "bomb": "${b8}", **layers}
    with pytest.raises(Unresolved, match=problem):
        resolve(text, values)


def test_what_comes_from_the_environment_or_a_file_is_secret_and_what_it_goes_into(tmp_path):
    (tmp_path / "secret").write_text("from file\n")
    assert resolve(f"${{file:{tmp_path}/secret}}") == ("from file", True)
    values = {"url": "db://me:${pw}@host", "pw": "${env:PW}", "dt.prop.password": "plain"}
    assert resolve("${url}", values, {"PW": "hidden"}) == ("db://me:hidden@host", True)
    assert resolve("x${dt.prop.password}", values) == ("xplain", True)


def test_references_remember_the_keys_they_used_and_a_missing_one_suggests_a_near_name():
    references = References({"a": "${inPath}", "inPath": "1", "c": "2"}, {})
    references.resolve("${a}")
    assert references.used == {"a", "inPath"}
    with pytest.raises(Unresolved) as raised:
        references.resolve("${inpath}")
    assert raised.value.help == "did you mean 'inPath'?"


@cases(
    "path, reason",
    ("a device without end", "/dev/zero", "it is not a regular file"),
    ("a pipe without a writer", "pipe", "it is not a regular file"),
    ("a file too large for a secret", "large", "it has more than 1048576 bytes"),
    ("no path at all", "\0", "this is not a path: embedded null byte"),
)
def test_a_secret_is_read_from_a_regular_file_of_moderate_size(path, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("large").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(Unresolved, match=f"cannot be read: {reason}"):
        resolve(f"${{file:{path}}}")


SECRETS = """
password dbPassword scanner.access_token attr.GATEWAY_PASSWORD clientSecret awsCredentials api_key accessKey dbpassword
password2 passwords apikey apiKeys accesskey tokens access_tokens pwd passcode
"""
OTHERS = "tokenize keyed maxtokens secretary tokenizer maxTokens key primaryKey passengers"


@pytest.mark.parametrize("name", [*SECRETS.split(), *OTHERS.split()])
def test_secrets_are_known_by_name(name):
    assert is_secret_name(name) is (name in SECRETS.split())


HIDDEN = "the reason is not shown, since it would reveal the secret"


@pytest.mark.parametrize(
    ("text", "raw", "shown", "told"),
    [
        pytest.param("'hunter2' is no number", "hunter2", "${env:PW}", "'${env:PW}' is no number", id="a secret"),
        ("no class hunter.Two here", "hunter.Two:q", "${env:PW}:q", "no class ${env:PW} here"),
        pytest.param("no class Two here", "hunter.Two:q", "${env:PW}:q", HIDDEN, id="a piece of a part"),
        pytest.param("no class Two here", "hunter.Two", MASK, HIDDEN, id="a piece of the whole"),
        ("'q' is no x=y", "hunter.Two:q", "${env:PW}:q", "'q' is no x=y"),
    ],
)
def test_a_sentence_that_quotes_a_piece_of_a_secret_is_masked(text, raw, shown, told):
    assert without_secret(text, raw, shown) == told


@cases(
    "key, raw, tainted, shown",
    ("what has a secret's name is masked", "dt.operator.db.password", "hunter2", False, MASK),
    ("an empty text hides nothing", "dt.operator.db.password", "", False, None),
    ("a number may be a secret", "dt.operator.db.password", 5, False, MASK),
    ("a reference may be seen", "dt.operator.db.password", "${vault}", False, "${vault}"),
    ("also that to something secret", "dt.operator.db.url", "db://${vault}", True, "db://${vault}"),
    ("also one to the environment", "dt.operator.db.url", "${env:URL}", False, "${env:URL}"),
    ("what is no secret may be seen", "dt.operator.db.url", "db://${host}", False, None),
    ("an operator's name makes no secret", "dt.operator.password-checker.size", "5", False, None),
    ("keys of other systems hide theirs", "my.password", "hunter2", False, MASK),
)
def test_what_is_shown_instead(key, raw, tainted, shown):
    assert shown_instead(parse_key(key), key, raw, tainted=tainted) == shown
