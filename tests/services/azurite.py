"""A blob server with Azure's interface for tests: `azurite.sh` runs it, until the process that started it ends."""

from pathlib import Path

from tests.services.scripted import ScriptedServer

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of the only account, which is the same in every Azurite."""


class Azurite(ScriptedServer):
    """A server with one account, over plain HTTP."""

    script = Path(__file__).with_name("azurite.sh")
    is_fetched = True

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self._ports[0]}/{ACCOUNT}",
        }
