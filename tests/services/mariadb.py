"""A real MariaDB server for tests: `mariadb.sh` runs it, and it ends with the process that started it."""

from pathlib import Path
from typing import Any

from tests.services.scripted import ScriptedServer


class MariaServer(ScriptedServer):
    """A server whose database `dagkit` is empty at first."""

    script = Path(__file__).with_name("mariadb.sh")

    def options(self, database: str = "dagkit") -> dict[str, Any]:
        """What `pymysql.connect` takes, without the password."""
        return {"host": "127.0.0.1", "port": int(self._ports[0]), "user": "dagkit", "database": database}
