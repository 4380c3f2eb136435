"""One suite that every place must pass: bytes under keys, and a creation that only one can win."""

import errno
import os
import secrets
import stat
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import fsspec
import pytest
from obstore.store import LocalStore as FolderBucket
from obstore.store import MemoryStore as Bucket

from dagkit.ledger import Ledger, SequenceTaken, StoreError
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.chain.contents import Objects
from dagkit.ledger.format.hashing import hash_of
from dagkit.ledger.stores import KeyMissing, KeyTaken, LocalStore, MemoryStore, open_store
from dagkit.ledger.stores.bucket import BucketStore
from dagkit.ledger.stores.fsspecs import FsspecStore
from tests.ledger.desk import Desk, code_of, fault_of, is_complete, remark
from tests.patience import join, within

SERVICES = ["s3", "azure", "hdfs"]
PLACES = [
    *("memory", "local", "local, not durable", "fsspec memory", "fsspec local"),
    *(pytest.param(name, marks=pytest.mark.service(name)) for name in SERVICES),
]


def on_s3(endpoint, environment, bucket="ledgers"):
    """A new folder in a bucket of a test server, which takes any secret."""
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_ENDPOINT_URL": endpoint}.items():
        environment.setenv(name, value)
    return open_store(f"s3://{bucket}/{secrets.token_hex(4)}")


def place(kind, tmp_path, request):
    name = secrets.token_hex(4)
    if kind == "s3":
        return on_s3(request.getfixturevalue("bucket"), request.getfixturevalue("monkeypatch"))
    if kind in ("azure", "hdfs"):
        return open_store(f"{request.getfixturevalue({'azure': 'container'}.get(kind, kind))}/{name}")
    return {
        "memory": MemoryStore,
        "local": lambda: open_store(tmp_path / "deep" / "er"),
        "local, not durable": lambda: LocalStore(tmp_path, durable=False),
        "fsspec memory": lambda: open_store(f"memory://{name}"),
        "fsspec local": lambda: open_store(f"local://{tmp_path}"),
    }[kind]()


@pytest.fixture(params=PLACES)
def store(request, tmp_path):
    return place(request.param, tmp_path, request)


@pytest.mark.gate(6)
def test_what_is_created_is_there_and_is_created_once(store):
    store.create("a/b/c", b"content")
    with pytest.raises(KeyTaken, match="c"):
        store.create("a/b/c", b"second")
    assert (store.get("a/b/c"), store.exists("a/b/c")) == (b"content", True)
    assert store.modified("a/b/c") is not None
    ranges = {(2, 5): b"nte", (5, 100): b"nt", (7, 9): b"", (100, 200): b"", (0, 10**12): b"content"}
    assert {each: store.get_range("a/b/c", *each) for each in ranges} == ranges, "a range is cut at the end"


@pytest.mark.gate(5)
def test_of_many_who_create_one_wins(store):
    won, start = [], threading.Barrier(8)

    def create(number):
        start.wait(within(120))
        try:
            store.create("race", str(number).encode())
        except KeyTaken:
            return
        won.append(str(number).encode())

    threads = [threading.Thread(target=create, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join(thread, seconds=120)
    assert won == [store.get("race")]


def test_listings_name_what_lies_directly_under_a_folder(store):
    for key in ("f/one", "f/two", "f/g/three", "h%20i/four"):
        store.create(key, b"x")
    assert (sorted(store.names("f")), store.folders("f"), store.names("h%20i")) == (["one", "two"], ["g"], ["four"])


def test_replacing_and_noting_leave_the_last_content(store):
    for write in (store.replace, store.note):
        write("r/x", b"a longer content")
        write("r/x", b"short")
        assert store.get("r/x") == b"short"


@pytest.mark.gate(7)
def test_what_is_deleted_is_missing_and_may_be_deleted_again(store):
    for key in "ab":
        store.create(key, b"x")
    store.delete(["a", "b"])
    store.delete(["a"])
    for key in ("a", "nowhere"):
        with pytest.raises(KeyMissing, match=key):
            store.get(key)
        with pytest.raises(KeyMissing, match=key):
            store.get_range(key, 0, 1)
        assert (store.exists(key), store.modified(key), store.names(key)) == (False, None, [])


@pytest.mark.gate(1)
def test_a_ledger_lives_there(store):
    desk = Desk(store)
    for start in range(0, 30, 10):
        desk.discover((start, start + 10))
        desk.window(5, consumed=[(start, start + 10)])
    again = desk.reopened()
    assert again.app.standing == desk.app.standing
    assert verify(again.ledger).is_complete


@pytest.mark.gate(4)
def test_the_second_writer_loses_and_changes_nothing(store):
    desk = Desk(store)
    late = desk.reopened()
    desk.discover((0, 10))
    stale = late.root.plan_next()
    number = late.root.standing.next_seq
    desk.discover((10, 20))
    event = stale.add_data(watermark=late.clock.now())
    before = store.get(desk.root.log.block_key(desk.root.head.seq))
    assert fault_of(lambda: late.root.append(event), SequenceTaken) == ("sequence-taken", number)
    assert store.get(desk.root.log.block_key(desk.root.head.seq)) == before
    with pytest.raises(SequenceTaken):
        late.root.append(event)  # and it stays stopped until it opens the chain again


def test_a_filesystem_that_overwrites_is_refused():
    class Careless:
        """Ignores the mode, as some implementations do."""

        kept: ClassVar = {}

        def makedirs(self, path, exist_ok):
            assert exist_ok

        def pipe_file(self, path, value, **kwargs):
            self.kept[path] = value

        def rm_file(self, path):
            self.kept.pop(path)

    careless = Careless()
    assert code_of(lambda: FsspecStore(careless, "ledger").create("a", b"x"), StoreError) == "store-unfenced"
    assert careless.kept == {}


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_said(bucket, monkeypatch):
    gone = on_s3(bucket, monkeypatch, "nowhere")
    assert code_of(lambda: gone.create("a", b"x"), StoreError) == "store-unreachable"


def test_a_refused_write_leaves_no_temporary_and_those_of_others_are_listed_apart(tmp_path):
    store = LocalStore(tmp_path)
    store.create("f/x", b"x")
    with pytest.raises(KeyTaken, match="x"):
        store.create("f/x", b"y")
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["x"]
    (tmp_path / "f" / ".tmp-1-2-3").write_bytes(b"half")
    assert (store.names("f"), store.temporaries("f")) == (["x"], [".tmp-1-2-3"])


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def test_an_append_survives_a_power_cut(tmp_path, monkeypatch):
    """The content is synced before the name exists, and the folder after; watched, not imagined."""
    store = LocalStore(tmp_path)
    store.create("f/first", b"x")
    steps = []
    sync, link = os.fsync, os.link

    def seen_sync(descriptor):
        steps.append("folder" if is_folder(descriptor) else "content")
        sync(descriptor)

    def seen_link(source, target):
        steps.append("name")
        link(source, target)

    monkeypatch.setattr(os, "fsync", seen_sync)
    monkeypatch.setattr(os, "link", seen_link)
    store.create("f/second", b"x")
    assert steps == ["content", "name", "folder"]
    steps.clear()
    LocalStore(tmp_path, durable=False).create("f/third", b"x")
    assert steps == ["name"]


def test_a_content_that_is_stored_again_because_it_was_damaged_survives_a_power_cut(tmp_path, monkeypatch):
    objects = Objects(LocalStore(tmp_path), "f", "chain")
    objects.put("data", b"content")
    path = tmp_path / objects.key("data", hash_of(b"content"))
    path.write_bytes(b"cont")
    synced, sync = [], os.fsync

    def seen(descriptor):
        synced.append("folder" if is_folder(descriptor) else "content")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    objects.put("data", b"content")
    assert (path.read_bytes(), synced[-2:]) == (b"content", ["content", "folder"])


def test_new_folders_survive_a_power_cut_too(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def seen(descriptor):
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux shows the folder of a descriptor")
    monkeypatch.setattr(os, "fsync", seen)
    LocalStore(tmp_path / "new").create("a/b/x", b"x")
    assert {str(tmp_path / folder) for folder in ("", "new", "new/a", "new/a/b")} <= set(synced)


def failing(number: int, on: Callable[[Any], bool] = lambda _: True, otherwise: Any = None) -> Any:
    def call(given: Any, *more: Any, **named: Any) -> Any:
        if on(given):
            raise OSError(number, os.strerror(number))
        return otherwise(given, *more, **named)

    return call


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EACCES, "store-readonly"), (errno.EIO, "store-unreachable")], ids=["EACCES", "EIO"]
)
def test_what_cannot_be_looked_at_is_not_called_absent(tmp_path, monkeypatch, number, code):
    store = LocalStore(tmp_path)
    store.create("f/x", b"x")
    assert [store.exists(key) for key in ("f/x", "f/y", "f/x/y")] == [True, False, False]
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", failing(number))
        with pytest.raises(StoreError) as caught:
            store.exists("f/x")
    assert caught.value.code == code
    assert "cannot be written" not in str(caught.value)


@pytest.mark.parametrize("ask", ["exists", "modified"])
def test_a_filesystem_that_fails_is_not_called_empty(ask, monkeypatch):
    memory = fsspec.filesystem("memory")
    store = FsspecStore(memory, secrets.token_hex(4))
    store.create("f/x", b"x")
    for name in ("info", "modified"):
        monkeypatch.setattr(memory, name, failing(errno.EACCES))
    assert code_of(lambda: getattr(store, ask)("f/x"), StoreError) == "store-readonly"


def test_a_missing_key_keeps_no_other_from_being_deleted(tmp_path):
    # as on Google Cloud Storage and Azure, the deletion of a key that is missing fails here
    store = BucketStore(FolderBucket(tmp_path))
    there = [f"f/{number:03}" for number in range(100)]
    for key in there:
        store.replace(key, b"x")
    store.delete(["f/gone", *there])
    assert store.names("f") == []


def test_a_path_that_is_too_long_is_called_so(tmp_path):
    store = LocalStore(tmp_path / ("x" * 300), durable=False)
    with pytest.raises(StoreError, match=r"is too long a path: File name too long.*\n  help: choose a shorter name"):
        store.get("status.json")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EIO], ids=errno.errorcode.get)
def test_a_folder_that_cannot_be_synced_leaves_it_unknown_what_was_committed(tmp_path, monkeypatch, number):
    store = LocalStore(tmp_path)
    store.create("f/first", b"x")
    monkeypatch.setattr(os, "fsync", failing(number, is_folder, os.fsync))
    with pytest.raises(StoreError) as caught:
        store.create("f/second", b"x")
    assert caught.value.code == "store-unreachable"
    assert "nothing was committed" not in str(caught.value)
    assert store.get("f/second") == b"x"


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path):
    store = LocalStore(tmp_path)
    left = [tmp_path / "f" / f".tmp-{os.getpid()}-{id(store):x}-{number}" for number in range(3)]
    left[0].parent.mkdir()
    for path in left:
        path.write_bytes(b"half")
    store.create("f/x", b"x")
    store.replace("f/y", b"y")
    assert (store.get("f/x"), store.get("f/y")) == (b"x", b"y")
    assert [path.read_bytes() for path in left] == [b"half"] * 3


@pytest.mark.parametrize("place", ["file/app", "file"])
def test_a_folder_that_cannot_be_created_is_reported(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=rf"{place}/ledger cannot be created: .*Not a directory") as caught:
        Ledger.create(tmp_path / place)
    assert (caught.value.code, "nothing was committed" in str(caught.value)) == ("store-unreachable", True)


def test_the_same_bytes_of_another_driver_are_not_ours_in_a_bucket():
    first = Desk(BucketStore(Bucket()))
    second = first.reopened()
    first.root.append(remark("same"))
    with pytest.raises(SequenceTaken, match="another writer"):
        second.root.append(remark("same"))


def test_a_link_that_is_repeated_after_a_lost_answer_has_won(here, monkeypatch):
    link = os.link

    def repeated(source, target):
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    here.discover((20, 30))
    assert here.reopened().root.standing == here.root.standing


class Forgetful(BaseHTTPRequestHandler):
    """Passes every request on to the server behind it, and loses the first answer to each block that is put."""

    behind: str
    lost: ClassVar[list[str]] = []

    def do_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        behind = HTTPConnection(urlsplit(self.behind).netloc)
        behind.request(self.command, self.path, body or None, dict(self.headers))
        answer = behind.getresponse()
        content = answer.read()
        behind.close()
        if self.command == "PUT" and "/blocks/" in self.path and self.path not in self.lost:
            self.lost.append(self.path)
            self.send_error(503)
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        if self.command != "HEAD" and "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do_any  # noqa: N815 - names of the library

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.mark.slow
def test_a_driver_goes_on_where_an_object_store_loses_its_answers(bucket, monkeypatch):
    """A real client against a real server: the put is done, its answer is lost, the client puts again by itself."""
    Forgetful.behind = bucket
    with ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        desk = Desk(on_s3(f"http://127.0.0.1:{proxy.server_port}", monkeypatch))
        desk.discover((0, 10))
        desk.window(1, consumed=[(0, 10)])
        assert is_complete(desk)
        proxy.shutdown()
    assert len(Forgetful.lost) == desk.root.standing.next_seq + desk.app.standing.next_seq
