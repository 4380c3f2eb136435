"""The options of the format "dagkit", checked before any work."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxFiles

from dagkit.errors import RunFailure, did_you_mean
from dagkit.ground.urls import absolute

_INPUT, _READER = "FileSplitterInput", "LineReader"
_OF_BATCHES = ("path", "operator", "verify")
_OF_STREAMS = ("path", "ledger", "input", "reader", "maxfilespertrigger", "maxbytespertrigger")
_OPERATORS = ("input.", "reader.")

PARTITION_BYTES = 64 << 20
"""How much of its input one task reads."""


def options_invalid(problem: str, remedy: str) -> RunFailure:
    """The options of `spark.read` or `spark.readStream` with the format "dagkit" are wrong."""
    return RunFailure(problem, remedy, code="options-invalid")


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What `spark.read` reads."""

    path: str
    """The application's folder."""
    operator: str | None = None
    """The operator whose files are read; None: the only one that writes files."""
    verify: bool = True
    """Whether the ledger is verified first."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What `spark.readStream` reads, and how it keeps track."""

    ledger: str
    """The folder of the ledger that records what was found."""
    input: str = _INPUT
    """The class of the input operator."""
    reader: str = _READER
    """The class of the splittable operator that reads what was found."""
    properties: tuple[tuple[str, str], ...] = ()
    """Properties of both, as keys of the configuration with their values."""
    limit: ReadLimit = field(default_factory=ReadAllAvailable)
    """How much one micro-batch reads at most."""


def batch_options(given: Mapping[str, str]) -> BatchOptions:
    """The options of `spark.read`. Raise `options-invalid` if they are unknown, or name no folder."""
    given = _checked(given, _OF_BATCHES)
    verify = given.get("verify", "true").lower()
    if verify not in ("true", "false"):
        raise options_invalid(f"the option verify is {verify!r}", "set it to true or false")
    return BatchOptions(
        absolute(_required(given, "path", "load(path) of the application's folder")),
        given.get("operator"),
        verify == "true",
    )


def stream_options(given: Mapping[str, str]) -> StreamOptions:
    """The options of `spark.readStream`. Raise `options-invalid` if they are unknown or contradict each other."""
    given = _checked(given, _OF_STREAMS, _OPERATORS)
    limits = [name for name in ("maxfilespertrigger", "maxbytespertrigger") if name in given]
    if len(limits) == 2:
        raise options_invalid("maxFilesPerTrigger and maxBytesPerTrigger are both set", "set one of them")
    properties = {
        f"dt.operator.{name.partition('.')[0].capitalize()}.prop.{name.partition('.')[2]}": value
        for name, value in given.items()
        if name.startswith(_OPERATORS)
    }
    if "path" in given:
        properties.setdefault("dt.operator.Input.prop.scanner.files", absolute(given["path"]))
    return StreamOptions(
        absolute(_required(given, "ledger", 'option("ledger", path) of a folder that this query alone uses')),
        given.get("input", _INPUT),
        given.get("reader", _READER),
        tuple(sorted(properties.items())),
        _limit(limits[0], given[limits[0]]) if limits else ReadAllAvailable(),
    )


def _limit(name: str, value: str) -> ReadLimit:
    if not value.isdigit() or not int(value):
        raise options_invalid(f"the option {name} is {value!r}", "set it to a whole number above 0")
    return ReadMaxFiles(int(value)) if name == "maxfilespertrigger" else ReadMaxBytes(int(value))


def _required(given: Mapping[str, str], name: str, remedy: str) -> str:
    if not given.get(name):
        raise options_invalid(f"the option {name} is missing", f"add {remedy}")
    return given[name]


def _checked(given: Mapping[str, str], known: tuple[str, ...], beginnings: tuple[str, ...] = ()) -> Mapping[str, str]:
    """The options with their names in lower case, as Spark compares them."""
    options = {name.lower(): value for name, value in given.items()}
    for name in options:
        if name not in known and not any(map(name.startswith, beginnings)):
            raise options_invalid(f"there is no option {name}", did_you_mean(name, known))
    return options
