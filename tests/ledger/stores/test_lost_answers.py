"""A write whose answer was lost, and which the client repeats, counts as the writer's own success."""

import os
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from obstore.store import MemoryStore as Bucket

from dagkit.ledger import SequenceTaken
from dagkit.ledger.stores.bucket import BucketStore
from tests.ledger.desk import Desk, is_complete, remark
from tests.ledger.stores.test_stores import on_s3


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
def test_a_driver_goes_on_where_an_object_store_loses_its_answers(bucket):
    """A real client against a real server: the put is done, its answer is lost, the client puts again by itself."""
    Forgetful.behind = bucket
    with ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        desk = Desk(on_s3(f"http://127.0.0.1:{proxy.server_port}"))
        desk.discover((0, 10))
        desk.window(1, consumed=[(0, 10)])
        assert is_complete(desk)
        proxy.shutdown()
    assert len(Forgetful.lost) == desk.root.standing.next_seq + desk.app.standing.next_seq
