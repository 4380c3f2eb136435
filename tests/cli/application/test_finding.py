"""APP is a file, a folder, a name in a module, or a declaration."""

import pickle
import sys

import pytest

from dagkit.cli.application.finding import place_of
from tests.cases import cases
from tests.cli.samples import WORD_COUNT

TWO = WORD_COUNT + "\n\nclass LetterCount(WordCount):\n    pass\n\n\nclass Total(WordCount):\n    name = 'Sum of all'\n"
FUNCTION = WORD_COUNT.partition("class WordCount")[0] + (
    "def populate_dag(dag, conf):\n"
    '    lines, split = dag.add_operator("lines", Lines()), dag.add_operator("split", Split())\n'
    '    dag.add_stream("text", lines.lines, split.lines)\n'
)


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("word_count.py", "word_count.py"),
        ("apps/word_count/app.py", "apps/word_count"),
        ("apps/word_count/app.py", "apps/word_count/"),
        ("word_count.py", "word_count:WordCount"),
        ("word_count.py", "word_count.py:WordCount"),
        ("some/where/word-count.py", "some/where/word-count.py:WordCount"),
        ("some/where/word_count.py", "some.where.word_count:WordCount"),
        ("some/where/word-count.py", "some/where/word-count.py"),
        ("json.py", "json.py"),
    ],
)
def test_an_application_is_found(dagkit, write, file, target):
    write(file, WORD_COUNT)
    assert dagkit("validate", target).out == "WordCount is valid: 3 operators, 2 streams, 2 stages\n"


@pytest.mark.parametrize(
    ("file", "target", "hidden"),
    [
        ("copy.py", "copy.py", "copy"),
        ("types/__init__.py", "word_count.py", "types"),
        ("queue.py", "word_count:WordCount", "queue"),
        ("test/__init__.py", "word_count.py", ""),
        ("types/other.txt", "word_count.py", ""),
    ],
)
@pytest.mark.usefixtures("word_count")
def test_a_file_that_hides_a_module_of_python_is_reported(dagkit, write, file, target, hidden):
    write(file, WORD_COUNT)
    told = dagkit("validate", target)
    what, consequence = f"{file.partition('/')[0]} hides Python's own module {hidden}", "and libraries that import that"
    lines = [f"warning: {what}, {consequence} fail or misbehave; rename it"] * bool(hidden)
    assert (told.code, [line for line in told.err.splitlines() if "hides" in line]) == (0, lines)


@pytest.mark.parametrize("target", ["tiny.py", "tiny/app.py", "tiny:populate_dag"])
def test_a_function_is_an_application_named_after_its_file(dagkit, write, target):
    write(target.replace(":populate_dag", ".py"), FUNCTION)
    assert dagkit("validate", target).out.startswith("tiny is valid")


BASE = "from dagkit import StreamingApplication\nclass Base(StreamingApplication):\n    "
DRAW = "write def populate_dag(self, dag: Dag, conf: Config) in it"


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("from word_count import WordCount\n", "it imports WordCount: write word_count:WordCount\n"),
        (f"{BASE}pass\n", f"Base at a.py:2 has no populate_dag: {DRAW}\n"),
        (f"{BASE}def populateDAG(self, dag, conf):\n        pass\n", f"{DRAW} instead of populateDAG\n"),
        (
            "def populate_dags(dag, conf):\n    pass\n",
            "rename populate_dags to populate_dag to make it the application",
        ),
        ("", "define a subclass of StreamingApplication, or a function populate_dag(dag, conf)"),
    ],
)
@pytest.mark.usefixtures("word_count")
def test_for_a_file_without_an_application_the_help_says_what_to_write(dagkit, write, text, help_):
    write("a.py", text)
    dagkit("validate", "a.py").fails(6, "a.py holds no application [application-missing]\n  help: ", help_)
    if "populateDAG" in text:
        dagkit("validate", "a:Base").fails(6, help_)


@cases(
    "name, chosen",
    ("by its class", "WordCount", "WordCount"),
    ("by its name", "Sum of all", "Sum of all"),
    ("a class whose name is another", "Total", "Sum of all"),
    ("by a part", "letter", "LetterCount"),
    ("whatever the case", "SUM", "Sum of all"),
)
def test_one_of_several_is_chosen(dagkit, write, name, chosen):
    write("two.py", TWO)
    assert dagkit("validate", "two.py", "--app", name).out.startswith(f"{chosen} is valid")


def test_of_several_a_very_name_is_stronger_than_a_part_of_another_and_else_they_are_listed(dagkit, write):
    write("two.py", TWO)
    first, second, third = (TWO[: TWO.index(f"class {name}")].count("\n") + 1 for name in ("WordCount", "Lett", "Tot"))
    listed = f"  WordCount    two.py:{first}\n  LetterCount  two.py:{second}\n  Sum of all   two.py:{third}\n"
    problem, help_ = (
        "two.py holds several applications [application-missing]",
        "choose one with --app, as in --app WordCount",
    )
    dagkit("validate", "two.py").fails(6, f"{problem}\n{listed}  help: {help_}\n")
    answer = dagkit("validate", "two.py", "--app", "count")
    answer.fails(6, "'count' is part of several names in two.py [application-missing]\n  WordCount  ")
    assert "Sum of all" not in answer.err
    misspelt = dagkit("validate", "two.py", "--app", "WordCuont")
    misspelt.fails(6, "holds no application 'WordCuont'; did you mean 'WordCount'?")
    write("two.py", TWO.replace("LetterCount", "WordCountOfLetters"))
    assert dagkit("validate", "two.py", "--app", "WordCount").out.startswith("WordCount is valid")


MISSING = "[application-missing]\n  help: did you mean"
FOLDER = "run is the folder in which an application runs, and this command needs the application itself"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("word_cuont.py", "did you mean 'word_count.py'?"),
        ("word_cuont.py:WordCount", f"there is no file or folder 'word_cuont.py' {MISSING} 'word_count.py'?"),
        ("word_count.py:WordCuont", f"WordCuont of word_count.py does not exist {MISSING} 'WordCount'?"),
        ("nowhere/at/all.py", "APP is a file, a folder with app.py, or module:Class"),
        ("emptied", "help: did you mean 'empty'?"),
        ("word_count:WordCuont", "did you mean 'WordCount'?"),
        ("word_count:Split", "Split of word_count is not an application"),
        ("word_count:Split", "help: known here: 'WordCount'"),
        ("word_count:Zzz", "help: known here: 'WordCount'"),
        ("no_such_module:App", "there is no module no_such_module"),
        ("word_count.deeper:App", "there is no module word_count.deeper"),
        ("empty", "holds no app.py"),
        ("half", "name one of its files: part.py"),
        ("run", FOLDER),
        ("empty/readme.txt", "declared applications end in .json or .properties"),
    ],
)
@pytest.mark.usefixtures("word_count")
def test_what_is_not_there_exits_with_6(dagkit, write, target, said):
    for name, text in {"half/part.py": "", "empty/readme.txt": "", "run/ledger/ledger.json": "{}"}.items():
        write(name, text)
    dagkit("validate", target).fails(6, said)


LATE = "def populate_dag(dag, conf):\n    import words\n    words.WordCount().populate_dag(dag, conf)\n"


def test_modules_beside_the_application_can_be_imported_at_any_time_and_relatively(dagkit, write):
    write("app/words.py", WORD_COUNT)
    write("app/app.py", LATE)
    assert dagkit("validate", "app").code == 0
    write("pack/__init__.py", "")
    write("pack/words.py", WORD_COUNT)
    write("pack/app.py", "from . import words\nclass Mine(words.WordCount):\n    pass\n")
    assert dagkit("validate", "pack/app.py").out.startswith("Mine is valid")
    assert dagkit("validate", "pack").out.startswith("Mine is valid")


def test_nothing_of_an_application_is_left_behind_and_the_plan_does_not_show_where_it_lies(dagkit, write):
    text = WORD_COUNT.replace("Split()", "Split(min_length=parts.length)") + "\nimport parts\n"
    for folder, length in (("one", 2), ("two/deeper", 3), ("there", 2)):
        write(f"{folder}/parts.py", f"length = {length}")
        write(f"{folder}/app.py", text)
    modules, path = set(sys.modules), list(sys.path)
    assert "min_length changes from 2 to 3" in dagkit("diff", "one", "two/deeper").out
    assert not {"app", "parts"} & (set(sys.modules) - modules)
    assert sys.path == path
    assert dagkit("plan", "one", "--json").out == dagkit("plan", "there", "--json").out


def test_classes_of_the_application_can_be_pickled_while_it_is_held(word_count):
    with place_of(word_count) as place:
        made = place.choose(None).make()
        assert type(pickle.loads(pickle.dumps(made))) is type(made)  # noqa: S301 - what was pickled a moment ago


@pytest.mark.parametrize("library", ["json", "colorsys"], ids=["that is loaded", "that is not loaded"])
def test_a_file_named_like_a_library_does_not_take_its_place(write, library):
    loaded = sys.modules.get(library)
    with place_of(str(write(f"{library}.py", WORD_COUNT))) as place:
        assert place.module.__name__ == f"dagkit_app_{library}"
        assert sys.modules.get(library) is loaded


@pytest.mark.slow
def test_a_file_in_the_folder_that_python_started_in_keeps_its_name(process, word_count):
    assert process("plan", word_count, "--json").document["operators"][0]["class"] == "word_count.Lines"


DECLARED = """{
  "operators": [
    {"name": "lines", "class": "parts.Lines"},
    {"name": "split", "class": "parts.Split", "properties": {"min_length": 2}}
  ],
  "streams": [{
    "name": "text", "source": {"operatorName": "lines", "portName": "lines"},
    "sinks": [{"operatorName": "split", "portName": "lines"}]
  }]
}
"""
AS_KEYS = """\
dt.operator.lines.classname = parts.Lines
dt.operator.split.classname = parts.Split
dt.operator.split.prop.min_length = 2
dt.stream.text.source = lines.lines
dt.stream.text.sinks = split.lines
"""


def test_an_application_is_declared_in_a_file_in_either_form(dagkit, write):
    write("small/parts.py", WORD_COUNT)
    for file, text in {"small.json": DECLARED, "small.properties": AS_KEYS, "app.json": DECLARED}.items():
        write(f"small/{file}", text)
        target = f"small/{file}".replace("/app.json", "")
        assert dagkit("validate", target).out == "small is valid: 2 operators, 1 stream, 2 stages\n"
    assert dagkit("diff", "small/small.json", "small/small.properties", "--exit-code").code == 0


def test_a_plan_can_be_declared_again_and_an_absolute_path_is_found_from_anywhere(
    dagkit, word_count, write, monkeypatch
):
    path = write("plan.json", dagkit("plan", word_count, "--json").out)
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.chdir(write("elsewhere/x", "").parent)
    assert dagkit("validate", str(path)).out == "WordCount is valid: 3 operators, 2 streams, 2 stages\n"


def test_a_faulty_declaration_is_its_authors_fault(dagkit, write):
    write("parts.py", WORD_COUNT)
    write("small.json", DECLARED.replace('"portName": "lines"}]', '"portName": "linse"}]'))
    dagkit("validate", "small.json").fails(3, "small.json:", "did you mean 'lines'?")
    write("small.json", '{"operators": [')
    dagkit("validate", "small.json").fails(3, "small.json", "[file-unreadable]")
