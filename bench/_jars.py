"""The Java packages of contestants, which Maven downloads once."""

import shutil
import subprocess
from pathlib import Path

from bench.ingesting.environments import cache_folder

POM = Path(__file__).parent / "pom.xml"


def jars(*beginnings: str) -> str:
    """The paths of the jars whose names begin like this, with commas between."""
    folder = cache_folder() / "jars"
    if not folder.exists() or POM.stat().st_mtime > folder.stat().st_mtime:
        made = folder.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(POM), "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={made}"], check=True)  # noqa: S603 - our own file
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return ",".join(sorted(str(jar) for jar in folder.iterdir() if jar.name.startswith(beginnings)))
