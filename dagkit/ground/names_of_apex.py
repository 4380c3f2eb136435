"""The counterparts of names of Apex and Malhar that dagkit spells differently: what an import of one reports."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Counterpart(NamedTuple):
    """The counterpart of a class of Apex."""

    names: tuple[str, ...]
    """The names to import instead, from `dagkit` or `dagkit_operators`; empty if nothing needs to be imported."""
    use: str
    """How to write it."""


def hint(name: str) -> str | None:
    """What to write instead of a class of Apex; None if it is none or has the same name here."""
    found = COUNTERPARTS.get(name)
    if found is None:
        return None
    homes: dict[str, list[str]] = {}
    for full in found.names:
        home, _, simple = full.partition(".")
        homes.setdefault(home, []).append(simple)
    imports = "; ".join(f"from {home} import {', '.join(names)}" for home, names in homes.items())
    return f"its counterpart is {found.use}" + (f": write {imports}" if imports else "")


class NamedElsewhere(ImportError):
    """A name was imported that the other library has, or one of Apex with another name here. A note has the import.

    It is no AttributeError: Python drops one that a `from … import` meets, with its notes.
    """

    def __init__(self, name: str, module: str, advice: str) -> None:
        super().__init__(f"cannot import name {name!r} from {module!r}", name=module)
        self.advice = advice
        self.add_note(advice)


def member(of: Any, name: str, default: Any = None) -> Any:
    """What a module or class has under a name, like `getattr`, also if another library or Apex has the name."""
    try:
        return getattr(of, name, default)
    except NamedElsewhere:
        return default


def _is(use: str, *names: str) -> Counterpart:
    return Counterpart(names, use)


_LIBRARY = "dagkit_operators"
_BLOCK_READER = _is("BlockReader", f"{_LIBRARY}.BlockReader")
_BLOCK = _is("Block", "dagkit.Block")
_PARTS = _is("PartWriter", f"{_LIBRARY}.PartWriter")
_COPY = _is("FSSliceWriter and FileMerger, as in apps/file_copy", f"{_LIBRARY}.FSSliceWriter", f"{_LIBRARY}.FileMerger")
_SLICES = _is("FileSplitterInput and FSSliceReader", f"{_LIBRARY}.FileSplitterInput", f"{_LIBRARY}.FSSliceReader")
_METHODS = _is("its methods, which every operator may have, in snake case")
_PORTS_IN, _PORTS_OUT = _is("InputPort", "dagkit.InputPort"), _is("OutputPort", "dagkit.OutputPort")

WINDOW_DATA_MANAGERS: Mapping[str, str] = {
    "WindowDataManager": "ledger",
    "FSWindowDataManager": "ledger",
    "NoopWindowDataManager": "noop",
    "IdempotentStorageManager": "ledger",
    "FSIdempotentStorageManager": "ledger",
    "NoopIdempotentStorageManager": "noop",
}
"""The value of `window_data_manager` that stands for each class. Keys may name the class with its package."""

COUNTERPARTS: Mapping[str, Counterpart] = {
    **{
        name: _is(f"window_data_manager={value!r} of FileSplitterInput") for name, value in WINDOW_DATA_MANAGERS.items()
    },
    "AbstractBlockReader": _BLOCK_READER,
    "AbstractFSBlockReader": _BLOCK_READER,
    "AbstractFSReadAheadLineReader": _is(
        "LineReader, or BlockReader[T] with reader_context=ReadAheadLineReaderContext()",
        f"{_LIBRARY}.LineReader",
        f"{_LIBRARY}.BlockReader",
        f"{_LIBRARY}.ReadAheadLineReaderContext",
    ),
    "AbstractFSLineReader": _is(
        "LineReader, or BlockReader[T], with reader_context=LineReaderContext()",
        f"{_LIBRARY}.LineReader",
        f"{_LIBRARY}.BlockReader",
        f"{_LIBRARY}.LineReaderContext",
    ),
    "FSRecordReader": _is("RecordReader", f"{_LIBRARY}.RecordReader"),
    "FSRecordReaderModule": _is(
        "FileSplitterInput and RecordReader", f"{_LIBRARY}.FileSplitterInput", f"{_LIBRARY}.RecordReader"
    ),
    "FSInputModule": _SLICES,
    "HDFSInputModule": _SLICES,
    "ReaderRecord": _is("Record", f"{_LIBRARY}.Record"),
    "BlockMetadata": _BLOCK,
    "FileBlockMetadata": _BLOCK,
    "FileSplitter": _is("FileSplitterInput", f"{_LIBRARY}.FileSplitterInput"),
    "TimeBasedDirectoryScanner": _is("DirectoryScanner", f"{_LIBRARY}.DirectoryScanner"),
    "AbstractFileInputOperator": _is(
        "MatchFiles and ReadFiles, or FileSplitterInput and LineReader",
        f"{_LIBRARY}.MatchFiles",
        f"{_LIBRARY}.ReadFiles",
        f"{_LIBRARY}.FileSplitterInput",
        f"{_LIBRARY}.LineReader",
    ),
    "AbstractFileOutputOperator": _is("FileOutput", f"{_LIBRARY}.FileOutput"),
    "AbstractSingleFileOutputOperator": _is("FileOutput", f"{_LIBRARY}.FileOutput"),
    "GenericFileOutputOperator": _PARTS,
    "FSRecordCompactionOperator": _PARTS,
    "OutputMetaData": _is("FinishedPart", f"{_LIBRARY}.FinishedPart"),
    "GZipFilterStreamProvider": _is('compression="gzip" of FileOutput and PartWriter'),
    "FilterStreamCodec": _is('compression="gzip" of FileOutput and PartWriter'),
    "BlockWriter": _COPY,
    "Synchronizer": _COPY,
    "HDFSFileCopyModule": _COPY,
    "AbstractJMSInputOperator": _is("AbstractQueueInput", f"{_LIBRARY}.AbstractQueueInput"),
    "DAG": _is("Dag", "dagkit.Dag"),
    "DAGContext": _is("DagContext", "dagkit.DagContext"),
    "Configuration": _is("Config", "dagkit.Config"),
    "BaseOperator": _is("Operator", "dagkit.Operator"),
    "DefaultInputPort": _PORTS_IN,
    "DefaultOutputPort": _PORTS_OUT,
    "InputPortFieldAnnotation": _is("InputPort(…, optional=True)", "dagkit.InputPort"),
    "OutputPortFieldAnnotation": _is("OutputPort(…, optional=False)", "dagkit.OutputPort"),
    "OperatorAnnotation": _is("the class attribute partitionable"),
    "Stateless": _is("the class attribute stateless"),
    "ApplicationAnnotation": _is("the class attribute name"),
    "ActivationListener": _METHODS,
    "CheckpointListener": _METHODS,
    "IdleTimeHandler": _METHODS,
    "ShutdownException": _is("Shutdown", "dagkit.Shutdown"),
    "ControlTuple": _is("Control", "dagkit.Control"),
    "StatsListenerContext": _is("BatchedOperatorStats.operator", "dagkit.BatchedOperatorStats"),
    "AutoMetric": _is("auto_metric", "dagkit.auto_metric"),
    "SingleMetricAggregator": _is("MetricsAggregator", "dagkit.MetricsAggregator"),
}
"""The counterparts, by the simple names of the classes of Apex. docs/coming-from-apex.md has a row for each."""

PROPERTIES: Mapping[str, str] = {"bufferSize": "chunk_size", "overflowBufferSize": "longest_line"}
"""The properties that have the place of those of Apex whose names are unlike."""

NEEDLESS_PROPERTIES = ("recoveryPath", "statePath", "isRecoveryPathRelativeToAppPath", "isStatePathRelativeToAppPath")
"""Properties of window data managers in Apex: here the ledger keeps what they place."""

FORMER_PROPERTIES: Mapping[str, str] = {"idempotentStorageManager": "window_data_manager"}
"""The properties that Malhar gave another name later. Keys may use both names."""
