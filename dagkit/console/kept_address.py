"""The token and the port of the last console that a browser opened, in the application's folder: `PATH/console.json`.

The next console takes them again, so that bookmarks and open pages stay valid. Only the user can read the file.
"""

import logging
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from dagkit.ground.urls import is_url

ADDRESS = "console.json"

_logger = logging.getLogger(__name__)


class ConsoleAddress(BaseModel):
    """What the address of a console contains beside the host."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    token: str = Field(min_length=32)
    port: int = Field(gt=0, lt=1 << 16)


@dataclass(frozen=True, slots=True)
class KeptAddress:
    """The address that a folder keeps. One in an object store keeps none: all its readers would read the token."""

    place: str

    def read(self) -> ConsoleAddress | None:
        """Return the address; None if there is none, or another user may have read or written it."""
        if is_url(self.place):
            return None
        with suppress(OSError, ValueError), Path(self.place, ADDRESS).open("rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_IMODE(about.st_mode) & 0o077 and about.st_uid == os.getuid():
                return ConsoleAddress.model_validate_json(file.read())
        return None

    def keep(self, address: ConsoleAddress) -> None:
        """Write the address, unless the folder does not exist yet. If that fails, the next console gets another one."""
        if is_url(self.place) or self.read() == address or not Path(self.place).is_dir():
            return
        path = Path(self.place, f"{ADDRESS}.{os.getpid()}")
        try:
            with suppress(FileNotFoundError):
                path.unlink()
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(address.model_dump_json())
            path.replace(Path(self.place, ADDRESS))
        except OSError as refused:
            _logger.debug("%s cannot be written: %s", ADDRESS, refused)
