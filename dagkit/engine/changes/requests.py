"""Requests: what somebody asks of an application that runs elsewhere, left in its folder until its driver answers.

PATH/requests/<id>.json    what is asked for, put there by whoever asks
PATH/answers/<id>.json     what became of it, put there by the driver, and taken away by whoever asked

A request goes away when it is answered; what was asked of nobody waits for the next launch, or until it is withdrawn.
"""

import logging
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dagkit.errors import RunFailure
from dagkit.ledger import StoreError
from dagkit.ledger.stores import KeyMissing, KeyTaken, Store

ASKED, ANSWERED = "requests", "answers"
HEARD_EVERY = timedelta(seconds=1)
"""How often a driver looks for requests at most."""
KEPT_FOR = timedelta(days=1)
"""How long an answer waits for whoever asked, who may be gone."""

_log = logging.getLogger(__name__)


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SetValue(_Document):
    """A property or an attribute is to have another value."""

    ask: Literal["set"] = "set"
    operator: str
    name: str
    value: str


class SetCount(_Document):
    """An operator is to have so many partitions."""

    ask: Literal["scale"] = "scale"
    operator: str
    count: int = Field(ge=1)


class Request(_Document):
    """One thing that is asked for."""

    format: Literal["dagkit.request/1"] = "dagkit.request/1"
    id: str
    at: datetime
    asks: Annotated[SetValue | SetCount, Field(discriminator="ask")]


class Reply(_Document):
    """What became of a request."""

    format: Literal["dagkit.answer/1"] = "dagkit.answer/1"
    id: str
    done: bool
    window: int | None = None
    """The window that it took effect with, where it was done."""
    name: str | None = None
    """The property or attribute that was set, as its class spells it."""
    before: JsonValue = None
    after: JsonValue = None
    refused: str | None = None
    """Why it was not done, and what to do."""


class Unanswered(RunFailure):
    """No driver answered in time; the request was withdrawn."""

    code = "request-unanswered"
    exit_code: ClassVar[int] = 8

    def __init__(self, place: str, seconds: float) -> None:
        super().__init__(
            f"no running driver answered within {seconds:g} s, and nothing was changed: either the application of "
            f"{place} is not running, or a window takes longer than that",
            "launch it, or wait longer with --wait",
        )


class Refused(RunFailure):
    """The driver refused the request; nothing was changed."""

    code = "request-refused"
    usual_help: ClassVar[str] = "correct the request, and ask again"
    exit_code: ClassVar[int] = 3

    @classmethod
    def because(cls, reason: str) -> "Refused":
        """The refusal for a reason that carries its own help line."""
        problem, _, help_ = reason.partition("\n  help: ")
        return cls(problem, help_)


def ask(store: Store, asks: SetValue | SetCount, now: datetime) -> Request:
    """The request is in the folder; ids are in the order of time."""
    request = Request(id=f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}", at=now, asks=asks)
    store.create(f"{ASKED}/{request.id}.json", _written(request))
    return request


def reply_to(store: Store, request: Request) -> Reply | None:
    """What became of a request; whoever is told is told once. None where nobody answered so far."""
    key = f"{ANSWERED}/{request.id}.json"
    try:
        reply = Reply.model_validate_json(store.get(key))
    except KeyMissing:
        return None
    store.delete([key])
    return reply


def withdraw(store: Store, request: Request) -> None:
    """Nobody will do what was asked for, unless a driver is at it this very moment."""
    store.delete([f"{ASKED}/{request.id}.json"])


class RequestInbox:
    """What a driver is asked for, and answers."""

    def __init__(self, store: Store, now: Callable[[], datetime], answered: Collection[str] = ()) -> None:
        self._store = store
        self._now = now
        self._known: set[str] = set()
        """Ids that were heard of, and need not be read again."""
        self._answered = set(answered)
        """What took effect with the last window of a run that was killed before it could say so."""
        self._unsaid: dict[str, Reply] = {}
        """What could not be said so far, by the request."""
        self.due = now()

    def hear(self, window_id: int) -> list[Request]:
        """What was asked for since the last time, the oldest first; nothing before the next time is due."""
        now = self._now()
        if now < self.due:
            return []
        self.due = now + HEARD_EVERY
        for reply in list(self._unsaid.values()):
            self.reply(reply)
        heard = []
        try:
            ids = sorted(name.removesuffix(".json") for name in self._store.names(ASKED) if name.endswith(".json"))
            for each in ids:
                if each in self._known:
                    continue
                request = self._read(each, window_id)
                self._known.add(each)
                if request is not None:
                    heard.append(request)
        except StoreError as error:  # whoever asks waits, and so do those who asked later; the run goes on
            _log.warning("requests cannot be read now: %s", error)
        return heard

    def _read(self, each: str, window_id: int) -> Request | None:
        """What is asked for; none where nothing is to be done for it."""
        if each in self._answered:
            self.reply(Reply(id=each, done=True, window=window_id))
            return None
        try:
            request = Request.model_validate_json(self._store.get(f"{ASKED}/{each}.json"))
        except KeyMissing:  # it was withdrawn
            return None
        except ValidationError as error:
            self.reply(Reply(id=each, done=False, refused=f"the request cannot be read: {error}"))
            return None
        if request.id != each:
            self.reply(Reply(id=each, done=False, refused=f"the request says that it is {request.id}"))
            return None
        return request

    def is_there(self, request: str) -> bool:
        """Whether nobody has withdrawn it."""
        return self._store.exists(f"{ASKED}/{request}.json")

    def reply(self, reply: Reply) -> None:
        """Whoever asked can know, and the request is gone; where that cannot be now, it is tried again."""
        try:
            with suppress(KeyTaken):
                self._store.create(f"{ANSWERED}/{reply.id}.json", _written(reply))
            self._store.delete([f"{ASKED}/{reply.id}.json"])
        except StoreError as error:
            _log.warning("request %s cannot be answered now: %s", reply.id, error)
            self._unsaid[reply.id] = reply
        else:
            self._unsaid.pop(reply.id, None)

    def tidy(self) -> None:
        """No answer is there that nobody came for in a day; what cannot be taken away now is left to a later launch."""
        old = self._now() - KEPT_FOR
        try:
            keys = [f"{ANSWERED}/{name}" for name in self._store.names(ANSWERED)]
            written = {key: self._store.modified(key) for key in keys}
            self._store.delete([key for key, at in written.items() if at is not None and at < old])
        except StoreError as error:
            _log.warning("answers that nobody came for stay: %s", error)


def _written(document: BaseModel) -> bytes:
    return (document.model_dump_json(exclude_none=True) + "\n").encode()
