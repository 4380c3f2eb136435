"""The counts equal Python's, however the text is split into blocks and the run into windows."""

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from apps.word_count.app import WordCount
from dagkit.conf.sources.sources import Sources, load
from dagkit.launching import Machine, launch
from tests.applications import planned, stages
from tests.old_files import aged

HERE = Path(__file__).parent
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "größe", "naïve", "don't", "x1", "THE"]


@pytest.fixture
def texts(tmp_path):
    """Three files of lines of words, some of them without a line end; one contains bytes that are not text."""
    chance = random.Random(3)  # noqa: S311 - no secret
    folder = tmp_path / "input"
    folder.mkdir()
    for number in range(3):
        lines = [" ".join(chance.choices(WORDS, k=chance.randrange(9))) for _ in range(200)]
        (folder / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "3.txt").write_bytes(b"the\xff fox\n\xc3")
    for path in folder.iterdir():
        aged(path)
    return folder


def counted(folder):
    lines = [line for path in folder.iterdir() for line in path.read_bytes().split(b"\n")]
    return Counter(word for line in lines for word in re.findall(r"\w+", line.decode("utf-8", "replace").lower()))


def run(folder, **properties):
    """Launch it with its own property file, until all input is counted."""
    set_here = {
        "File-splitter.scanner.files": str(folder),
        "Writer.filePath": str(folder.parent / "output"),
        **{key.replace("__", "."): value for key, value in properties.items()},
    }
    definitions = [(f"dt.operator.{key.replace('_', '-', 1)}", value) for key, value in set_here.items()]
    conf, faults = load(Sources(application="WordCount", folder=HERE, definitions=definitions))
    assert not faults
    state = folder.parent / "state"
    launch(WordCount(), conf, until="once", machine=Machine(backend="reference"), path=state, durable=False)


def tables(folder):
    """The parts of each table by name, the newest table last, as names sort."""
    return [
        {part.name: part.read_text("utf-8").splitlines() for part in sorted(table.iterdir())}
        for table in sorted((folder.parent / "output").iterdir())
    ]


def table(lines):
    """The counts in lines that have each word once."""
    pairs = [line.split("\t") for line in lines]
    assert len({word for word, _ in pairs}) == len(pairs)
    return Counter({word: int(count) for word, count in pairs})


SMALL = {"File_splitter__blockSize": "500"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({}, id="whole files"),
        pytest.param(SMALL | {"Block_reader__minReaders": "3"}, id="many blocks"),
        pytest.param(
            SMALL | {"File_splitter__blocksThreshold": "7", "Block_reader__minReaders": "2"}, id="many windows"
        ),
    ],
)
def test_words_are_counted_once_however_they_come(properties, texts):
    run(texts, **properties)
    (found,) = tables(texts)
    assert list(found) == ["part-00000-00000", "part-00001-00000"]
    assert table(line for lines in found.values() for line in lines) == counted(texts)
    assert all(lines == sorted(lines, key=lambda line: line.split("\t")[0]) for lines in found.values())


@pytest.mark.slow
def test_a_later_launch_counts_what_is_new_and_writes_a_new_table(texts):
    run(texts)
    (texts / "more.txt").write_text("the end\n")
    aged(texts / "more.txt")
    run(texts)
    _, newest = tables(texts)
    assert table(line for lines in newest.values() for line in lines) == counted(texts)


def test_the_last_folder_holds_all_counts_also_where_one_partition_had_no_word_before(tmp_path):
    (texts := tmp_path / "input").mkdir()
    for name, text in (("a", "one one"), ("b", "two three four five")):
        (texts / name).write_text(text)
        aged(texts / name)
        run(texts)
    run(texts)
    first, newest = tables(texts)
    assert first == {"part-00001-00000": ["one\t2"]}
    assert list(newest) == ["part-00000-00000", "part-00001-00001"]
    assert table(line for lines in newest.values() for line in lines) == counted(texts)


def test_lines_are_split_and_counted_where_they_are_read():
    counted_where_read = [("File-splitter",), ("Block-reader", "Words", "Count"), ("Total", "Writer")]
    assert stages(HERE) == counted_where_read
    assert [cut.kind for cut in planned(HERE).cuts] == ["driver", "keys"]
