"""The archive as which dagkit is sent: workers load its compiled C where their platform is the driver's."""

import os
import sys
import zipfile
from pathlib import Path

import pytest

import dagkit_operators
from dagkit.backends.spark.window.artifacts import archive_of
from dagkit.ground.native_libraries import PLATFORM_FILE, library_at, own_platform
from dagkit_operators.native.compiled import KAFKA_LIBRARY, LIBRARY
from hatch_build import MISSING, can_compile
from tests.processes import run_program

pytestmark = pytest.mark.skipif(not can_compile(), reason=MISSING)
OPERATORS = Path(dagkit_operators.__file__).parent
DAGKIT = OPERATORS.parents[1] / "dagkit"
ASK = (
    "import dagkit_operators as o; from dagkit_operators.native.compiled import *; "
    "assert '.zip' in o.__file__; print(o.about(), json_members() is not None, kafka_columns() is not None)"
)


def answered(archive: Path) -> str:
    """What a Python that imports dagkit from an archive says of its C."""
    done = run_program(
        [sys.executable, "-c", ASK], env={**os.environ, "PYTHONPATH": str(archive)}, cwd=archive.parent, seconds=120
    )
    return done.stdout.strip()


def changed(archive: Path, folder: Path, **content: bytes | None) -> Path:
    """The archive with other content of some members, named by their stems; None: without them."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(folder / "changed.zip", "w") as new:
        for name in old.namelist():
            value = content.get(Path(name).stem.replace("-", "_"), old.read(name))
            if value is not None:
                new.writestr(name, value)
    return folder / "changed.zip"


@pytest.fixture(scope="module")
def archive():
    return Path(archive_of((DAGKIT, OPERATORS)))


@pytest.mark.slow
def test_the_c_of_an_archive_is_used(archive):
    assert answered(archive) == f"{dagkit_operators.about()} True True"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"dagkit_platform": b"Linux sparc"}, f"the compiled C is for Linux sparc, and this is {own_platform()}"),
        ({"libbytewise": b"ELF"}, "this version has no compiled C"),
        ({"libbytewise": None}, "this version has no compiled C"),
    ],
    ids=["another platform", "a damaged library", "none"],
)
def test_numpy_is_used_where_the_c_does_not_fit(archive, tmp_path, content, reason):
    assert answered(changed(archive, tmp_path, **content)).startswith(f"byte scanning: numpy ({reason})")


def test_an_archive_names_its_platform_and_its_libraries_are_not_taken_for_each_other(archive):
    first, second = (library_at(archive / path.relative_to(OPERATORS.parent)) for path in (LIBRARY, KAFKA_LIBRARY))
    assert (hasattr(first, "dagkit_beginning"), hasattr(second, "dagkit_beginning")) == (True, False)
    with zipfile.ZipFile(archive) as opened:
        assert opened.read(PLATFORM_FILE).decode() == own_platform()
