"""Documents about a run in the application's folder, as JSON in ASCII: they may hold names that are not valid UTF-8."""

import json
from typing import TypeVar

from pydantic import BaseModel

T = TypeVar("T", bound=BaseModel)


def bytes_of(document: BaseModel) -> bytes:
    """The content of the file that holds a document."""
    return (json.dumps(document.model_dump(mode="json"), separators=(",", ":")) + "\n").encode()


def document_in(content: bytes, kind: type[T]) -> T:
    """The document that a file with this content holds. Raise ValueError if it holds none of this kind."""
    try:
        return kind.model_validate(json.loads(content))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
