"""What goes to disk: frozen values with camelCase names, aware instants, and absent fields left out."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A value of the ledger; an unknown field is refused, for a later version may mean something by it."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def as_json(self) -> dict[str, Any]:
        """The value as the fabric's manifests write it: what is absent is left out, never null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rfc3339(instant: datetime) -> str:
    """The instant in UTC, to the microsecond where it has any, ending in Z."""
    return instant.replace(tzinfo=None).isoformat() + "Z"


def _in_utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc), PlainSerializer(rfc3339, return_type=str)]
"""A moment, aware, in UTC."""

Offset = Annotated[int, Field(ge=0, lt=2**64)]
"""The number of a record in a chain's data, from 0, without gaps."""
