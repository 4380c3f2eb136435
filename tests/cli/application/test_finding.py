"""APP is a file, a folder, a name in a module, or a declaration."""

import pickle
import sys

import pytest

from dagkit.cli.application.finding import place_of
from dagkit.errors import ApplicationNotFound
from tests.cli.samples import WORD_COUNT

TWO = WORD_COUNT + "\n\nclass LetterCount(WordCount):\n    pass\n\n\nclass Total(WordCount):\n    name = 'Sum of all'\n"
FUNCTION = (
    WORD_COUNT.partition("class WordCount")[0]
    + """
def populate_dag(dag, conf):
    lines, split = dag.add_operator("lines", Lines()), dag.add_operator("split", Split())
    dag.add_stream("text", lines.lines, split.lines)
"""
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
    ("file", "target", "warned"),
    [
        ("copy.py", "copy.py", ["copy.py hides Python's own module copy"]),
        ("types/__init__.py", "word_count.py", ["types hides Python's own module types"]),
        ("queue.py", "word_count:WordCount", ["queue.py hides Python's own module queue"]),
        ("test/__init__.py", "word_count.py", []),
        ("types/other.txt", "word_count.py", []),
    ],
)
def test_a_file_that_hides_a_module_of_python_is_reported(dagkit, write, file, target, warned):
    write("word_count.py", WORD_COUNT)
    write(file, WORD_COUNT)
    told = dagkit("validate", target)
    assert (told.code, [line for line in told.err.splitlines() if "hides" in line]) == (
        0,
        [f"warning: {each}, and libraries that import that fail or misbehave; rename it" for each in warned],
    )


def test_an_absolute_path_is_found_from_anywhere(dagkit, write, folder, monkeypatch):
    path = write("deep/app.py", WORD_COUNT)
    monkeypatch.chdir(write("elsewhere/x", "").parent)
    assert dagkit("validate", str(path)).code == 0


@pytest.mark.parametrize(("file", "name"), [("tiny.py", "tiny"), ("tiny/app.py", "tiny")])
def test_a_function_is_an_application_named_after_its_file(dagkit, write, file, name):
    write(file, FUNCTION)
    assert dagkit("validate", file).out.startswith(f"{name} is valid")


@pytest.mark.parametrize("target", ["tiny:populate_dag", "tiny.py"])
def test_a_function_can_be_named_in_its_module(dagkit, write, target):
    write("tiny.py", FUNCTION)
    assert dagkit("plan", target, "--json").document["application"] == "tiny"


def test_what_is_imported_is_not_an_application_of_the_file(dagkit, write, word_count):
    write("other.py", "from word_count import WordCount\n")
    answer = dagkit("validate", "other.py")
    assert (answer.code, answer.out) == (6, "")
    assert answer.err == (
        "other.py holds no application [application-missing]\n"
        "  help: it imports WordCount: write word_count:WordCount\n"
    )


def test_an_application_without_its_function_is_named(dagkit, write):
    text = "from dagkit import StreamingApplication\nclass Base(StreamingApplication):\n    "
    write("a.py", text + "pass\n")
    answer = dagkit("validate", "a.py")
    assert answer.code == 6
    assert answer.err == (
        "a.py holds no application [application-missing]\n"
        "  help: Base at a.py:2 has no populate_dag: write def populate_dag(self, dag: Dag, conf: Config) in it\n"
    )
    write("b.py", text + "def populateDAG(self, dag, conf):\n        pass\n")
    for target in ("b.py", "b:Base"):
        assert dagkit("validate", target).err.endswith("conf: Config) in it instead of populateDAG\n")


def test_a_function_of_nearly_the_right_name_is_named(dagkit, write):
    write("a.py", "def populate_dags(dag, conf):\n    pass\n")
    assert "help: rename populate_dags to populate_dag to make it the application" in dagkit("validate", "a.py").err


def test_for_a_file_without_anything_the_help_says_what_to_define(dagkit, write):
    write("a.py", "")
    answer = dagkit("validate", "a.py")
    assert answer.code == 6
    assert "define a subclass of StreamingApplication, or a function populate_dag(dag, conf)" in answer.err


def test_where_no_name_is_near_the_applications_are_listed(dagkit, word_count):
    assert "help: known here: 'WordCount'" in dagkit("validate", "word_count:Zzz").err
    assert "help: known here: 'WordCount'" in dagkit("validate", "word_count:Split").err


def test_several_applications_are_listed_with_their_lines(dagkit, write):
    write("two.py", TWO)
    answer = dagkit("validate", "two.py")
    first, second, third = (TWO[: TWO.index(f"class {name}")].count("\n") + 1 for name in ("WordCount", "Lett", "Tot"))
    assert answer.code == 6
    assert answer.err.splitlines() == [
        "two.py holds several applications [application-missing]",
        f"  WordCount    two.py:{first}",
        f"  LetterCount  two.py:{second}",
        f"  Sum of all   two.py:{third}",
        "  help: choose one with --app, as in --app WordCount",
    ]


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("WordCount", "WordCount"),
        ("Sum of all", "Sum of all"),
        ("Total", "Sum of all"),
        ("letter", "LetterCount"),
        ("SUM", "Sum of all"),
    ],
    ids=["by its class", "by its name", "a class whose name is another", "by a part", "whatever the case"],
)
def test_one_of_several_is_chosen(dagkit, write, name, chosen):
    write("two.py", TWO)
    assert dagkit("validate", "two.py", "--app", name).out.startswith(f"{chosen} is valid")


def test_a_very_name_is_stronger_than_a_part_of_another(dagkit, write):
    write("two.py", TWO.replace("LetterCount", "WordCountOfLetters"))
    assert dagkit("validate", "two.py", "--app", "WordCount").out.startswith("WordCount is valid")


def test_a_part_of_several_names_chooses_none(dagkit, write):
    write("two.py", TWO)
    answer = dagkit("validate", "two.py", "--app", "count")
    assert answer.code == 6
    assert answer.err.startswith("'count' is part of several names in two.py [application-missing]\n  WordCount  ")
    assert "Sum of all" not in answer.err


def test_a_misspelt_name_is_answered_with_the_nearest(dagkit, write):
    write("two.py", TWO)
    answer = dagkit("validate", "two.py", "--app", "WordCuont")
    assert answer.code == 6
    assert "holds no application 'WordCuont'; did you mean 'WordCount'?" in answer.err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("word_cuont.py", "did you mean 'word_count.py'?"),
        (
            "word_cuont.py:WordCount",
            "there is no file or folder 'word_cuont.py' [application-missing]\n  help: did you mean 'word_count.py'?",
        ),
        (
            "word_count.py:WordCuont",
            "WordCuont of word_count.py does not exist [application-missing]\n  help: did you mean 'WordCount'?",
        ),
        ("nowhere/at/all.py", "APP is a file, a folder with app.py, or module:Class"),
        ("word_count:WordCuont", "did you mean 'WordCount'?"),
        ("word_count:Split", "Split of word_count is not an application"),
        ("no_such_module:App", "there is no module no_such_module"),
        ("word_count.deeper:App", "there is no module word_count.deeper"),
        ("empty", "holds no app.py"),
        ("half", "name one of its files: part.py"),
        ("run", "run is the folder in which an application runs, and this command needs the application itself"),
        ("empty/readme.txt", "declared applications end in .json or .properties"),
    ],
)
@pytest.mark.usefixtures("word_count")
def test_what_is_not_there_exits_with_6(dagkit, write, target, said):
    write("half/part.py", "")
    write("empty/readme.txt", "")
    write("run/ledger/ledger.json", "{}")
    answer = dagkit("validate", target)
    assert (answer.code, answer.out) == (6, "")
    assert said in answer.err


def test_modules_beside_the_application_can_be_imported_at_any_time(dagkit, write):
    write("app/words.py", WORD_COUNT)
    late = "def populate_dag(dag, conf):\n    import words\n    words.WordCount().populate_dag(dag, conf)\n"
    write("app/app.py", late)
    assert dagkit("validate", "app").code == 0


def test_relative_imports_work_in_a_package(dagkit, write):
    write("pack/__init__.py", "")
    write("pack/words.py", WORD_COUNT)
    write("pack/app.py", "from . import words\nclass Mine(words.WordCount):\n    pass\n")
    assert dagkit("validate", "pack/app.py").out.startswith("Mine is valid")
    assert dagkit("validate", "pack").out.startswith("Mine is valid")


def test_nothing_of_an_application_is_left_behind(dagkit, write):
    write("one/parts.py", "length = 2")
    write("two/parts.py", "length = 3")
    text = WORD_COUNT.replace("Split()", "Split(min_length=parts.length)") + "\nimport parts\n"
    write("one/app.py", text)
    write("two/app.py", text)
    modules, path = set(sys.modules), list(sys.path)
    assert "min_length changes from 2 to 3" in dagkit("diff", "one", "two").out
    assert not {"app", "parts"} & (set(sys.modules) - modules)
    assert sys.path == path


def test_classes_of_the_application_can_be_pickled_while_it_is_held(word_count):
    with place_of(word_count) as place:
        made = place.choose(None).make()
        assert type(pickle.loads(pickle.dumps(made))) is type(made)  # noqa: S301 - what was pickled a moment ago


def test_the_plan_does_not_show_where_the_application_lies(dagkit, write):
    write("here/word_count.py", WORD_COUNT)
    write("there/deeper/word_count.py", WORD_COUNT)
    here, there = (dagkit("plan", path, "--json").out for path in ("here/word_count.py", "there/deeper/word_count.py"))
    assert here == there


@pytest.mark.parametrize("library", ["json", "colorsys"], ids=["that is loaded", "that is not loaded"])
def test_a_file_named_like_a_library_does_not_take_its_place(write, library):
    loaded = sys.modules.get(library)
    with place_of(str(write(f"{library}.py", WORD_COUNT))) as place:
        assert place.module is not None
        assert place.module.__name__ == f"dagkit_app_{library}"
        assert sys.modules.get(library) is loaded


@pytest.mark.slow
def test_a_file_in_the_folder_that_python_started_in_keeps_its_name(process, word_count):
    operators = process("plan", word_count, "--json").document["operators"]
    assert operators[0]["class"] == "word_count.Lines"


def test_a_place_chooses_nothing_where_nothing_is_meant(word_count):
    with place_of(word_count) as place, pytest.raises(ApplicationNotFound, match="did you mean 'WordCount'"):
        place.choose("WordCoutn")


DECLARED = """{
  "operators": [
    {"name": "lines", "class": "parts.Lines"},
    {"name": "split", "class": "parts.Split", "properties": {"min_length": 2}}
  ],
  "streams": [
    {
      "name": "text",
      "source": {"operatorName": "lines", "portName": "lines"},
      "sinks": [{"operatorName": "split", "portName": "lines"}]
    }
  ]
}
"""
AS_KEYS = """\
dt.operator.lines.classname = parts.Lines
dt.operator.split.classname = parts.Split
dt.operator.split.prop.min_length = 2
dt.stream.text.source = lines.lines
dt.stream.text.sinks = split.lines
"""


@pytest.mark.parametrize(("ending", "text"), [("json", DECLARED), ("properties", AS_KEYS)])
def test_an_application_is_declared_in_a_file(dagkit, write, ending, text):
    write("declared/parts.py", WORD_COUNT)
    write(f"declared/small.{ending}", text)
    assert dagkit("validate", f"declared/small.{ending}").out == "small is valid: 2 operators, 1 stream, 2 stages\n"


def test_both_forms_of_a_declaration_give_one_plan(dagkit, write):
    write("parts.py", WORD_COUNT)
    write("small.json", DECLARED)
    write("small.properties", AS_KEYS)
    assert dagkit("diff", "small.json", "small.properties", "--exit-code").code == 0


def test_a_plan_can_be_declared_again(dagkit, word_count, write):
    write("plan.json", dagkit("plan", word_count, "--json").out)
    assert dagkit("validate", "plan.json").out == "WordCount is valid: 3 operators, 2 streams, 2 stages\n"


def test_a_folder_may_hold_a_declaration(dagkit, write):
    write("small/parts.py", WORD_COUNT)
    write("small/app.json", DECLARED)
    assert dagkit("validate", "small").out.startswith("small is valid")


def test_a_faulty_declaration_has_a_line(dagkit, write):
    write("parts.py", WORD_COUNT)
    write("small.json", DECLARED.replace('"portName": "lines"}]', '"portName": "linse"}]'))
    answer = dagkit("validate", "small.json")
    assert (answer.code, answer.out) == (3, "")
    assert "small.json:" in answer.err
    assert "did you mean 'lines'?" in answer.err


def test_a_declaration_that_cannot_be_read_is_its_authors_fault(dagkit, write):
    write("small.json", '{"operators": [')
    answer = dagkit("validate", "small.json")
    assert (answer.code, answer.out) == (3, "")
    assert "small.json" in answer.err
    assert "[file-unreadable]" in answer.err


def test_another_folder_is_suggested_only_if_its_name_is_similar(dagkit, write, folder):
    write("w/app.py", "")
    missing = dagkit("validate", str(folder / "nowhere"))
    assert "help: APP is a file, a folder with app.py, or module:Class" in missing.err
    write("nowhen/app.py", "")
    assert f"help: did you mean '{folder}/nowhen'?" in dagkit("validate", str(folder / "nowhere")).err
