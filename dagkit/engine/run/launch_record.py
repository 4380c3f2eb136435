"""The record of a launch, for readers of the application's folder: its plan and its configuration, without secrets.

PATH/launched.json    the record of the last launch
"""

import errno
import fcntl
import itertools
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Literal

from dagkit.compiler import Compilation
from dagkit.engine.program.stored_value import StoredValue
from dagkit.engine.record.run_events import PlanDiffers
from dagkit.engine.record.snapshot import bytes_of
from dagkit.engine.record.status_file import refuse_second, stored_document
from dagkit.errors import RunFailure
from dagkit.graph import Node
from dagkit.ground.urls import is_url, shown
from dagkit.ledger import StoreError
from dagkit.ledger.stores import Store, open_store
from dagkit.plan import diff
from dagkit.plan.configuration_lines import attribute_values, lines_of, property_values
from dagkit.plan.model import Plan

LAUNCHED = "launched.json"

_logger = logging.getLogger(__name__)


class LaunchRecord(StoredValue):
    """One launch."""

    format: Literal["dagkit.launched/1"] = "dagkit.launched/1"
    at: datetime
    version: str
    plan: Plan
    """The plan that the launch began with: the numbers of partitions are those that the last run ended with."""
    written: Plan | None = None
    """The plan as it was written, before a run changed it; None in records of earlier versions."""
    configuration: tuple[dict[str, Any], ...]
    """The keys with their values and sources, as `dagkit config --all --json` prints them."""
    origins: Mapping[str, Mapping[str, str]] | None = None
    """What set the properties and attributes of each operator, as `dagkit explain` prints it; the others have their
    defaults. None in records of versions until November 2026."""

    @classmethod
    def of(cls, compilation: Compilation, resumed: Plan, version: str, at: datetime) -> "LaunchRecord":
        """The record of a launch that begins now with a plan that it resumed."""
        lines = lines_of(compilation.conf, lambda key: compilation.secrets.get(key, False))
        entries = tuple(line.fields() for line in lines)
        origins = {node.name: _origins(node) for node in compilation.graph.nodes}
        return cls(
            at=at, version=version, plan=resumed, written=compilation.plan, configuration=entries, origins=origins
        )

    @property
    def authored(self) -> Plan:
        """The plan without what runs have changed, such as numbers of partitions, if the record has it."""
        return self.written or self.plan

    def write(self, store: Store) -> None:
        """Replace the record of the last launch. If the store fails, log a warning: no run depends on it."""
        try:
            store.replace(LAUNCHED, bytes_of(self))
        except StoreError as error:
            _logger.warning("%s cannot be written now: %s", LAUNCHED, error)


def _origins(node: Node) -> Mapping[str, str]:
    """The origins of the properties and attributes of an operator that do not have their default."""
    properties = property_values(node).items()
    return {name: value.origin for name, value in (*properties, *attribute_values(node.attributes)) if value.is_given}


def last_launch(store: Store) -> LaunchRecord | None:
    """The record of the last launch; None if it was made by a dagkit that wrote none, or by one that writes another."""
    return stored_document(store, LAUNCHED, LaunchRecord)


def differences(store: Store, plan: Plan, window_id: int) -> PlanDiffers | None:
    """The changes of a plan since the last launch; None if there are none, or if no window is committed."""
    before = last_launch(store) if window_id else None
    changes = diff(before.authored, plan) if before is not None else []
    return PlanDiffers(window_id, before.at, tuple(map(str, changes))) if before is not None and changes else None


def keep_aside(place: str, now: datetime) -> str | None:
    """Rename an application's folder, so that the next launch begins again. Return its new path; None if it is empty.

    Raise ValueError if it lies in an object store, which renames no folders.
    """
    if is_url(place):
        raise ValueError(f"{shown(place)} is not a folder of this machine, and cannot be renamed: give another path")
    if not Path(place).exists() or not any(Path(place).iterdir()):
        return None
    kept = kept_place(place, now)
    rename_to_keep(place, kept)
    return kept


def rename_to_keep(place: str, kept: str) -> None:
    """Rename an application's folder. Raise `folder-refused` if it cannot be, as the root of a mounted filesystem."""
    try:
        Path(place).rename(kept)
    except OSError as error:
        raise RunFailure(
            f"{shown(place)} cannot be renamed to keep the earlier run: {error.strerror or error}; nothing was changed",
            f"let this user write into {shown(str(Path(place).parent))}; if a filesystem is mounted at the folder "
            "itself, give a folder below it, with --path or APPLICATION_PATH",
            code="folder-refused",
        ) from error


def kept_place(place: str, now: datetime) -> str:
    """The path under which an application's folder is kept: another one than those that are there."""
    second, moment = f"{place}.{now:%Y%m%dT%H%M%S}", f"{place}.{now:%Y%m%dT%H%M%S.%f}"
    names = itertools.chain((second, moment), (f"{moment}-{number}" for number in itertools.count(2)))
    return next(name for name in names if not os.path.lexists(name))


def is_kept(name: str) -> bool:
    """Whether a folder has a name that `kept_place` gave: it holds an earlier run."""
    return re.search(r"\.\d{8}T\d{6}(\.\d{6}(-\d+)?)?$", name) is not None


_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of filesystems that cannot lock a folder, such as NFS."""


@contextmanager
def claimed(place: str, *, take_over: bool, fresh: bool) -> Iterator[str | None]:
    """Within the block, no other launch of this machine begins in the folder: it waits, and then reads the status.

    If `fresh`, the folder of the earlier run is renamed; yield its new path. Raise driver-runs if another process runs
    the application, unless this one is to `take_over`.
    """
    with _locked(place):
        # Under the lock, which the caller holds until its own status is written: of two launches at one moment, neither
        # would find the other.
        if not take_over:
            refuse_second(open_store(place), datetime.now(UTC))
        kept = keep_aside(place, datetime.now(UTC)) if fresh else None
        if kept is None:
            yield None
            return
    with claimed(place, take_over=take_over, fresh=False):  # of the new folder, which another launch may make first
        yield kept


@contextmanager
def _locked(place: str) -> Iterator[None]:
    """Hold the lock of the folder of this name, which is made if there is none."""
    folder = None if is_url(place) else _lock(Path(place))
    try:
        yield
    finally:
        if folder is not None:
            os.close(folder)


def _is_no_folder(path: Path) -> bool:
    """Whether a path is that of a file, or of a link to nothing."""
    try:
        return not S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return path.is_symlink()


def _lock(path: Path) -> int | None:
    """A descriptor of the folder, with its lock; None if it cannot be locked, or not be made, which is found later."""
    while True:
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder = os.open(path, os.O_RDONLY)
        except (FileExistsError, FileNotFoundError):
            if _is_no_folder(path):
                return None
            continue  # another launch has renamed it meanwhile
        except OSError:
            return None
        try:
            # of the folder itself, so that the lock goes with it when a restart or --fresh renames it
            fcntl.flock(folder, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(folder)):
                return folder
            os.close(folder)  # it was renamed meanwhile
        except OSError as error:
            os.close(folder)
            if error.errno in _NO_LOCKS:
                return None
            raise
