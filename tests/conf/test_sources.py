"""Sources: their order, and what holds when several give the same key."""

import itertools
import os
from pathlib import Path

import pytest

from dagkit.api.configuration import Source
from dagkit.api.secrets import MASK
from dagkit.conf.grammar.property_keys import parse_key
from dagkit.conf.sources.references import References, Unresolved, is_secret_name, shown_instead, without_secret
from dagkit.conf.sources.sources import Sources, load
from dagkit.errors import Severity
from tests.cases import cases


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Writes files below an empty working directory, and loads sources from there."""
    monkeypatch.chdir(tmp_path)

    class Place:
        def write(self, name, text):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        def load(self, **given):
            return load(Sources(**given))

    return Place()


def xml(*properties):
    return "<configuration>\n" + "\n".join(properties) + "\n</configuration>"


def prop(key, value=None, *, final=False):
    shown = "" if value is None else f"<value>{value}</value>"
    return f"<property><name>{key}</name>{shown}{'<final>true</final>' if final else ''}</property>"


def told(faults):
    return [(fault.code, str(fault.where), fault.problem) for fault in faults]


LADDER = [
    ("site/site-default.properties", Source.SITE_DEFAULT),
    ("site/site.xml", Source.SITE),
    ("app/properties.xml", Source.APPLICATION),
    ("app/properties-Mine.toml", Source.APPLICATION_NAMED),
    ("home/.dagkit/site.properties", Source.USER_SITE),
    ("app/conf/small.xml", Source.PACKAGE_FILE),
    ("mine.toml", Source.FILE),
]

FOLDERS = {"folder": Path("app"), "home": Path("home"), "installation": Path("site")}
EVERYWHERE = {"application": "Mine", "package_file": "small.xml", "files": ["mine.toml"], **FOLDERS}


def content(path, key, value):
    forms = {".xml": xml(prop(key, value)), ".properties": f"{key}={value}", ".toml": f'"{key}" = "{value}"'}
    return forms[Path(path).suffix]


@pytest.mark.parametrize(
    ("weak", "strong"), list(itertools.pairwise(LADDER)), ids=[strong.name.lower() for _, strong in LADDER[1:]]
)
def test_each_source_is_stronger_than_the_one_before(place, weak, strong):
    place.write("app/conf/small.xml", xml())
    place.write("mine.toml", "")
    for path, source in (weak, strong):
        place.write(path, content(path, "dt.testprop1", source.name))
    conf, faults = place.load(**EVERYWHERE)
    assert not faults
    assert conf["dt.testprop1"] == strong[1].name
    assert [entry.origin.source for entry in conf.entries] == [weak[1], strong[1]]


def test_the_environment_stands_between_files_and_the_command_line(place):
    place.write("mine.properties", "dt.attr.A=file\ndt.attr.B=file\ndt.attr.C=file")
    variables = {"DAGKIT_ATTR__A": "environment", "DAGKIT_ATTR__B": "environment", "HOME": "/", "DAGKIT_HOME": "x"}
    conf, _ = place.load(files=["mine.properties"], environment=variables, definitions=[("dt.attr.A", "command line")])
    assert [(e.key, e.value) for e in conf.entries][3:] == [*list(variables.items())[:2], ("dt.attr.A", "command line")]


def test_of_several_files_the_later_wins_and_a_value_knows_its_key_and_its_line(place):
    place.write("a.properties", "dt.x=a")
    place.write("b.properties", "# why\ndt.x=b")
    conf, faults = place.load(files=["a.properties", "b.properties"], definitions=[("dt.y", "c")])
    assert (conf["dt.x"], faults) == ("b", [])
    assert [str(entry.origin) for entry in conf.entries][1:] == ["dt.x at b.properties:2", "dt.y at the command line"]


def test_files_that_were_not_named_may_be_absent_and_others_may_not(place):
    for application in ("Mine", "A" * 5000):  # no file can have that name
        conf, faults = place.load(application=application, **FOLDERS)
        assert (len(conf), faults) == (0, [])
    _, faults = place.load(folder=Path("app"), package_file="smal.xml", files=["mine.xml"])
    missing = [("file-unreadable", path, "there is no such file") for path in ("app/conf/smal.xml", "mine.xml")]
    assert told(faults) == missing


@pytest.mark.parametrize(
    ("first", "second", "as_"),
    [
        pytest.param("dt.attr.X", "dt.attr.X", "", id="the very key"),
        pytest.param("dt.attr.X", "apex.attr.X", ", as dt.attr.X", id="another prefix"),
        ("dt.operator.f.blockSize", "dt.operator.f.prop.block_size", ", as dt.operator.f.blockSize"),
        pytest.param("dt.attr.X", "dt.application.*.attr.X", ", as dt.attr.X", id="the root is application.*"),
    ],
)
def test_a_key_may_stand_once_in_a_file(place, first, second, as_):
    place.write("a.properties", f"{first}=1\n{second}=2")
    _, faults = place.load(files=["a.properties"])
    problem = f"{second} is set twice; the first is at a.properties:1{as_}"
    assert told(faults) == [("key-duplicated", "a.properties:2", problem)]
    assert faults[0].severity is Severity.ERROR


def test_a_key_twice_in_two_files_of_one_place_is_a_fault_and_the_same_value_or_one_of_the_command_line_is_not(place):
    place.write("a.properties", "dt.x=1\ndt.x=1")
    for given in ({"files": ["a.properties"]}, {"definitions": [("dt.x", "2"), ("dt.x", "1")]}):
        conf, faults = place.load(**given)
        assert (conf["dt.x"], [(f.code, f.severity) for f in faults]) == ("1", [("key-duplicated", Severity.WARNING)])
    place.write("app/properties.xml", xml(prop("dt.x", "1")))
    place.write("app/properties.toml", "dt.x = 2")
    problem = "dt.x is set twice; the first is at app/properties.xml:2"
    assert told(place.load(folder=Path("app"))[1]) == [("key-duplicated", "app/properties.toml:1", problem)]


def test_a_user_without_a_home_has_no_site_file(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)  # a user whom the system does not know
    assert Sources.here().home is None


OWN = "home/.dagkit/site.properties"


@pytest.mark.parametrize(
    ("other", "given", "severity"),
    [
        ("mine.properties", {"files": ["mine.properties"]}, Severity.ERROR),
        pytest.param(OWN, {"home": Path("home")}, Severity.WARNING, id="the user's own file"),
    ],
)
def test_what_is_final_is_not_overridden_and_both_places_are_named(place, other, given, severity):
    place.write("app/properties.xml", xml(prop("dt.x", "1", final=True)))
    place.write(other, "apex.x=2")
    conf, faults = place.load(folder=Path("app"), **given)
    problem = "apex.x is final at app/properties.xml:2, so the value here has no effect"
    assert (conf["dt.x"], faults[0].severity) == ("1", severity)
    assert told(faults) == [("key-final", f"{other}:1", problem)]


def test_a_variable_cannot_get_round_what_is_final(place):
    place.write("a.xml", xml(prop("dt.operator.Block-reader.prop.blockSize", "1", final=True)))
    conf, faults = place.load(files=["a.xml"], environment={"DAGKIT_OPERATOR__BLOCK_READER__BLOCK_SIZE": "2"})
    assert [entry.value for entry in conf.entries] == ["1"]
    assert [str(fault.where) for fault in faults] == ["the environment"]


@pytest.mark.parametrize(
    ("final", "given"),
    [
        ("w.server.host", "w.server.HOST"),
        ("w.server.host", "w.prop.Server.host"),
        ("w.server.host", "w.server"),
        ("w.server", "w.server.host"),
        ("w.a.b", "w.a(b)"),
        ("w.a[0]", "w.a.00"),
        ("w.attr.MEMORY_MB", "w.attr.OperatorContext.MEMORY_MB"),
    ],
)
def test_no_other_spelling_and_no_whole_or_part_gets_round_what_is_final(place, final, given):
    place.write("a.xml", xml(prop(f"dt.operator.{final}", "1", final=True)))
    config, faults = place.load(files=["a.xml"], definitions=[(f"dt.operator.{given}", "2")])
    assert [f.code for f in faults] == ["key-final"]
    assert list(config) == [f"dt.operator.{final}"]


def test_names_that_fold_alike_are_not_confused_where_a_key_is_final_or_required(place):
    keys = ["dt.operator.a-b.x", "dt.operator.a_b.x"]
    place.write("a.xml", xml(*(prop(key, "1", final=True) for key in keys)))
    _, faults = place.load(files=["a.xml"], definitions=[(key, "2") for key in keys])
    assert [f.code for f in faults] == ["key-final", "key-final"]
    place.write("a.xml", xml(prop(keys[0], "1", final=True)))
    assert place.load(files=["a.xml"], definitions=[(keys[1], "2")])[1] == []
    place.write("a.xml", xml(prop("dt.operator.a-b.x")))
    _, faults = place.load(files=["a.xml"], definitions=[("dt.operator.a_b.x", "2")])
    assert [f.code for f in faults] == ["key-required"]
    _, faults = place.load(files=["a.xml"], definitions=[("dt.operator.a-b.X", "2")])
    assert not faults


@pytest.mark.parametrize(
    ("given", "is_missing"),
    [
        pytest.param({}, True, id="nowhere"),
        ({"definitions": [("apex.operator.Block-reader.block_size", "1")]}, False),
        ({"environment": {"DAGKIT_OPERATOR__BLOCK_READER__PROP__BLOCK_SIZE": "1"}}, False),
    ],
)
def test_a_property_without_a_value_must_be_given_in_any_source(place, given, is_missing):
    key = "dt.operator.Block-reader.prop.blockSize"
    place.write("mine.xml", xml(prop(key)))
    _, faults = place.load(files=["mine.xml"], **given)
    missing = ("key-required", "mine.xml:2", f"{key} has no value here, so the launch must set one")
    assert told(faults) == [missing] * is_missing
    assert [fault.help for fault in faults] == [f"write -D {key}=…, or set it in a file for --conf"] * is_missing


def test_a_line_that_is_no_key_is_reported_as_that_and_not_as_one_that_the_launch_must_give(place):
    place.write("app/properties.properties", "garbage\ndt.operator.x\n")
    _, (stranger, malformed) = place.load(folder=Path("app"))
    assert stranger.problem == "garbage has no value here"
    assert stranger.help.startswith("remove it, unless the application reads it; keys of dagkit begin with")
    assert (malformed.code, "-D" in malformed.help) == ("key-malformed", False)


def test_a_reference_reads_the_strongest_value_and_is_reported_with_its_line_without_one(place):
    place.write("a.properties", "dt.x=${where}/in\ndt.y=${wher}\nwhere=/weak")
    conf, faults = place.load(files=["a.properties"], definitions=[("where", "/strong")])
    assert conf["dt.x"] == "/strong/in"
    assert told(faults) == [("reference-unresolved", "a.properties:2", "dt.y: ${wher} has no value")]
    assert faults[0].help == "did you mean 'where'?"


def test_a_key_that_a_reference_names_counts_as_asked_for_also_if_the_value_is_overridden_and_not_resolved(place):
    conf, _ = place.load(definitions=[("dt.x", "${where}${apex.y}"), ("where", "1"), ("dt.y", "2"), ("other", "3")])
    assert (conf["dt.x"], conf.asked & {"where", "other"}) == ("12", {"where"})
    place.write("a.properties", "dt.x=${where}${env:NOT_HERE}\nwhere=1")
    conf, faults = place.load(files=["a.properties"], definitions=[("dt.x", "2")])
    assert ("where" in conf.asked, faults) == (True, [])


def test_secrets_are_shown_as_the_reference_that_gives_them(place):
    keys = {"db.url": "db://${env:PW}", "db.password": "plain", "x": "open", "token-counter.size": "1"}
    definitions = [(f"dt.operator.{key}", value) for key, value in keys.items()]
    conf, _ = place.load(definitions=definitions, environment={"PW": "hidden"})
    assert [(entry.value, entry.origin.shown) for entry in conf.entries] == [
        ("db://hidden", "db://${env:PW}"),
        ("plain", "**********"),
        ("open", None),
        ("1", None),
    ]
    assert "hidden" not in repr(conf.entries)
    assert "plain" not in repr(conf.entries)


def test_what_apconf_names_lies_in_the_applications_folder(place):
    beside = "--apconf names a file in the folder conf beside the application"
    place.write("app/app.py", "")
    (fault,) = place.load(folder=Path("app"), package_file="nofile.xml")[1]
    assert fault.help == f"{beside}, which has none; --conf takes any path"
    place.write("app/conf/small.xml", xml())
    place.write("app/conf/readme.txt", "")
    (fault,) = place.load(folder=Path("app"), package_file="nofile.xml")[1]
    assert fault.help == f"{beside}: small.xml"


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
