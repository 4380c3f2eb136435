"""Apache Apex in local mode: a Java process launches the same application again for each question."""

import subprocess
from functools import cache
from pathlib import Path

from bench.ingesting.maven import APEX, java
from bench.ingesting.sizes import BLOCK_SIZE, cores

_OPTIONS = (
    "-XX:+DisplayVMOutputToStderr",
    "-XX:+UseParallelGC",
    "-XX:+UseBiasedLocking",
    "-Dfile.encoding=ISO-8859-1",  # its reader of lines counts characters as bytes
    f"-Dlog4j.configuration={(APEX.pom.parent / 'log4j.properties').as_uri()}",
)
_OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.nio", "sun.nio.ch")
"""The packages of Java whose private parts Apex uses; since Java 9, this must be allowed."""


@cache
def _apex() -> "subprocess.Popen[str]":
    """The process of `Serve.java`, which ends with ours, when its stdin is closed."""
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED] if java().major > 8 else []
    command = [java().command, *_OPTIONS, *opened, f"-Djava.io.tmpdir={Path.cwd()}", "-cp", APEX.classpath, "Serve"]
    return subprocess.Popen(  # noqa: S603 - our own class
        [*command, str(BLOCK_SIZE), str(cores())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def local(source: Path, target: Path) -> float:
    """Launch the application; the seconds from its first record to its last, by its own clock."""
    process = _apex()
    assert process.stdin is not None, "paths go to its stdin"
    assert process.stdout is not None, "answers come from its stdout"
    process.stdin.write(f"{source}\t{target}\t{target.parent / 'application'}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"Apache Apex ended with {process.wait()} instead of an answer; its stderr is above")
    return float(answer)
