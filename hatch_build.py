"""What is done where dagkit is built: its C is compiled, if there is a compiler; else numpy says the same, slower."""

import ctypes
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("operators/dagkit_operators/native")
SOURCES = tuple(FOLDER / name for name in ("bytewise.c", "json_members.c", "kafka_columns.c"))
FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared")
MISSING = "there is no C compiler: `apt-get install gcc libc6-dev`, then `make clean test`"


class CompileHook(BuildHookInterface[BuilderConfig]):
    """A wheel with compiled code is for the platform that it was built on; one without, for all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="dagkit-")  # gone with the hook, whatever becomes of the build
        for source in SOURCES:
            library, here = Path(self._made.name) / library_of(source), Path(self.root) / FOLDER / library_of(source)
            fault = compile_library(Path(self.root) / source, library)
            if fault:
                self.app.display_warning(f"{source.name} is not compiled, numpy will do: {fault}")
            if version == "editable":
                self._bring(library, here)
            elif not fault:
                build_data["force_include"][str(library)] = here.relative_to(Path(self.root) / "operators").as_posix()
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform_tag()}"

        if version != "editable":
            build_data["force_include"].update(self._examples())

    def _examples(self) -> dict[str, str]:
        """The applications that the wheel ships, without their tests."""
        apps = Path(self.root) / "apps"
        shipped = (path for path in apps.glob("*/*") if path.suffix in (".py", ".xml") and path.stem[:5] != "test_")
        return {str(path): f"dagkit/examples/{path.relative_to(apps).as_posix()}" for path in sorted(shipped)}

    def _bring(self, library: Path, here: Path) -> None:
        """What was compiled, or nothing, is in the very tree; a process that has loaded an older one keeps it."""
        try:
            if library.exists():
                beside = here.with_name(f".{secrets.token_hex(8)}.so")
                shutil.copyfile(library, beside)
                beside.replace(here)
            else:
                here.unlink(missing_ok=True)
        except OSError as error:
            self.app.display_warning(f"{here.name} cannot be put here, numpy will do: {error}")


def library_of(source: Path) -> str:
    """The name of the library that is compiled from a source."""
    return f"lib{source.stem}.so"


def platform_tag() -> str:
    """What wheels with compiled code are for."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def compiler() -> list[str]:
    """The C compiler, as everybody names it."""
    named = os.environ.get("CC", "")
    try:
        return shlex.split(named) or ["cc"]
    except ValueError:  # a quotation mark by itself
        return [named]


def can_compile() -> bool:
    """Whether this is a system whose compiler takes these flags, and has one."""
    return sys.platform in ("linux", "darwin") and shutil.which(compiler()[0]) is not None


def compile_library(source: Path, library: Path, flags: Sequence[str] = ()) -> str | None:
    """The library is there and knows which text it was compiled from; or else why not."""
    if not can_compile():
        return MISSING if sys.platform in ("linux", "darwin") else f"its flags are not for {sys.platform}"
    known = f"-DSOURCE={zlib.crc32(source.read_bytes())}u"
    command = [*compiler(), *FLAGS, *flags, known, "-o", str(library), str(source)]
    try:
        subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)  # noqa: S603 - theirs
        ctypes.CDLL(str(library))  # what cannot be loaded here is for another machine, or nothing at all
    except subprocess.CalledProcessError as error:
        library.unlink(missing_ok=True)
        return f"{error}: {error.stderr.strip()}"
    except OSError as error:
        library.unlink(missing_ok=True)
        return f"{shlex.join(command)}: {error}"
    return None
