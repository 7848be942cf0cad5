"""A Kafka broker of one process, from the jars of `pom.xml`; needs Java and Maven."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.proofs.robustness.proof import STATE
from tests.support.servers import Server, free_port

_JARS = STATE / "kafka" / "jars"
_CLUSTER = "vesperproofvesperprf01"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
num.partitions=8
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""


class Kafka(Server):
    """A broker on a port of loopback."""

    def __init__(self) -> None:
        if not (_JARS / ".complete").exists():
            copy = ["mvn", "-q", "-B", "-f", str(Path(__file__).parent / "pom.xml"), "dependency:copy-dependencies"]
            subprocess.run([*copy, f"-DoutputDirectory={_JARS}"], check=True)
            (_JARS / ".complete").touch()
        folder = Path(tempfile.mkdtemp(prefix="vesper-kafka-"))
        self.port = free_port()
        settings = folder / "server.properties"
        settings.write_text(_SETTINGS.format(port=self.port, controller=free_port(), folder=folder))
        java = ["java", "-Xmx512m", "-cp", f"{_JARS}/*"]
        form = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)]
        subprocess.run(form, check=True, capture_output=True)
        super().__init__(folder, [*java, "kafka.Kafka", str(settings)], self._answers)

    @property
    def url(self) -> str:
        return f"kafka://127.0.0.1:{self.port}"

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            client = AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})
            return bool(client.list_topics(timeout=2).brokers)
        except KafkaException:
            return False
