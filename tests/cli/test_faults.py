"""Faults of an author: in the form that people read, with the exit code of their kind, and never a traceback."""

import re
import socket
from itertools import product

import pytest

from dagkit.cli.application.importing import authored
from dagkit.errors import ApplicationFaults
from tests.cli.samples import DISCONNECTED, WORD_COUNT

LINE = DISCONNECTED[: DISCONNECTED.index('dag.add_operator("count"')].count("\n") + 1
UNMADE = WORD_COUNT + "    def __init__(self):\n        raise OSError('no')\n"
UNFED = "no stream feeds count.items"
REPORT = (
    f"Disconnected cannot be compiled: 1 problem\n  disconnected.py:{LINE}: {UNFED} [input-unconnected]\n    help: "
)


@pytest.mark.parametrize("command", ["explain --step drawn", "explain --step resolved", "describe count --in"])
def test_a_faulty_application_is_shown_as_far_as_it_goes_and_its_faults_are_reported(dagkit, write, command):
    write("twice.py", WORD_COUNT + '        dag.add_operator("split", Split())\n')
    answer = dagkit(*command.split(), "twice.py")
    assert answer.code == 3
    assert "items" in answer.out
    assert re.match(r"WordCount cannot be compiled: \d problems?\n  twice.py:", answer.err)
    document = dagkit(*command.split(), "twice.py", "--json")
    assert (document.code, document.err) == (3, answer.err)
    assert document.document["schema"].startswith("dagkit.")


def test_a_picture_and_the_steps_of_a_faulty_application_show_every_fault(dagkit, disconnected):
    for command, shown, schema in (
        ("graph", "items  (not connected)", "dagkit.picture/1"),
        ("explain", "resolved", "dagkit.steps/1"),
    ):
        answer, document = dagkit(command, disconnected), dagkit(command, disconnected, "--json").document
        assert (answer.code, shown in answer.out, answer.err[: len(REPORT)]) == (3, True, REPORT)
        codes = [fault["code"] for fault in document["diagnostics"]]
        assert (document["schema"], codes) == (schema, ["input-unconnected"])
    assert [step["step"] for step in document["steps"]] == ["drawn", "expanded", "resolved"]


@pytest.mark.parametrize(("command", "shown"), [("graph", "Careful"), ("explain", "Careful"), ("plan", "")])
def test_an_exception_in_what_the_compiler_asks_of_the_author_is_their_fault(dagkit, write, command, shown):
    """What was drawn is shown as far as it goes."""
    write("careless.py", WORD_COUNT + PARTITIONER)
    answer = dagkit(command, "careless.py", "--app", "Careful")
    assert (answer.code, answer.out[:7], "IndexError" in answer.err) == (3, shown, True)


USAGE = (
    "--once, --until-idle and --drain exclude each other; give one of them\n"
    "  usage: dagkit launch [OPTIONS] APP\n"
    "  help: dagkit launch --help\n"
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("pln", "there is no command 'pln'; did you mean 'plan'?"),
        ("plan", "  usage: dagkit"),
        ("plan a.py --nonsense", "  usage: dagkit"),
        ("explain a.py --step x", "  usage: dagkit"),
        ("diff a", "  usage: dagkit"),
        ("-D", "  usage: dagkit"),
        ("launch a.py --once --drain", USAGE),
        ("validate word_count.py -D lonely", "'lonely' does not have the form key=value"),
        ("launch a.py --cores two", "is not a valid whole number"),
        ("launch a.py --cores 0", "is not in the range"),
    ],
)
@pytest.mark.usefixtures("word_count")
def test_wrong_usage_exits_with_2_and_is_a_document_too(dagkit, arguments, said):
    dagkit(*arguments.split()).fails(2, said)
    answer = dagkit(*arguments.split(), "--json")
    if arguments != "-D":
        document = answer.document
        assert (answer.code, document["schema"], document["exit_code"]) == (2, "dagkit.failure/1", 2)
        assert document["message"]


def test_a_failure_of_a_run_is_a_document_with_its_code_and_scene(dagkit, write):
    path = write("reading.py", READING.replace("FINDER", "Splitter").replace("NAMED", "nowhere"))
    document = dagkit("launch", "reading.py", "--once", "--reference", "--json").document
    problem = f"Splitter cannot read {path.parent}/nowhere: there is no such file or directory"
    unknown = dict.fromkeys(("slot", "source", "position", "application"))
    assert document == unknown | {
        "schema": "dagkit.failure/1",
        "code": "input-unreadable",
        "problem": problem,
        "help": ELSEWHERE,
        "operator": "Splitter",
        "window": 1,
        "exit_code": 5,
        "diagnostics": [],
        "message": f"{problem} [input-unreadable]\n  help: {ELSEWHERE}",
    }


def test_a_failure_of_a_ledger_is_a_document_with_its_code(dagkit, write):
    write("broken/ledger/ledger.json", "{}")
    document = dagkit("splits", "broken", "--json").document
    assert (document["code"], document["exit_code"]) == ("version-unreadable", 6)
    assert document["problem"]
    assert document["help"]


@pytest.mark.parametrize(
    "command", ["validate D", "plan D", "graph --physical D", "diff D word_count.py", "diff word_count.py D"]
)
@pytest.mark.usefixtures("word_count")
def test_a_fault_is_reported_on_stderr_with_3(dagkit, disconnected, command):
    answer = dagkit(*command.replace("D", disconnected).split())
    assert (answer.code, answer.out, answer.err[: len(REPORT)]) == (3, "", REPORT)


def test_faults_are_documents_too(dagkit, disconnected):
    answer = dagkit("plan", disconnected, "--json")
    document = answer.document
    assert (answer.code, document["schema"], document["exit_code"]) == (3, "dagkit.failure/1", 3)
    assert (document["application"], document["message"]) == ("Disconnected", REPORT.partition("\n")[0])
    (fault,) = document["diagnostics"]
    assert fault.pop("help")
    where = {"file": "disconnected.py", "line": LINE}
    assert fault == {"code": "input-unconnected", "severity": "error", "problem": UNFED, **where}
    assert answer.err.startswith(REPORT)
    answer = dagkit("plan", "nowhere.py", "--json")
    assert (answer.code, answer.document["exit_code"]) == (6, 6)
    assert answer.document["message"].startswith("there is no file or folder 'nowhere.py'")


PORT = "from dagkit import InputPort, Operator\nclass A(Operator):\n    words = InputPort[str]\n"
UNTYPED = "from dagkit import Operator\nclass A(Operator):\n    count = 0\n"
MUTE = "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\nraise Mute\n"
TYPED = "write `count: TYPE = …` if users may set it, or `count = State(…)` if it changes while it runs"
BROKEN = {
    "an undefined name": ("nonsense\n", 1, "NameError"),
    "a property without a type": (UNTYPED, 2, TYPED),
    "a port that is not called": (PORT, 2, "call the port: words = InputPort[str]()"),
    "a module that is not installed": ("import no_such_module\n", 1, "install 'no_such_module' for this Python"),
    "Python that cannot be read": ("x = 1\ndef f(:\n", 2, "SyntaxError"),
    "an exit": ("import sys\nsys.exit(7)\n", 2, 'as a program under if __name__ == "__main__"'),
    "an exception of two lines": ("raise ValueError('one\\ntwo')\n", 1, "ValueError: one [populate-failed]"),
    "an exception that cannot be printed": (MUTE, 4, "Mute: <exception str() failed>"),
    "a NUL byte": ("x = '\0'\n", None, "null bytes"),
}


@pytest.mark.parametrize(
    ("statement", "help_"),
    [
        ("from operators import CountByKey", "write from dagkit_operators import CountByKey"),
        ("from dagkit import CountByKey", "write from dagkit_operators import CountByKey"),
        ("from dagkit.api import CountByKey", "write from dagkit_operators import CountByKey"),
        ("from dagkit_operators import Dag", "write from dagkit import Dag"),
        ("from dagkit_operators import CountByKeys", "did you mean 'CountByKey'?"),
        ("import dagkit.operators", "write from dagkit_operators import NAME for an operator of the library"),
        ("from dagkit.operators import CountByKey", "write from dagkit_operators import NAME"),
        ("import operators.files", "write from dagkit_operators import NAME for an operator of the library"),
        ("from json import CountByKey", "fix the last of the lines below"),
    ],
)
def test_an_import_from_the_wrong_place_is_answered_with_the_right_one(dagkit, write, statement, help_):
    write("misled.py", f"{statement}\n{WORD_COUNT}")
    dagkit("validate", "misled.py").fails(3, f"    help: {help_}")


def test_a_module_called_operators_that_is_not_there_may_be_the_authors_or_the_library():
    missing = ModuleNotFoundError("No module named 'operators'", name="operators")
    with (
        pytest.raises(ApplicationFaults, match="or put your own module operators beside the application"),
        authored("app", "the file cannot be imported"),
    ):
        raise missing


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        *product(["validate"], BROKEN),
        *product(["plan", "explain", "graph", "describe x --in", "config"], [*BROKEN][:1]),
    ],
)
def test_a_file_that_cannot_be_imported_is_its_authors_fault(dagkit, write, command, broken):
    text, line, said = BROKEN[broken]
    write("broken.py", text)
    place = f"\n  broken.py{f':{line}' if line else ''}: the file cannot be imported: "
    dagkit(*command.split(), "broken.py").fails(3, f"broken.py cannot be compiled: 1 problem{place}", said)


@pytest.mark.parametrize(
    ("target", "text", "said"),
    [
        (".", "nonsense\n", "app.py cannot be compiled: 1 problem\n  app.py:1: "),
        ("a", "nonsense\n", "a/app.py cannot be compiled: 1 problem\n  a/app.py:1: "),
        ("broken:App", "import absent_library\n", "broken.py:1: the module cannot be imported"),
        ("made.py", UNMADE, "the application cannot be made: OSError: no"),
    ],
)
def test_the_file_is_named_that_cannot_be_imported_or_made(dagkit, write, target, text, said):
    write({".": "app.py", "a": "a/app.py", "broken:App": "broken.py"}.get(target, target), text)
    dagkit("validate", target).fails(3, said)


RAISING = """
class Raising(StreamingApplication):
    def populate_dag(self, dag, conf):
        deeper(conf)

def deeper(conf):
    return conf["no such key"]
"""


@pytest.mark.parametrize("command", ["validate", "graph", "explain"])
def test_an_exception_in_populate_dag_shows_the_lines_that_led_there(dagkit, write, command):
    write("raising.py", WORD_COUNT + RAISING)
    first = (WORD_COUNT + RAISING).count("\n") - 3
    answer = dagkit(command, "raising.py", "--app", "Raising")
    assert (answer.code, bool(answer.out), "[populate-failed]" in answer.err) == (3, command != "validate", True)
    assert answer.err.endswith(
        f"  the lines that led there:\n    raising.py:{first} in populate_dag: deeper(conf)\n"
        f'    raising.py:{first + 3} in deeper: return conf["no such key"]\n'
    )
    assert not [own for own in ("site-packages", "dagkit/") if own in answer.err]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("raise SystemExit(4)", "SystemExit: 4"),
        ("self.populate_dag(dag, conf)", "RecursionError"),
        ("dag.add_operator('lines', Lines)", "did you forget to call the class?"),
        ("dag.add_stream('s', 3, 4)", "which is not a port"),
        ("Lines().nowhere", "nowhere"),
    ],
)
def test_whatever_populate_dag_does_is_reported(dagkit, write, statement, said):
    write(
        "odd.py", f"{WORD_COUNT}\nclass Odd(WordCount):\n    def populate_dag(self, dag, conf):\n        {statement}\n"
    )
    answer = dagkit("validate", "odd.py", "--app", "Odd")
    answer.fails(3, said)
    assert answer.err.count("\n") < 10


PARTITIONER = """
from dagkit import OperatorContext, Partitioner

class Careless(Partitioner):
    def define_partitions(self, partitions, context):
        return [partitions[1 + len(partitions)]]

class Careful(WordCount):
    def populate_dag(self, dag, conf):
        super().populate_dag(dag, conf)
        dag.set_operator_attribute(dag.operator("count"), OperatorContext.PARTITIONER, Careless())
"""


def test_a_bug_in_dagkit_shows_itself(dagkit, word_count, monkeypatch):
    monkeypatch.setattr("dagkit.cli.application.opening.compile_until", int)
    with pytest.raises(TypeError, match="int"):
        dagkit("plan", word_count)


def test_faults_of_the_configuration_exit_with_4_and_of_both_kinds_with_3(dagkit, word_count, disconnected, write):
    absent = ("--conf", "absent.xml")
    dagkit("validate", word_count, *absent).fails(4, "absent.xml: there is no such file [file-unreadable]")
    dagkit("validate", disconnected, *absent).fails(3, "2 problems", "file-unreadable", "input-unconnected")
    dagkit("validate", word_count, "-D", "dt.operator.split.prop.min_length=many").fails(4, "the command line")
    write("p.properties", "\ndt.operator.spilt.prop.min_length=3\n")
    dagkit("validate", word_count, "-c", "p.properties").fails(4, "p.properties:2: ", "[key-unmatched]")
    assert dagkit("validate", word_count, "-c", "p.properties", "--allow-unknown").code == 0


@pytest.mark.parametrize("text", ["raise KeyboardInterrupt", WORD_COUNT + "        raise KeyboardInterrupt\n", ""])
def test_an_interrupt_is_reported_in_a_line_with_130(dagkit, write, monkeypatch, text):
    """Also while a verb is imported."""

    def interrupted(_):
        raise KeyboardInterrupt

    write("slow.py", text)
    if not text:
        monkeypatch.setattr("dagkit.cli.group.Command.load", interrupted)
    answer = dagkit("validate", "slow.py")
    assert (answer.code, answer.out, answer.err) == (130, "", "interrupted\n")
    assert dagkit("validate", "slow.py", "--json").document["exit_code"] == 130


ELSEWHERE = "make it, or name another place in scanner.files; relative paths begin in the folder from which you launch"
READING = """
from dagkit_operators import FileSplitterInput, Items, LineReader, MatchFiles, PartWriter, ReadFiles

def populate_dag(dag, conf):
    finders = {
        "Splitter": lambda: dag.add_operator("Splitter", FileSplitterInput(scanner={"files": "NAMED"})),
        "Match": lambda: dag.add_operator("Items", Items(items=["NAMED"])) >> dag.add_operator("Match", MatchFiles()),
    }
    reader = LineReader() if "FINDER" == "Splitter" else ReadFiles()
    found = finders["FINDER"]() >> dag.add_operator("Reader", reader)
    found >> dag.add_operator("Writer", PartWriter(file_path="out"))
"""


@pytest.mark.parametrize("named", ["nowhere", "a.txt/below"], ids=["a folder that is not there", "a file is no folder"])
@pytest.mark.parametrize(("finder", "then"), [("Splitter", ELSEWHERE), ("Match", "make it, or give another pattern")])
def test_input_that_is_missing_is_reported_in_one_sentence(dagkit, write, finder, then, named):
    path = write("reading.py", READING.replace("FINDER", finder).replace("NAMED", named)).with_name("a.txt")
    path.write_text("one\n")
    assert dagkit("validate", "reading.py").code == 0, "what is not there yet may come before the launch"
    answer = dagkit("launch", "reading.py", "--once", "--reference")
    told = f"{finder} cannot read {path.parent}/{named}: there is no such file or directory [input-unreadable]"
    assert (answer.code, answer.out, answer.err) == (5, "", f"reading: starting\n{told}\n  help: {then}\n")


@pytest.mark.slow
def test_a_master_at_which_nothing_listens_is_reported_in_a_sentence(dagkit, word_count):
    with socket.socket() as taken:  # by a socket that accepts nothing
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        answer = dagkit("launch", word_count, "-q", "--master", f"spark://{place}", no_proxy="*")
    sentence = (
        f"no Spark at spark://{place}: nothing listens at {place} [spark-unavailable]\n  help: check the host and"
    )
    assert (answer.code, answer.err[: len(sentence)], answer.err.count("\n")) == (9, sentence, 2)
