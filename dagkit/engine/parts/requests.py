"""Requests to a running application, left in its folder until its driver answers.

PATH/requests/<id>.json    the request, written by the requester
PATH/answers/<id>.json     the reply, written by the driver and deleted by the requester

The driver deletes a request when it answers. If no driver runs, a request waits for the next launch or its withdrawal.
"""

import logging
import re
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from dagkit.engine.program.stored_value import StoredValue
from dagkit.engine.record.status_file import read_status
from dagkit.errors import RunFailure
from dagkit.ledger import StoreError
from dagkit.ledger.stores import KeyMissing, KeyTaken, Store

ASKED, ANSWERED = "requests", "answers"
READ_EVERY = timedelta(seconds=1)
"""The shortest time between two looks of a driver for requests: a look lists a folder, perhaps of an object store."""
KEPT_FOR = timedelta(days=1)
"""How long an answer is kept for a requester that may be gone."""

_ENDS_IN_CODE = re.compile(r" \[[a-z]+(?:-[a-z]+)+\]$")
_log = logging.getLogger(__name__)


class SetValue(StoredValue):
    """Set a property or an attribute."""

    ask: Literal["set"] = "set"
    operator: str
    name: str
    value: str


class SetCount(StoredValue):
    """Set the number of partitions of an operator."""

    ask: Literal["scale"] = "scale"
    operator: str
    count: int = Field(ge=1)


class ForgetFile(StoredValue):
    """Forget an input file, so that it is read again."""

    ask: Literal["forget"] = "forget"
    operator: str
    path: str


class _OnWork(StoredValue):
    """Work: all of an element, or a range of it."""

    names: tuple[str, ...] = ()
    """The element, under the names that it may have in the ledger; empty: all of them."""
    start: int = 0
    end: int | None = None
    """None: to the end of the element."""
    operator: str | None = None
    """The operator whose work it is; None: any."""
    reason: str = ""
    by: str
    """The user who asks."""


class GiveUp(_OnWork):
    """Give up pending work for good, or work that was set aside."""

    ask: Literal["give-up"] = "give-up"


class Retry(_OnWork):
    """Put work that was set aside back into the queue."""

    ask: Literal["retry"] = "retry"


class StopRun(StoredValue):
    """Stop one launch after its windows in flight."""

    ask: Literal["stop"] = "stop"
    launch: str
    """The launch, as its status names it: the request may outlive it."""


class TapStream(StoredValue):
    """Show items that pass on a stream in one window."""

    ask: Literal["tap"] = "tap"
    stream: str
    """The stream, or the operator that feeds it, or the output as `operator.port`."""
    most: int = Field(ge=1, le=1000)
    """The highest number of items to show."""
    every: int = Field(ge=1)
    """Show each n-th item of each slot."""


OnWork = GiveUp | Retry
Asks = SetValue | SetCount | ForgetFile | StopRun | TapStream | OnWork


class Request(StoredValue):
    """One request."""

    format: Literal["dagkit.request/1"] = "dagkit.request/1"
    id: str
    at: datetime
    asks: Annotated[Asks, Field(discriminator="ask")]


class ShownItem(StoredValue):
    """An item that passed on a stream."""

    operator: str
    slot: int
    item: str
    """Its repr, shortened and masked."""
    place: str
    """Where it was read, in words; empty if that is unknown."""


class Reply(StoredValue):
    """The reply to a request."""

    format: Literal["dagkit.answer/1"] = "dagkit.answer/1"
    id: str
    done: bool
    window: int | None = None
    """The first window with the change, if it was done."""
    name: str | None = None
    """The property or attribute that was set, as its class spells it."""
    before: JsonValue = None
    after: JsonValue = None
    refused: str | None = None
    """Why it was not done, and what to do."""
    items: tuple[ShownItem, ...] = Field(default=(), exclude_if=lambda items: not items)
    """The items of a tapped stream."""


class Unanswered(RunFailure):
    """No driver answered in time; the request was withdrawn."""

    code = "request-unanswered"

    def __init__(self, place: str, seconds: float) -> None:
        super().__init__(
            f"no running driver answered within {seconds:g} s, and the request was withdrawn: either the application "
            f"of {place} is not running, or a window takes longer than that, which may have begun with the change",
            "launch it, or wait longer with --wait; `dagkit logs` shows what was changed",
        )


class AnswerUnreadable(Unanswered):
    """The answer of the driver cannot be read."""

    def __init__(self) -> None:
        RunFailure.__init__(
            self,
            "the driver's answer cannot be read, so whether it did what was asked is unknown",
            "`dagkit logs` shows whether it did; ask again if not",
        )


class NotRunning(Unanswered):
    """The status shows that the driver does not run; nothing was requested."""

    def __init__(self, application: str, state: str, instead: str) -> None:
        RunFailure.__init__(self, f"{application} is not running; its last launch: {state}", instead)

    @classmethod
    def no_process(cls, application: str, state: str) -> "NotRunning":
        """For requests that end the process."""
        return cls(
            application, state, "there is no process to end; the next launch resumes after the last committed window"
        )


class Refused(RunFailure):
    """The driver refused the request; nothing was changed."""

    code = "request-refused"
    usual_help = "correct the request, and ask again"

    @classmethod
    def because(cls, reason: str) -> "Refused":
        """The refusal for a reason that carries its own help line. A code at the end of the reason is left out."""
        problem, _, help_ = reason.partition("\n  help: ")
        return cls(_ENDS_IN_CODE.sub("", problem), help_)


_ID = re.compile(r"\d{8}T\d{12}-[0-9a-f]{8}")


def is_id(text: str) -> bool:
    """Whether a text has the form of a request's ID, so that it names no other file of the folder."""
    return _ID.fullmatch(text) is not None


def ask(store: Store, asks: Asks, now: datetime) -> Request:
    """Write a request into the folder; IDs sort by time. Raise Refused if JSON cannot hold it."""
    request = Request(id=f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}", at=now, asks=asks)
    try:
        written = _written(request)
    except PydanticSerializationError as error:
        raise Refused("the request holds bytes that are no text in UTF-8") from error
    store.create(f"{ASKED}/{request.id}.json", written)
    return request


def reply_to(store: Store, request: Request) -> Reply | None:
    """Return the reply to a request and delete it; None until the driver answers. Raise AnswerUnreadable."""
    return reply_with(store, request.id)


def reply_with(store: Store, request_id: str) -> Reply | None:
    """Return the reply to the request with an ID, as `reply_to` does."""
    key = f"{ANSWERED}/{request_id}.json"
    try:
        reply = Reply.model_validate_json(store.get(key))
    except KeyMissing:
        return None
    except ValidationError as error:
        store.delete([key])
        raise AnswerUnreadable from error
    store.delete([key])
    return reply


def withdraw(store: Store, request: Request) -> None:
    """Delete a request, so that no driver performs it, unless a window has begun with it: then it stays performed."""
    store.delete([f"{ASKED}/{request.id}.json"])


class RequestInbox:
    """The requests to one driver, and its answers."""

    def __init__(self, store: Store, now: Callable[[], datetime], answered: Collection[str] = ()) -> None:
        self._store = store
        self._now = now
        self._known: set[str] = set()
        """IDs of requests that are there, have been read, and need not be read again."""
        self._answered = set(answered)
        """Requests that took effect with the last window of a run that was killed before it could answer."""
        self._unwritten_replies: dict[str, Reply] = {}
        """Replies that could not be written yet, by request ID."""
        self.due = now()

    def read_requests(self, window_id: int) -> list[Request]:
        """Return the new requests, oldest first; return none before the next look is due."""
        now = self._now()
        if now < self.due:
            return []
        self.due = now + READ_EVERY
        for reply in list(self._unwritten_replies.values()):
            self.reply(reply)
        new = []
        try:
            ids = sorted(name.removesuffix(".json") for name in self._store.names(ASKED) if name.endswith(".json"))
            self._known.intersection_update(ids)  # a tap asks each second
            for request_id in ids:
                if request_id in self._known:
                    continue
                request = self._read(request_id, window_id)
                # not before: a request that cannot be read now is read at the next look, and before those that came
                # after it
                self._known.add(request_id)
                if request is not None:
                    new.append(request)
        except StoreError as error:  # unread requests wait for the next look; the run continues
            _log.warning("requests cannot be read now: %s", error)
        return new

    def _read(self, request_id: str, window_id: int) -> Request | None:
        """Return a request; None if it is answered, withdrawn or invalid."""
        if request_id in self._answered:
            self.reply(Reply(id=request_id, done=True, window=window_id))
            return None
        try:
            request = Request.model_validate_json(self._store.get(f"{ASKED}/{request_id}.json"))
        except KeyMissing:  # it was withdrawn
            return None
        except ValidationError as error:
            self.reply(Reply(id=request_id, done=False, refused=f"the request cannot be read: {error}"))
            return None
        if isinstance(request.asks, StopRun) and not self._is_for_this_launch(request.asks):
            self.reply(Reply(id=request_id, done=False, refused="the request was for an earlier launch, which is over"))
            return None
        if request.id != request_id:
            self.reply(
                Reply(id=request_id, done=False, refused=f"the request in this file has another ID: {request.id}")
            )
            return None
        return request

    def _is_for_this_launch(self, asks: StopRun) -> bool:
        status = read_status(self._store)
        return status is not None and status.launch.id == asks.launch

    def is_there(self, request: str) -> bool:
        """Whether a request has not been withdrawn."""
        return self._store.exists(f"{ASKED}/{request}.json")

    def drop(self, request: str) -> None:
        """Delete a request without an answer. If the store fails, it stays, unread."""
        try:
            self._store.delete([f"{ASKED}/{request}.json"])
        except StoreError as error:
            _log.warning("request %s cannot be deleted now: %s", request, error)

    def reply(self, reply: Reply) -> None:
        """Write a reply and delete its request. If the store fails, try again at the next look."""
        try:
            # The answer first: after a crash between the two, the request is there to be answered again.
            with suppress(KeyTaken):  # an earlier attempt wrote it, and could not delete the request
                self._store.create(f"{ANSWERED}/{reply.id}.json", _written(reply))
            self._store.delete([f"{ASKED}/{reply.id}.json"])
        except StoreError as error:
            _log.warning("request %s cannot be answered now: %s", reply.id, error)
            self._unwritten_replies[reply.id] = reply
        else:
            self._unwritten_replies.pop(reply.id, None)

    def tidy(self) -> None:
        """Delete answers that no requester collected within a day. If the store fails, leave them to a later launch."""
        old = self._now() - KEPT_FOR
        try:
            keys = [f"{ANSWERED}/{name}" for name in self._store.names(ANSWERED)]
            written = {key: self._store.modified(key) for key in keys}
            self._store.delete([key for key, at in written.items() if at is not None and at < old])
        except StoreError as error:
            _log.warning("uncollected answers cannot be deleted now: %s", error)


def _written(document: BaseModel) -> bytes:
    return (document.model_dump_json(exclude_none=True) + "\n").encode()
