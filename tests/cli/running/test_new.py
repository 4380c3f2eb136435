"""`dagkit new`: a folder with what one needs to begin, and copies of the examples."""

import ast
import gzip
import json
import lzma
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.cli.making.examples import SAMPLES, examples
from dagkit.cli.making.file_look import files_below
from dagkit.cli.running import new
from tests.cli.conftest import ROOT
from tests.old_files import aged, old_file
from tests.patience import LONG_WINDOWS
from tests.services.postgres import PASSWORD


def test_a_new_application_is_valid_named_after_its_folder_and_runs_as_the_command_says(dagkit, folder, monkeypatch):
    answer = dagkit("new", "my-words")
    assert answer.out == "my-words: app.py, input/lines.txt, properties.properties, test_app.py\n"
    assert "dagkit launch app.py --once --reference" in answer.err
    assert dagkit("validate", "my-words").out.startswith("MyWords is valid: 4 operators")
    monkeypatch.chdir(folder / "my-words")
    assert dagkit("launch", "app.py", "--once", "--reference").code == 0
    (written,) = (folder / "my-words" / "output").iterdir()
    assert written.read_text() == "a first line\na second line, after a blank one\n"


def test_a_new_application_can_be_launched_by_the_same_command_which_prints_others_that_work_here(dagkit, folder):
    answer = dagkit("new", "words", "--launch", **LONG_WINDOWS)
    assert answer.code == 0
    assert "\nWords: 1 window, 47 B read, 46 B written to 1 file in " in answer.out
    written_at, sample_at = ((folder / "words" / name).stat().st_mtime for name in ("app.py", "input/lines.txt"))
    assert sample_at < written_at - 50, "no launch waits for it"
    (written,) = (folder / "words" / "output").iterdir()
    assert written.read_text() == "a first line\na second line, after a blank one\n"
    assert Path.cwd() == folder
    assert "output: words/output (Writer)\nledger: dagkit ledger show words/.dagkit/Words\n" in answer.out
    assert dagkit("ledger", "show", "words/.dagkit/Words").code == 0


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize("example", [*SAMPLES])
def test_an_example_with_input_can_be_launched_by_the_same_command(dagkit, folder, example):
    answer = dagkit("new", "mine", "--launch", "--example", example)
    assert (answer.code, "no input found" in answer.out) == (0, False), answer.err
    assert [file for file in (folder / "mine" / "output").rglob("*") if file.is_file() and file.stat().st_size]


def test_without_pytest_the_command_says_how_to_install_it(dagkit, folder, monkeypatch):
    assert "pip install" not in dagkit("new", "one").err
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert "  python -m pip install pytest\n  python -m pytest\n" in dagkit("new", "two").err


@pytest.mark.parametrize("example", [(), ("--example", "line_filter")])
def test_a_folder_that_cannot_be_made_is_reported(dagkit, folder, example):
    (folder / "file").touch()
    problem, help_ = "file/words cannot be made: Not a directory", "give a folder in a place where this user may write"
    dagkit("new", "file/words", *example).fails(5, f"{problem} [result-unwritable]\n  help: {help_}\n")
    dagkit("new", TOO_LONG, *example).fails(5, "cannot be made: File name too long", help_)


@pytest.mark.slow
def test_the_test_of_a_new_application_passes(dagkit, process, folder):
    dagkit("new", "words")
    passed = process(python=("-m", "pytest", "-q", "-p", "no:cacheprovider", "words"))
    assert (passed.code, "1 passed" in passed.out) == (0, True), passed.out


def test_an_example_is_copied_with_its_property_file_and_every_application_of_the_repository_is_one(dagkit):
    answer = dagkit("new", "mine", "--example", "line_filter", "--json")
    assert {"app.py", "properties.xml"} <= set(answer.document["files"])
    assert dagkit("validate", "mine").code == 0
    assert set(examples()) == {app.parent.name for app in (ROOT / "apps").glob("*/app.py")}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("there", "'there' exists already; name a folder that does not exist"),
        ("new --example line_filtre", "there is no example 'line_filtre'; did you mean 'line_filter'?"),
        ("1st", "'1st' makes no name of a class: begin it with a letter of A to Z"),
        ("", "Missing argument 'FOLDER'."),
        ("words --launch --json", ""),
        ("words --launch --example avro_blocks", ""),
    ],
)
def test_nothing_is_overwritten_and_nothing_guessed(dagkit, folder, arguments, problem):
    (folder / "there").mkdir()
    answer = dagkit("new", *arguments.split())
    assert (answer.code, problem in answer.err) == (2, True)
    assert [entry.name for entry in folder.iterdir()] == ["there"]


@pytest.mark.parametrize("arguments", [("--example",), ("words", "--example")], ids=" ".join)
def test_the_examples_are_listed_if_none_is_named(dagkit, folder, arguments):
    answer = dagkit("new", *arguments)
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()] == list(examples())
    assert "word_count      Counts the words of text files" in answer.out
    assert list(folder.iterdir()) == []


TOO_LONG = "x" * 300
"""A name that no file can have."""
ORDERS = """\
id,zip,Unit price,day,at,ok
1,007,2.5,2024-05-01,2024-05-01 10:00:00,true
2,123,NA,2024-02-31,2024-05-01 10:00:00,
"""
PEOPLE = [
    {"id": 1, "home": {"city": "Rome", "zip": 7}, "tags": ["a"], "size": 1},
    {"id": 2, "home": {"city": "Oslo"}, "tags": [], "size": 1.5, "seen": [{"n": 1}]},
]


def made(dagkit, *options):
    """The source code of the application, after it was made, and its launch was right."""
    answer = dagkit("new", "mine", *options, "--launch")
    assert (answer.code, "quarantined" in answer.out) == (0, False), answer.err
    return Path("mine/app.py").read_text(), answer


def rows_written():
    return [row for file in sorted(Path("mine/output").iterdir()) for row in pa_parquet.read_table(file).to_pylist()]


def test_the_columns_of_csv_files_have_the_types_that_nearly_all_of_their_values_fit(dagkit, write):
    write("in/a.csv", "id;name;price\n" + "".join(f"{i};Ann;{i}.5\n" for i in range(20)) + "x;Bob;\n")
    write("in/notes.txt", "a note\n")
    code, answer = made(dagkit, "--from", "in")
    assert "    id: int\n    name: str\n    price: float | None\n" in code
    assert 'CsvContext(record_type=Row, separator=";")' in code
    assert "reads 1 CSV file in" in answer.err
    assert "id: 1 of 21 values are no int; their rows are rejected\n" in answer.err
    assert "price: empty in some rows, which pass with None; remove `| None` to reject them\n" in answer.err
    assert "not read: 1 text file\n" in answer.err
    assert rows_written() == [{"id": i, "name": "Ann", "price": i + 0.5} for i in range(20)]
    (rejected,) = Path("mine/rejected").iterdir()
    assert json.loads(rejected.read_text())["text"] == "x;Bob;"


def test_files_are_read_whatever_the_case_of_their_endings_and_the_order_of_their_columns(dagkit, write):
    write("in/a.csv", "id,name\n1,Ann\n")
    write("in/b.CSV", "name,id\nBob,2\n")
    write("in/README.TXT", "a note\n")
    code, answer = made(dagkit, "--from", "in")
    assert "    id: int\n    name: str\n" in code
    assert ("reads 2 CSV files in" in answer.err, "set aside" in answer.err) == (True, False)
    assert sorted((row["id"], row["name"]) for row in rows_written()) == [(1, "Ann"), (2, "Bob")]


def test_a_file_that_cannot_be_read_keeps_no_other_from_being_looked_at(dagkit, write):
    write("in/a.csv", "id,name\n1,Ann\n")
    write("in/b.csv.gz", "no gzip file\n")
    code, answer = made(dagkit, "--from", "in")
    assert "    id: int\n" in code
    assert "in/b.csv.gz cannot be read: " in answer.err
    assert ": such files are set aside\n" in answer.err
    assert rows_written() == [{"id": 1, "name": "Ann"}]
    Path("in/a.csv").unlink()
    refused = dagkit("new", "another", "--from", "in")
    assert (refused.code, "b.csv.gz cannot be read" in refused.err) == (2, True)


def test_codes_days_that_there_are_not_and_names_that_are_no_identifiers_are_kept_as_they_are(dagkit, write):
    write("in/a.csv", ORDERS)
    code, _ = made(dagkit, "--from", "in/a.csv")
    types = (
        '"id": int',
        '"zip": str',
        '"Unit price": float | None',
        '"day": str',
        '"at": datetime',
        '"ok": bool | None',
    )
    assert [hint for hint in types if hint not in code] == []
    assert 'null_values=("", "NA")' in code
    assert [(row["zip"], row["Unit price"], row["ok"]) for row in rows_written()] == [
        ("007", 2.5, True),
        ("123", None, None),
    ]


@pytest.mark.parametrize("name", ['a "quote"', 'three """', "a back\\slash \\N"])
def test_quotes_and_backslashes_in_names_are_no_code(name, dagkit, write):
    write(f"{name}/a.csv", "it's a 'name',a \\ and a \"\"quote\n1,a\n2,b\n")
    code, _ = made(dagkit, "--from", name)
    assert ast.get_docstring(ast.parse(code)) == f"Reads 1 CSV file in {name}."
    assert rows_written() == [
        {"it's a 'name'": 1, 'a \\ and a ""quote': "a"},
        {"it's a 'name'": 2, 'a \\ and a ""quote': "b"},
    ]


@pytest.mark.parametrize(
    "name",
    ["a, b", " a ", "two\nlines", "${env:HOME}", os.fsdecode(b"\xff")],
    ids=["list", "spaces", "lines", "key", "bytes"],
)
def test_a_folder_and_files_of_any_name_are_read(name, dagkit, write):
    write(f"in/{name}/{name}.csv", "n;city\n1;Rome\n")
    write(f"in/{name}/b.csv", "n,city\n2,Oslo\n")
    write(f"in/{name}/c.csv", "n,city\n3,Bern\n")
    write(f"in/{name}/d.txt", "a note\n")
    made(dagkit, "--from", f"in/{name}")
    assert sorted(row["city"] for row in rows_written()) == ["Bern", "Oslo", "Rome"]


def test_files_of_one_name_in_several_folders_have_each_its_own_encoding(dagkit, folder, monkeypatch):
    """Also if the working directory has the name of a folder in it."""
    for place, encoding, city in [("", "utf-8", "Bâle"), ("in/", "utf-8", "Genève"), ("in/in/", "latin-1", "Zürich")]:
        old_file(folder / f"in/{place}x.csv", f"city\n{city}\n".encode(encoding))
    monkeypatch.chdir("in")
    assert dagkit("new", "../mine", "--from", ".", "--launch").code == 0
    monkeypatch.chdir(folder)
    assert sorted(row["city"] for row in rows_written()) == ["Bâle", "Genève", "Zürich"]


def test_an_application_in_the_folder_that_it_reads_does_not_read_what_it_writes(dagkit, folder, monkeypatch):
    old_file(folder / "in/a.txt", b"Rome\n")
    monkeypatch.chdir("in")
    answer = dagkit("new", "mine", "--from", ".", "--launch")
    assert (answer.code, f"1 text file in {folder / 'in'}\nnot read: folders in it" in answer.err) == (0, True)
    monkeypatch.chdir("mine")
    assert dagkit("launch", "app.py", "--once", "--reference").code == 0
    assert [part.read_text() for part in Path("output").glob("part-*")] == ["Rome\n"]
    monkeypatch.chdir("..")
    refused = "mine/more would be in mine, and the application would read what it writes; name a folder outside of it"
    dagkit("new", "mine/more", "--from", "mine").fails(2, refused)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_an_encoding_of_wide_characters_is_found_by_its_mark_or_its_zeros(encoding, dagkit, folder):
    old_file(folder / "in/a.csv", "n,city\n1,Bâle\n".encode(encoding))
    old_file(folder / "in/b.csv", "n,city\n2,Genève\n")
    made(dagkit, "--from", "in")
    assert sorted(row["city"] for row in rows_written()) == ["Bâle", "Genève"]


@pytest.mark.parametrize(("ending", "packed"), [("GZ", gzip.compress), ("xz", lzma.compress)])
def test_compressed_files_are_looked_at(ending, packed, dagkit, folder):
    old_file(folder / f"in/a.csv.{ending}", packed(b"n,city\n1,Rome\n"))
    assert "    n: int\n    city: str\n" in made(dagkit, "--from", "in")[0]
    assert rows_written() == [{"n": 1, "city": "Rome"}]


def test_files_without_a_header_in_another_encoding_are_read(dagkit, folder):
    old_file(folder / "in/a.csv", "1\tZürich\n2\tBâle\n".encode("latin-1"))
    code, _ = made(dagkit, "--from", "in")
    assert 'separator="\\t", header=False, encoding="latin-1"' in code
    assert [row["column_2"] for row in rows_written()] == ["Zürich", "Bâle"]


def test_a_file_in_utf_16_of_which_only_the_beginning_is_looked_at_is_read(dagkit, folder):
    rows = [{"n": number, "city": "Bâle"} for number in range(20_000)]
    old_file(
        folder / "in/a.csv", ("\ufeffn,city\n" + "".join(f"{row['n']},Bâle\n" for row in rows)).encode("utf-16-le")
    )
    code, _ = made(dagkit, "--from", "in")
    assert 'encoding="utf-16"' in code
    assert rows_written() == rows


def test_files_that_differ_in_encoding_or_separator_are_all_read(dagkit, folder):
    """UTF-8 is chosen if it is among the encodings: no bytes of another one pass as text in it."""
    old_file(folder / "in/[a].csv", "n,city\n1,Zürich\n".encode("latin-1"))
    old_file(folder / "in/b.csv", "\ufeffn,city\n2,Bâle\n")
    old_file(folder / "in/c.csv", "n,city\n3,Bern\n")
    old_file(folder / "in/d.csv", "n;city\n4;Chur, Graubünden\n".encode("utf-16"))
    old_file(folder / "in/e.csv", "")
    code, answer = made(dagkit, "--from", "in")
    assert "encoding" not in code
    assert "2 of 5 files have another encoding and separator: Reader.prop.byFile in the properties" in answer.err
    assert sorted(row["city"] for row in rows_written()) == ["Bern", "Bâle", "Chur, Graubünden", "Zürich"]


def test_folders_are_listed_one_after_the_other_so_that_a_look_at_some_files_lists_no_others(write, folder):
    write("a/1.txt", "")
    write("b/2.txt", "")
    write(".hidden/3.txt", "")
    files = files_below(folder)
    assert next(files) == folder / "a/1.txt"
    write("b/4.txt", "")
    assert list(files) == [folder / "b/2.txt", folder / "b/4.txt"]


def test_archives_are_named_as_such_and_not_read(dagkit, write):
    write("in/a.jsonl", '{"n": 1}\n')
    for name in ("in/b.zip", "in/c.tar.gz"):
        write(name, "PK")
    assert "not read: 2 archives; archives are to be unpacked" in made(dagkit, "--from", "in")[1].err


def test_values_of_json_that_do_not_fit_are_named_by_the_path_of_their_field(dagkit, write):
    lines = [{"n": 1, "of": {"size": number or 0.5}, "big": number} for number in range(19)]
    write(
        "in/a.jsonl", "".join(json.dumps(line) + "\n" for line in [*lines, {"n": "x", "of": {"size": "?"}, "big": 0.5}])
    )
    _, answer = made(dagkit, "--from", "in")
    for remark in ("n: 1 of 20 values are no int", "of.size: 1 of 20 values are no float"):
        assert f"{remark}; their records are rejected\n" in answer.err
    assert "big:" not in answer.err
    assert len(rows_written()) == 19


def test_records_within_records_of_json_lines_become_classes_and_columns(dagkit, folder):
    lines = "".join(json.dumps(person) + "\n" for person in PEOPLE)
    old_file(folder / "in/a.jsonl.gz", gzip.compress(lines.encode()))
    code, _ = made(dagkit, "--from", "in")
    assert "class RowHome:" in code
    assert "    home: RowHome\n    tags: list[str]\n    size: float\n    seen: list[RowSeen] | None\n" in code
    ann, bob = rows_written()
    assert (ann["home"], ann["seen"]) == ({"city": "Rome", "zip": 7}, None)
    assert (bob["home"], bob["seen"]) == ({"city": "Oslo", "zip": None}, [{"n": 1}])


def test_parquet_is_copied_with_its_columns_and_text_line_by_line(dagkit, folder, write):
    (folder / "tables").mkdir()
    pa_parquet.write_table(pa.table({"a": [1, 2], "b": ["x", None]}), folder / "tables/a.parquet")
    aged(folder / "tables/a.parquet")
    made(dagkit, "--from", "tables")
    assert rows_written() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    write("logs/a.log", "one\ntwo\n")
    assert dagkit("new", "lines", "--from", "logs", "--launch").code == 0
    assert [file.read_text() for file in Path("lines/output").iterdir()] == ["one\ntwo\n"]


def test_a_table_is_read_by_its_number_with_the_types_of_its_columns(dagkit):
    with sqlite3.connect("shop.db") as connection:
        connection.execute("CREATE TABLE orders (name TEXT, id INTEGER PRIMARY KEY, price REAL)")
        connection.execute("INSERT INTO orders VALUES ('a', 1, 1.5), (NULL, 2, NULL)")
    connection.close()
    code, answer = made(dagkit, "--from", "sqlite:///shop.db", "--table", "orders")
    assert "    name: str | None\n    id: int\n    price: float | None\n" in code
    assert "rows are found by id" in answer.err
    assert rows_written() == [{"name": "a", "id": 1, "price": 1.5}, {"name": None, "id": 2, "price": None}]


@pytest.mark.parametrize(
    ("name", "written"), [*((f"{c}41", f"{c}41") for c in "%#?"), ("${x}", "${x}"), ("a#", "a%23")]
)
def test_a_database_in_a_file_of_any_name_is_read(name, written, dagkit, folder):
    with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, city TEXT)")
        connection.execute("INSERT INTO orders VALUES (1, 'Rome')")
        connection.commit()
    made(dagkit, "--from", f"sqlite:///{written}.db", "--table", "orders")
    assert rows_written() == [{"id": 1, "city": "Rome"}]


def test_a_url_with_a_password_puts_it_into_no_file(dagkit, postgres, monkeypatch):
    postgres.execute("CREATE TABLE bought AS SELECT 7 AS id, 'a' AS name")
    url = postgres.url.replace("@", f":{PASSWORD}@")
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    code, answer = made(dagkit, "--from", url, "--table", "bought")
    written = code + Path("mine/properties.properties").read_text() + answer.out + answer.err
    assert f":{PASSWORD}@" not in written
    assert "the password is in no file: set the variable DB_PASSWORD to it before a launch" in answer.err
    assert rows_written() == [{"id": 7, "name": "a"}]


def test_a_topic_of_json_becomes_records_and_another_one_text(dagkit, kafka):
    orders, notes, none = kafka.topic(2), kafka.topic(), kafka.topic()
    kafka.produce(orders, ['{"n": 1, "of": {"name": "Ann"}}'] * 20 + ['{"n": 2, "more": 1}'], 1)
    kafka.produce(orders, ["no JSON"])
    kafka.produce(notes, ["a note"])
    code, answer = made(dagkit, "--from", f"kafka://{kafka.address}/{orders}")
    assert "    n: int\n    of: RowOf | None = None\n    more: int | None = None\n" in code
    assert sorted(row["n"] for row in rows_written()) == [1] * 20 + [2]
    (rejected,) = Path("mine/rejected").iterdir()
    assert json.loads(rejected.read_text())["text"] == "no JSON"
    assert "of: " not in answer.err
    assert dagkit("new", "text", "--from", f"kafka://{kafka.address}/{notes}").code == 0
    assert "PartWriter()" in Path("text/app.py").read_text()
    assert "it has no messages to look at" in dagkit("new", "empty", "--from", f"kafka://{kafka.address}/{none}").err
    dagkit("new", "no", "--from", f"kafka://{kafka.address}/{orders}s").fails(2, f"did you mean {orders!r}?")


def test_a_topic_that_does_not_answer_is_read_as_text(dagkit):
    answer = dagkit("new", "mine", "--from", "kafka://localhost:9092/orders")
    assert "its messages were not looked at: localhost:9092 does not answer" in answer.err
    assert "Mine is valid: 4 operators, 3 streams, 4 stages" in dagkit("validate", "mine").out
    assert "Splitter.prop.topics = orders" in Path("mine/properties.properties").read_text()


def test_a_terminal_is_asked(write, monkeypatch):
    monkeypatch.setattr(new, "is_terminal", lambda _: True)
    write("in/a.jsonl", '{"n": 1}\n')
    asked = CliRunner().invoke(main, ["new", "mine"], input="1\nin\n")
    assert "What do you want to read?\n  1  files\n" in asked.stderr
    assert "    n: int\n" in Path("mine/app.py").read_text()
    asked = CliRunner().invoke(main, ["new", "topic"], input="2\n\norders\n")
    assert "reads the topic orders of localhost:9092" in asked.stderr
    assert CliRunner().invoke(main, ["new", "words"], input="\n").exit_code == 0
    assert Path("words/input/lines.txt").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--from nowhere", "there is no file or folder 'nowhere'; give a folder, a file, kafka://HOST:PORT/TOPIC"),
        (f"--from {TOO_LONG}", "there is no file or folder"),
        ("--from empty", "the folder empty has no file to look at"),
        ("--from kafka://localhost:9092", "names no topic; write kafka://HOST:PORT/TOPIC"),
        ("--from sqlite:///true.db", "name a table of the database: --table NAME; known here: 'orders', 'people'"),
        ("--from sqlite:///true.db --table order", "no such table: order; did you mean 'orders'?"),
        ("--from sqlite:///shop.db --table orders", "there is no database"),
        (f"--from sqlite:///{TOO_LONG} --table orders", "there is no database"),
        ("--from empty --table orders", "--table goes with a database"),
        ("--from empty --example count", "--from does not go with --example"),
        ("--from zipped", "zipped holds only archives, which are not read: unpack them"),
        ("--from list.json", "has no line with a JSON object"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_made(dagkit, folder, options, problem):
    (folder / "empty").mkdir()
    (folder / "list.json").write_text("[1,\n2]\n")
    (folder / "zipped").mkdir()
    (folder / "zipped/a.zip").write_bytes(b"PK")
    with closing(sqlite3.connect("true.db")) as connection:
        connection.executescript("CREATE TABLE orders (id INTEGER); CREATE TABLE people (id INTEGER)")
    dagkit("new", "mine", *options.split()).fails(2, problem)
    assert not (folder / "mine").exists()
