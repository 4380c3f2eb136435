"""The base of stored values: frozen, with camelCase names and aware instants; absent fields are omitted."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A stored value; an unknown field is refused, because a later version may give it a meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def as_json(self) -> dict[str, Any]:
        """The value in the form of the fabric's manifests: absent fields are omitted, never null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rfc3339(instant: datetime) -> str:
    """The instant in UTC, ending in Z, with microseconds if it has any."""
    return instant.replace(tzinfo=None).isoformat() + "Z"


def _in_utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc), PlainSerializer(rfc3339, return_type=str)]
"""An aware instant in UTC."""

if TYPE_CHECKING:
    Json = JsonValue
else:
    Json = Any
    """A value that an encoder or a parser made, so it is JSON: pydantic would examine each member of a JsonValue."""

Offset = Annotated[int, Field(ge=0, lt=2**64)]
"""The number of a record in a chain's data: from 0, without gaps."""
