"""The Python of Spark's workers: whether it is of the version that launches."""

import subprocess
import sys

from dagkit.errors import RunFailure
from dagkit.ground.clock import patient

_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_WITHIN_SECONDS = 20.0
_OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


class PythonMismatched(RunFailure):
    """The Python of the workers is of another version than that of the driver, or does not start."""

    code = "python-mismatched"

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            f"unset PYSPARK_PYTHON, or set it to a Python {_OWN} that every worker has, such as {sys.executable}",
        )


def check_python(program: str) -> None:
    """Start a Python of this machine. Raise PythonMismatched if it is not of the version of this one."""
    if program == sys.executable:
        return
    try:
        asked = subprocess.run(  # noqa: S603 - the user names it for the workers
            [program, "-c", _ASK], capture_output=True, text=True, check=True, timeout=patient(_WITHIN_SECONDS)
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise PythonMismatched(f"the Python of Spark's workers, {program}, does not start: {reason}") from error
    theirs = asked.stdout.strip()
    if theirs != _OWN:
        raise PythonMismatched(
            f"Spark's workers run {program}, which is Python {theirs}, but dagkit runs Python {_OWN}"
        )
