"""Send dagkit's own code to workers on other machines, so that they run the same version as the driver."""

import functools
import hashlib
import io
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from dagkit.api.installed import own_folders
from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.session.master import LOCAL
from dagkit.backends.spark.session.own_folder import own_folder
from dagkit.ground.native_libraries import PLATFORM_FILE, own_platform

_SENT = (".c", ".py", ".pyi", ".so")
"""The endings of the files that are sent: code, lists of names, and libraries with the C they were compiled from."""


def ship_own_code(spark: SparkSession) -> None:
    """Make dagkit, and its operator library if that is imported, importable on every worker of the session."""
    if not workers_are_here(spark):
        spark.addArtifacts(archive_of(tuple(own_folders())), pyfile=True)


def workers_are_here(spark: SparkSession) -> bool:
    """Whether this process starts the workers, which then import the same code as this process."""
    return not is_connect(spark) and LOCAL.fullmatch(spark.conf.get("spark.master") or "") is not None


@functools.cache
def archive_of(folders: tuple[Path, ...]) -> str:
    """The path of a zip archive of the code below the folders, named by a hash of its content."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        # Sorted and without times, so that equal code has equal bytes and one name: a session keeps the archive of an
        # earlier launch, and Spark raises for a name that gets another content.
        archive.writestr(zipfile.ZipInfo(PLATFORM_FILE), own_platform())
        for folder in folders:
            for file in sorted(file for file in folder.rglob("*") if file.suffix in _SENT):
                archive.writestr(zipfile.ZipInfo(str(file.relative_to(folder.parent))), file.read_bytes())
    path = own_folder("dagkit-code-") / f"dagkit_{hashlib.sha256(content.getvalue()).hexdigest()[:16]}.zip"
    path.write_bytes(content.getvalue())
    return str(path)
