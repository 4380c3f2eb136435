"""The form of what the engine stores in the ledger and in the application's folder."""

from pydantic import BaseModel, ConfigDict


class StoredValue(BaseModel):
    """A frozen value. When it is read, fields that it does not declare are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
