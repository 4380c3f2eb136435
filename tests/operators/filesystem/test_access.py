"""Files in an object store are found and read as files on a disk are, whatever they are called."""

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dagkit.errors import InputUnreadable
from dagkit.ground.urls import absolute, plain, resolved
from dagkit.testing import Alone
from dagkit_operators import Block, FileInfo, LineReader, MatchFiles, ReadFiles, TailFiles
from dagkit_operators.filesystem import object_store
from dagkit_operators.filesystem.access import Found, NotRegular, opened, reading_from
from dagkit_operators.filesystem.identities import Identities, Recognised, has_identity
from tests.cases import cases
from tests.old_files import aged
from tests.operators.finding.cast import Matching, Splitting
from tests.operators.reading.cast import read

NOBODY = 65534
"""A user without rights, on most systems."""
NAMES = ["a b.txt", "c%20d.txt", "sub/e#f?g.txt", "h+i.txt", "ä.txt", ".hidden", "sub/.hidden/j.txt", "k.tmp"]
SEEN = ["a b.txt", "c%20d.txt", "h+i.txt", "sub/e#f?g.txt", "ä.txt"]


@pytest.fixture
def requests():
    """The requests that the server of the test answered."""
    return []


@pytest.fixture
def options(monkeypatch, requests):
    """What a URL must say to reach a server of the test's own, in which a bucket holds the files."""
    fs = pytest.importorskip("pyarrow.fs")
    moto = pytest.importorskip("moto.server")
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    for name, word in {**keys, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, word)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    assert server._server is not None, "it was started"
    application = server._server.app

    def answered(environ: dict[str, Any], begin: Any) -> Any:
        requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        return application(environ, begin)

    server._server.app = answered
    host, port = server.get_host_and_port()
    options = f"?endpoint_override={host}:{port}&scheme=http&allow_bucket_creation=true"
    fs.FileSystem.from_uri(f"s3://bucket/{options}")[0].create_dir("bucket")
    for name in NAMES:
        put(f"in/{name}", b"one\ntwo\nthree", options)
    yield options
    server.stop()


def put(name: str, content: bytes, options: str) -> None:
    store = pytest.importorskip("pyarrow.fs").FileSystem.from_uri(f"s3://bucket/{options}")[0]
    with store.open_output_stream(f"bucket/{name}") as out:
        out.write(content)


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("root", ["s3://bucket/in", "s3://bucket/in/", "s3://bucket"])
def test_files_in_a_bucket_are_found_by_their_plain_names_and_read(options, root):
    split = Splitting(root + options, scanner={"ignore_file_pattern_regular_exp": r".*/h\+i[.]txt"}, block_size=5)
    infos, blocks = split.window()
    assert sorted(plain(info.path) for info in infos) == [
        f"s3://bucket/in/{name}" for name in SEEN if name != "h+i.txt"
    ]
    assert [block.end for block in blocks] == [5, 10, 13] * 4
    assert read(LineReader(), *blocks) == ["one", "two", "three"] * 4


@pytest.mark.slow
def test_a_single_object_and_nothing_at_all(options):
    assert Splitting(f"s3://bucket/in/.hidden{options}").counts() == (1, 1)
    with pytest.raises(InputUnreadable, match="cannot read s3://bucket/nowhere: there is no such"):
        Splitting(f"s3://bucket/nowhere{options}").window()


@pytest.mark.slow
def test_an_object_that_is_overwritten_with_the_same_length_in_the_same_second_is_read_again(
    options, monkeypatch, caplog
):
    monkeypatch.setattr(pytest.importorskip("moto.s3.models"), "utcnow", lambda: datetime(2026, 1, 1))  # noqa: DTZ001
    put("in/a b.txt", b"first content", options)
    split = Splitting(f"s3://bucket/in/a b.txt{options}".replace(" ", "%20"))
    _, (before,) = split.window()
    put("in/a b.txt", b"other content", options)
    _, (after,) = split.restart().window()
    facts = [{name: fact for name, fact in block.facts.items() if name != "version"} for block in (before, after)]
    assert facts[0] == facts[1]
    assert (before.version, after.version) == ("", "1")
    assert read(LineReader(), after) == ["other content"]
    assert "was changed after" not in caplog.text
    assert read(LineReader(), before) == []
    assert "was replaced before it was read" in caplog.text


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("finder", ["FileSplitterInput", "MatchFiles"])
def test_objects_are_found_by_a_listing_and_no_request_for_each(finder, options, requests):
    url = f"s3://bucket/{finder}{options}"

    def found() -> tuple[int, int]:
        """The files of a look, and its requests."""
        requests.clear()
        files = len(match(url)) if finder == "MatchFiles" else Splitting(url).counts()[0]
        return files, len(requests)

    put(f"{finder}/first.txt", b"one\n", options)
    files, requests_for_one = found()
    for number in range(20):
        put(f"{finder}/{number}.txt", b"one\n", options)
    assert (files, found()) == (1, (21, requests_for_one))


@pytest.mark.slow
def test_an_object_that_is_overwritten_is_matched_again_also_with_its_old_content(options):
    found, looks = Matching(f"s3://bucket/over{options}"), []
    for content in [b"first", b"first", b"other", b"first", b"first"]:
        put("over/a.txt", content, options)
        looks.append(len(found.look()))
    assert looks == [1, 0, 1, 1, 0]
    assert [len(known) for known in found.alone.operator.known.values()] == [1]


@pytest.mark.slow
def test_objects_that_an_earlier_release_recorded_without_versions_are_not_read_again(options, monkeypatch):
    split = Splitting(f"s3://bucket/in{options}")
    with monkeypatch.context() as as_before:
        as_before.setattr(object_store, "SCHEMES", ())
        assert split.counts() == (5, 5)
    for _ in range(2):
        assert split.restart().counts() == (0, 0)


@pytest.mark.slow
def test_objects_whose_versions_cannot_be_listed_any_more_are_not_read_again(options, monkeypatch, caplog):
    split = Splitting(f"s3://bucket/in{options}")
    assert {len(block.facts["version"]) > 0 for block in split.window()[1]} == {True}

    def refused(url: str) -> Any:
        raise object_store.VersionsUnknown("no credentials")

    monkeypatch.setattr(object_store, "_store_of", refused)
    assert split.counts() == (0, 0)
    assert "cannot be listed: no credentials; an object that is overwritten" in caplog.text


@pytest.mark.parametrize(
    ("written", "means", "reads"),
    [
        ("/a/../b", "/b", "/b"),
        ("file:///a%20b", "/a b", "/a b"),
        ("/a%20b", "/a%20b", "/a%20b"),
        ("memory://a%20b", "memory://a%20b", "memory://a%20b"),
        ("file:/c", "/c", "/c"),
    ],
)
def test_a_path_means_the_same_everywhere(written, means, reads):
    assert (absolute(written), plain(absolute(written))) == (means, reads)


@contextmanager
def without_rights(path: Path) -> Iterator[None]:
    """As a user who may not read what lies at a path."""
    mode, is_root = path.stat().st_mode, os.geteuid() == 0
    path.chmod(0)
    try:
        if is_root:
            os.seteuid(NOBODY)
        yield
    finally:
        if is_root:
            os.seteuid(0)
        path.chmod(mode)


def look_for(path: Path) -> None:
    Splitting(path).window()


def match(path: Path | str) -> list[FileInfo]:
    alone = Alone(MatchFiles())
    alone.work(str(path))
    return alone.sent()


def read_block_of(path: Path) -> None:
    read(LineReader(), Block(0, str(path), 0, 4))


def tail(path: Path) -> None:
    Alone(TailFiles()).work(FileInfo(str(path), 4, 0, 1))


@cases(
    "kind, do, then",
    ("a folder that is scanned", "folder", look_for, "or name another place in scanner.files"),
    ("a folder of a pattern", "folder", match, "or give another pattern"),
    ("a file of a pattern", "file", match, "or give another pattern"),
    ("a block's file", "file", read_block_of, "and launch again"),
    ("a file that grows", "file", tail, "and launch again"),
)
def test_what_may_not_be_read_is_reported_by_its_path_with_what_to_do(tmp_path, kind, do, then):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("one\n")
    path = tmp_path / kind
    if not then.startswith("and"):
        then = f"set on_bad_file of this operator to 'quarantine' to continue without it, {then}"
    match = f"^cannot read {path}: Permission denied \\[input-unreadable\\]\n  help: fix this, {then}$"
    with without_rights(path), pytest.raises(InputUnreadable, match=match):
        do(path)


@pytest.fixture
def fifo(tmp_path):
    """A FIFO that has a writer, so that nothing waits for one."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    yield path
    os.close(held)


@cases(
    "do",
    ("scanned", look_for),
    ("a pattern", match),
    ("a block's file", read_block_of),
    ("a file to be read", lambda path: Alone(ReadFiles()).work(FileInfo(str(path), 4, 0, 1))),
    ("opened", lambda path: opened(str(path))),
)
@pytest.mark.parametrize("kind", ["FIFO", "character device"])
def test_what_is_no_regular_file_is_refused_where_it_is_named(kind, fifo, do):
    path = fifo
    if kind != "FIFO":
        path = fifo.parent / "link"
        path.symlink_to("/dev/null")
    with pytest.raises(InputUnreadable, match=f"^cannot read {path}: it is a {kind}, and only regular files are read "):
        do(path)


def test_what_is_refused_survives_the_way_from_a_worker():
    refused = NotRegular("a", "a FIFO")
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)  # noqa: S301 - our own


@pytest.mark.parametrize("find", [look_for, match], ids=["scanned", "a pattern"])
def test_a_fifo_in_a_folder_is_passed_over_and_logged_once(fifo, caplog, find):
    for _ in range(2):
        find(fifo.parent)
    assert [message for message in caplog.messages if "FIFO" in message] == [
        f"{fifo} is a FIFO, and is skipped: only regular files are read"
    ]


def test_a_fifo_that_is_not_wanted_is_not_logged(fifo, caplog):
    fifo.rename(fifo.parent / ".hidden")
    (fifo.parent / "a.log").write_text("one\n")
    match(fifo.parent)
    match(fifo.parent / "*.log")
    Splitting(fifo.parent, scanner={"file_pattern_regular_exp": r".*\.log"}).window()
    assert caplog.records == []


def test_a_fifo_that_takes_the_place_of_a_file_is_another_one(fifo):
    path = fifo.with_name("file")
    path.write_text("one\n")
    (found,) = match(aged(path))
    fifo.replace(path)
    assert not has_identity(str(path), found.identity)
    assert Identities([found.identity]).identify(Found(str(path), 0, 0)) == Recognised(None, False)


@pytest.mark.parametrize("url", ["s3://[bucket/a", "hdfs://a]b/c"])
def test_a_url_with_a_host_that_is_none_cannot_be_read(url):
    with pytest.raises(InputUnreadable, match=r"cannot read .*: it is no URL: "), reading_from(url):
        resolved(url)
