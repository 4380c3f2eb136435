"""A real YARN for tests: `yarn.sh` runs it, and it ends with the process that started it."""

from pathlib import Path

from dagkit.backends.spark.session.session_settings import spark_home
from tests.java import quick_java
from tests.processes import running
from tests.services.scripted import ScriptedServer


class Yarn(ScriptedServer):
    """YARN with one NodeManager, and Spark's settings for it."""

    script = Path(__file__).with_name("yarn.sh")
    is_fetched = True

    def environment(self, executors: int) -> dict[str, str]:
        """Variables with which Spark finds this YARN, and its settings for small and quick containers."""
        conf = self.folder / "conf"
        quick = quick_java()
        own = {
            "spark.yarn.jars": f"local:{spark_home() / 'jars'}/*",  # else each launch copies them
            "spark.yarn.stagingDir": f"file:{self.folder / 'staging'}",
            "spark.yarn.scheduler.heartbeat.interval-ms": "200",
            "spark.yarn.report.interval": "200ms",
            "spark.yarn.maxAppAttempts": "1",
            "spark.yarn.am.memory": "512m",
            "spark.yarn.am.extraJavaOptions": quick,
            "spark.executor.extraJavaOptions": quick,
            "spark.executor.memory": "512m",
            "spark.executor.instances": str(executors),
        }
        (conf / "spark-defaults.conf").write_text("".join(f"{name}={value}\n" for name, value in own.items()))
        return {
            "HADOOP_CONF_DIR": str(conf),
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": "",  # Spark passes it on to containers
        }

    def processes(self, program: str) -> list[int]:
        """The processes in containers whose command line contains the name of a program."""
        return [*running(program, self._process.pid)]

    def logs(self) -> str:
        return "".join(log.read_text() for log in sorted((self.folder / "logs").glob("*/*/stdout")))
