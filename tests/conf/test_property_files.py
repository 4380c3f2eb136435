"""Property files in their three formats: keys, values, lines, and what cannot be read."""

import codecs
import datetime as dt
import os
import tomllib
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.conf.grammar.property_keys import parse_key
from dagkit.conf.sources.property_files import read_file, read_properties
from dagkit.conf.sources.toml_keys import toml_lines
from dagkit.errors import printable
from tests.cases import cases

SEED = """<?xml version="1.0"?>
<configuration>
  <property>
    <name>dt.operator.Filter.port.input.attr.PARTITION_PARALLEL</name>
    <value>true</value>
  </property>
  <property>
    <name>dt.operator.Record-writer.port.input.attr.PARTITION_PARALLEL</name>
    <value>true</value>
  </property>
</configuration>
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Writes a file into the working directory and reads it; paths are then shown as their names."""
    monkeypatch.chdir(tmp_path)

    def read(name, content):
        path = Path(name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_file(path)

    return read


def told(read):
    return [(w.origin.where.line, w.key, w.value) for w in read[0]]


def faults(read):
    return [(f.code, str(f.where), f.problem) for f in read[1]]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("zero.xml", "it cannot be opened: it is not a regular file"),
        ("fifo.xml", "it cannot be opened: it is not a regular file"),
        ("folder.xml", "it cannot be opened: Is a directory"),
        ("none.xml", "there is no such file"),
        ("a\0.xml", "it cannot be opened: this is not a path: embedded null byte"),
    ],
)
def test_a_file_is_a_regular_one(name, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder.xml").mkdir()
    for link, target in (("zero.xml", "/dev/zero"), ("fifo.xml", "pipe")):
        Path(link).symlink_to(target)
    assert faults(read_file(Path(name))) == [("file-unreadable", printable(name), problem)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "it nests lists and objects deeper than 100"),
        ("a = " + "[" * 150 + "]" * 150, "it nests lists and objects deeper than 100"),
        pytest.param("a" + ".a" * 5000 + " = 1", "it nests lists and objects deeper than 100", id="a deep key"),
        ("a = " + "9" * 5000, "a value cannot be read: Exceeds the limit"),
    ],
)
def test_toml_has_bounds(file, text, problem):
    ((code, _, told),) = faults(file("a.toml", text))
    assert code == "file-unreadable"
    assert told.startswith(problem)


@pytest.mark.parametrize("encoding", ["punycode", "undefined", "idna", "base64", "utf-7", "UTF-32", "ebcdic-cp-us"])
@pytest.mark.parametrize(
    "declaration", ['<?xml version="1.0" encoding="{}"?>', "<?xml version='1.0'\nencoding = '{}' ?>"]
)
def test_an_encoding_that_no_property_file_has_is_refused_before_it_is_decoded(file, declaration, encoding):
    many = "<property><name>k</name><value>" + "a" * 1000 + "-" + "9" * 100_000 + "</value></property>"
    read = file("a.xml", declaration.format(encoding) + f"<configuration>{many}</configuration>")
    known = "UTF-8, UTF-16, ISO-8859-1, windows-1252 and US-ASCII"
    sentence = f"it declares the encoding '{encoding}', but dagkit reads only {known}"
    assert faults(read) == [("file-unreadable", "a.xml:1", sentence)]


@pytest.mark.parametrize("declared", ["", '<?xml version="1.0" encoding="UTF-16"?>\n'])
@pytest.mark.parametrize("around", ["{}", "<configuration>{}</configuration>"])
def test_xml_may_be_utf_16(file, declared, around):
    text = declared + around.format("<property><name>dt.ä</name><value>1</value></property>")
    assert [(w.key, w.value) for w in file("a.xml", text.encode("utf-16"))[0]] == [("dt.ä", "1")]
    assert [code for code, _, _ in faults(file("b.xml", text.encode("utf-16")[:-1]))] == ["file-unreadable"]


@pytest.mark.parametrize("before", ["", '<?xml version="1.0"?>\n', "<!-- as\nin Apex's manual -->\n", "\n\n"])
def test_properties_are_read_with_their_lines_and_a_bare_list_of_them_as_well(file, before):
    keys = [f"dt.operator.{name}.port.input.attr.PARTITION_PARALLEL" for name in ("Filter", "Record-writer")]
    assert told(file("seed.xml", SEED)) == [(4, keys[0], "true"), (8, keys[1], "true")]
    lines = [2 + before.count("\n"), 6 + before.count("\n")]
    bare = before + "".join(SEED.splitlines(keepends=True)[2:-1])
    assert told(file("bare.xml", bare)) == [(line, key, "true") for line, key in zip(lines, keys, strict=True)]


@cases(
    "inside, value",
    ("text is the value", "<value>a b</value>", "a b"),
    ("blanks and lines around it are not", "<value>\n  a\n</value>", "a"),
    ("comments are not", "<value>a<!-- not this -->b</value>", "ab"),
    ("CDATA is text", "<value><![CDATA[<b> & c]]></value>", "<b> & c"),
    ("entities of XML itself are text", "<value>&lt;&#233;&gt;</value>", "<é>"),
    ("a blank is a value", "<value> </value>", " "),
    ("an empty value is none", "<value></value>", None),
    ("an empty element is none", "<value/>", None),
    ("no element is none", "", None),
    ("a description is none", "<description>what it is for</description>", None),
)
def test_values_of_xml(file, inside, value):
    text = f"<configuration><property><name>k</name>{inside}</property></configuration>"
    assert told(file("conf.xml", text)) == [(1, "k", value)]


def test_a_property_may_be_final_and_may_be_written_as_attributes(file):
    text = "<configuration><property><name>k</name><value>v</value><final>true</final></property></configuration>"
    assert [written.final for written in file("conf.xml", text)[0]] == [True]
    assert told(file("conf.xml", '<configuration><property name="k" value="v"/></configuration>')) == [(1, "k", "v")]


BOMB = '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>\n<configuration>&b;</configuration>'
OTHER_FILE = '<!DOCTYPE b [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<configuration>&a;</configuration>'
DTD = '<!DOCTYPE b SYSTEM "http://example.org/b.dtd"><configuration/>'
LATIN = b"<configuration>\n<property><name>k</name><value>\xe9</value></property></configuration>"
DECLARED = '<?xml version="1.0" encoding="UTF-16"?><configuration/>'


@pytest.mark.parametrize(
    ("place", "data", "problem"),
    [
        ("conf.xml:1", BOMB, "it contains a DOCTYPE"),
        ("conf.xml:1", OTHER_FILE, "it contains a DOCTYPE"),
        ("conf.xml:1", DTD, "it contains a DOCTYPE"),
        ("conf.xml:3", "<configuration>\n<property>\n</configuration>", "it is not XML: mismatched tag"),
        ("conf.xml:2", "<configuration>\n<property>", "it is not XML: no element found"),
        ("conf.xml:1", "", "it is not XML: no element found"),
        ("conf.xml:1", "<config>\n</config>", "its root is <config>"),
        ("conf.xml:2", LATIN, "byte 0xE9 on this line is not UTF-8"),
        ("conf.xml:1", "<configuration>&b;</configuration>", "it is not XML: undefined entity"),
        ("conf.xml:1", DECLARED, "it declares UTF-16, but its first bytes are not UTF-16"),
        ("conf.properties:2", b"a=1\nb = \\u12\n", "'\\\\u12' is not an escape"),
        ("conf.properties:1", codecs.BOM_UTF16_LE + "a=1".encode("utf-16-le"), "it is encoded in UTF-16"),
        ("conf.properties:2", b"a=1\nb=\x00", "it contains a NUL byte, so it is not text"),
        ("conf.toml:2", b"a = 1\nb = \n", "it is not TOML: invalid value"),
        ("conf.toml:2", b"a = 1\na = 2\n", "it is not TOML: cannot overwrite a value"),
        ("conf.toml:2", b"a = 1\nb = '\xe9'\n", "byte 0xE9 on this line is not UTF-8"),
        ("conf.toml", b"[a", "it is not TOML: expected ']' at the end of a table declaration"),
        ("conf.yaml", "a: 1", "its name does not end in .xml, .properties or .toml"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(file, place, data, problem):
    assert faults(file(place.partition(":")[0], data)) == [("file-unreadable", place, problem)]


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "UTF-8", "UTF-16"])
def test_a_declared_encoding_holds(file, encoding):
    inside = "<property><name>k</name><value>é</value></property>"
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<configuration>{inside}</configuration>'
    assert told(file("conf.xml", text.encode(encoding))) == [(2, "k", "é")]


def test_what_is_no_property_is_reported_and_the_rest_is_read(file):
    read = file(
        "conf.xml",
        "<configuration>\n<proprty/>\n<property><nam>k</nam></property>\nstray\n"
        "<property><name>k</name><name>l</name><value>v</value></property>\n"
        "<property><value>v</value></property>\n</configuration>",
    )
    assert faults(read) == [
        ("key-malformed", "conf.xml:2", "<proprty> is not a property"),
        ("key-malformed", "conf.xml:3", "a property has no <nam>"),
        ("key-malformed", "conf.xml:3", "a property has no name"),
        ("key-malformed", "conf.xml:4", "the text 'stray' is outside a property"),
        ("key-malformed", "conf.xml:5", "a property has a second <name>"),
        ("key-malformed", "conf.xml:6", "a property has no name"),
    ]
    assert [key for _, key, _ in told(read)] == ["l"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb : 2\nc 3", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")]),
        pytest.param("# no\n! no\n\n a = 1 ", [(4, "a", "1 ")], id="comments and blank lines"),
        pytest.param("a = 1,\\\n    2\nb=3", [(1, "a", "1,2"), (3, "b", "3")], id="a value that goes on"),
        pytest.param("a\\ b\\=c = \\u00e9\\t", [(1, "a b=c", "é\t")], id="escapes"),
        pytest.param("a = C:\\\\x", [(1, "a", "C:\\x")], id="a backslash"),
        pytest.param(
            "a=\nb\nc:", [(1, "a", ""), (2, "b", None), (3, "c", "")], id="an empty value is one, a key alone has none"
        ),
        pytest.param("a=1\r\nb=2\rc=3", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")], id="every end of line"),
    ],
)
def test_javas_properties(file, text, expected):
    assert told(file("conf.properties", text)) == expected


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8", "utf-8-sig"])
def test_properties_are_read_in_javas_encoding_or_utf_8(file, encoding):
    assert told(file("conf.properties", "k = é".encode(encoding))) == [(1, "k", "é")]


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.dictionaries(TEXT.filter(bool), TEXT.filter(bool)))
def test_what_java_writes_is_read_back(pairs):
    written, _ = read_properties(javaproperties.dumps(pairs).encode("iso-8859-1"))
    assert {w.key: w.value for w in written} == pairs


def test_tables_become_keys_and_values_keep_their_types(file):
    text = (
        "[dt.operator.Filter]\nport.input.attr.PARTITION_PARALLEL = true\nblockSize = 7\n\n[dt.operator.Filter.prop]\n"
    )
    values = 'names = ["a", "b"]\nwhen = 2026-01-02\ntags."key.dot" = 64\n'
    assert told(file("conf.toml", text + values)) == [
        (2, "dt.operator.Filter.port.input.attr.PARTITION_PARALLEL", True),
        (3, "dt.operator.Filter.blockSize", 7),
        (6, "dt.operator.Filter.prop.names", ["a", "b"]),
        (7, "dt.operator.Filter.prop.when", dt.date(2026, 1, 2)),
        (8, "dt.operator.Filter.prop.tags(key.dot)", 64),
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param('"dt.attr.MEMORY_MB" = 1', "dt.attr.MEMORY_MB", id="a key in quotes is a whole path"),
        pytest.param('[dt]\n"attr.MEMORY_MB" = 1', "dt.attr.MEMORY_MB", id="a path may go on below its prefix"),
        ('[dt.operator.Filter]\n"port.input.attr.X" = 1', "dt.operator.Filter.port.input.attr.X"),
        pytest.param('[dt.operator."*".attr]\nX = 1', "dt.operator.*.attr.X", id="a name may be a pattern"),
        ('[dt.operator.Filter.map]\n"key.with.dots" = 1', "dt.operator.Filter.map(key.with.dots)"),
        ('dt.operator.Filter.map = {"a.b" = 1}', "dt.operator.Filter.map(a.b)"),
        pytest.param('[dt.operator.x.prop]\n"a.b" = 1', "dt.operator.x.prop.a.b", id="and behind prop"),
        ('[dt.operator.x.prop.tags]\n"a.b" = 2', "dt.operator.x.prop.tags(a.b)"),
    ],
)
def test_dots_in_quotes(file, text, key):
    assert [k for _, k, _ in told(file("conf.toml", text))] == [key]


UNQUOTED = ["[dt.operator.It.*]", r"[dt.operator.It\w*]", r'[dt.operator."It\w*"]', r"dt.operator.It\w.x = 1"]


@pytest.mark.parametrize("text", [*UNQUOTED, "[dt.operator.a b]"])
def test_a_name_that_needs_quotes_is_answered_with_how_to_quote_it(file, text):
    (fault,) = file("conf.toml", text)[1]
    assert fault.help == r"fix the line; put names with punctuation into single quotes, as in [dt.operator.'Tok\w*']"
    assert told(file("conf.toml", "[dt.operator.'Tok\\w*']\nx = 1")) == [(2, r"dt.operator.Tok\w*.x", 1)]


@pytest.mark.parametrize("text", ['[dt.operator."It.*"]', '[dt]\noperator."It.*"', '["dt.operator.It.*"]'])
def test_a_quoted_name_with_a_dot_is_answered_with_how_to_write_it(file, text):
    ((_, key, _),) = told(file("conf.toml", f"{text}\nprop.x = 1" if text.endswith("]") else f"{text}.prop.x = 1"))
    assert parse_key(key).help.endswith(r"in TOML in single quotes, as in [dt.operator.'Tok\w*']")


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("ending", [".xml", ".properties", ".toml"])
def test_a_large_file_is_read(file, ending):
    keys = [f"dt.operator.op{i}.prop.key" for i in range(20_000)]
    forms = {
        ".xml": "<property><name>{}</name><value>x</value></property>",
        ".toml": "{} = 'x'",
        ".properties": "{} = x",
    }
    body = "\n".join(map(forms[ending].format, keys))
    read = file(f"big{ending}", f"<configuration>{body}</configuration>" if ending == ".xml" else body)
    assert not read[1]
    assert [(w.origin.where.line, w.key) for w in read[0]] == list(enumerate(keys, 1))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a = 1\nb = 2", {("a",): 1, ("b",): 2}, id="a line for a key"),
        pytest.param("\n# a = 0\na = 1 # b = 2\n", {("a",): 3}, id="comments count as lines, not as keys"),
        ("[t]\na = 1\n[t.u]\nb = 2", {("t",): 1, ("t", "a"): 2, ("t", "u"): 3, ("t", "u", "b"): 4}),
        pytest.param("a = [\n1, # ]\n2]\nb = 1", {("a",): 1, ("b",): 4}, id="a list may go on"),
        pytest.param('a = """\nb = 1\n"""\nc = 1', {("a",): 1, ("c",): 4}, id="so may a text"),
        pytest.param("a = '''\n\\'''\nc = 1", {("a",): 1, ("c",): 3}, id="a literal text has no escapes"),
        ('a = "]#"\nb = {c = "}", d = [1]}\ne = 1', {("a",): 1, ("b",): 2, ("b", "c"): 2, ("b", "d"): 2, ("e",): 3}),
        ("\"a b\".'c.d' . e = 1", {("a b",): 1, ("a b", "c.d"): 1, ("a b", "c.d", "e"): 1}),
        pytest.param("[t.u]\na = 1", {("t", "u"): 1, ("t", "u", "a"): 2}, id="a table has all of its name"),
        ("a = [ # [t]\n[1], 2,\n'[u]',\n]\n[t] # ]\nb = 1", {("a",): 1, ("t",): 5, ("t", "b"): 6}),
        pytest.param("[[t]]\na = 1\n[[t]]\na = 2", {("t",): 1, ("t", "a"): 2}, id="the first of several tables"),
        pytest.param('a = """"quoted""""\nb = 1', {("a",): 1, ("b",): 2}, id="quotes at the end of a long text"),
    ],
)
def test_lines(text, lines):
    tomllib.loads(text)
    assert toml_lines(text) == lines


KEYS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=4)
VALUES = st.sampled_from(["1", "'#'", '"]"', '"""\n x = 1\n"""', "[\n1,\n2\n]", "{a = [1], b = '}'}", "true"])


@given(st.lists(st.tuples(KEYS, VALUES), unique_by=lambda pair: pair[0]))
def test_every_key_is_found_on_the_line_where_it_was_written(pairs):
    text, expected = "", {}
    for key, value in pairs:
        expected[key,] = text.count("\n") + 1
        text += f"{key} = {value} # the rest\n"
    assert {path: line for path, line in toml_lines(text).items() if len(path) == 1} == expected
