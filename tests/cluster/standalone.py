"""A standalone Spark cluster: a master and workers with one core each, as processes of this machine."""

import os
import queue
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from dagkit.backends.spark.session.java import ensure_java
from dagkit.backends.spark.session.session_settings import spark_home
from tests.java import quick_java
from tests.patience import join, within
from tests.processes import running

EXECUTOR = "CoarseGrainedExecutorBackend"
WITHIN_SECONDS = within(120)
"""How long a process may take to print what a test waits for. Only a failing test waits as long."""


class Spoken:
    """A process whose lines a test waits for."""

    def __init__(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [*with_us, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.lines: list[str] = []
        self._unread: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.append(line)
                self._unread.put(line)
        self._unread.put(None)

    def until(self, pattern: str) -> re.Match[str]:
        """The match in the next line that has one."""
        problem = "ended"
        try:
            while (line := self._unread.get(timeout=WITHIN_SECONDS)) is not None:
                if found := re.search(pattern, line):
                    return found
        except queue.Empty:
            problem = f"went on for {WITHIN_SECONDS:.0f} s"
        raise AssertionError(f"{problem} without {pattern!r}:\n" + "".join(self.lines[-40:]))

    def send(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it without notice, and wait until it has ended."""
        self.process.kill()
        self.process.wait(within(600))
        self.process.stdin.close()
        join(self._reader, seconds=600)


class Standalone:
    """The cluster. Each of its processes can be killed and started again."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.master = self._master(port=0)
        self.url = self.master.until(r"Starting Spark master at (spark://\S+)")[1]
        self.master.until("New state: ALIVE")
        self.workers = [self._worker(number) for number in range(workers)]
        for worker in self.workers:
            worker.until("Successfully registered with master")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for executor in self.executors():
            os.kill(executor, signal.SIGKILL)
        for each in (*self.workers, self.master):
            each.kill()

    def executors(self) -> list[int]:
        """The processes of the executors that run."""
        return [found for worker in self.workers for found in running(EXECUTOR, worker.process.pid)]

    def restart_master(self) -> None:
        """Kill the master, and start another one with its port, which recovers what it knew."""
        self.master.kill()
        self.master = self._master(port=int(self.url.rpartition(":")[2]))
        self.master.until("Recovery complete")

    def restart_worker(self, number: int) -> None:
        """Kill a worker, and start another one in its place."""
        self.workers[number].kill()
        self.workers[number] = self._worker(number)
        self.workers[number].until("Successfully registered with master")

    def decommission_worker(self, number: int) -> None:
        """Announce the end of a worker to Spark, as a machine does that is taken away soon."""
        self.workers[number].process.send_signal(signal.SIGPWR)
        self.master.until("Decommissioning worker")

    def _master(self, port: int) -> Spoken:
        recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={self.folder / 'recovery'}"
        words = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        return self._started("master.Master", words, SPARK_MASTER_OPTS=recovery)

    def _worker(self, number: int) -> Spoken:
        work = str(self.folder / f"worker-{number}")
        words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", work]
        return self._started("worker.Worker", [*words, self.url], SPARK_WORKER_OPTS="-Dspark.decommission.enabled=true")

    def _started(self, name: str, words: list[str], **options: str) -> Spoken:
        environment = {
            "JAVA_HOME": str(ensure_java()),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": quick_java(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **options,
        }
        program = str(spark_home() / "bin" / "spark-class")
        return Spoken([program, f"org.apache.spark.deploy.{name}", *words], environment)
