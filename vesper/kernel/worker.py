"""A worker of the kernel: holds the stream `Work`, runs steps and requests in threads, reports their results.

A stream that breaks is opened again: the kernel gives unfinished steps out once more, and their keys find the runs.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from vesper.host.background import Repeating
from vesper.host.host import HostClosed
from vesper.kernel import v1
from vesper.kernel.answers import carry_answers
from vesper.kernel.client import Client
from vesper.kernel.errors import KernelError
from vesper.kernel.steps import Abandoned, inputs_of, outcome_of, perform_step

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host
    from vesper.kernel.calls import Stream

HEARTBEAT_SECONDS = 15.0
"""A quarter of the lease that a stream has."""
_ANSWERS_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 2.0
_SERVICE_LIMIT = 10_000
"""Requests of a service that this worker is the first to register."""
_FATAL = ("UNAUTHENTICATED", "PERMISSION_DENIED", "INVALID_ARGUMENT", "UNIMPLEMENTED")
_log = logging.getLogger("vesper.kernel")


class Worker:
    """Nodes of this process as a service of a kernel."""

    def __init__(self, client: Client, host: Host, nodes: Sequence[Node], service: str, threads: int = 16) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        """Its name in the kernel."""
        self._client = client
        self._host = host
        self._service = service
        self._threads = threads
        self._nodes = {each.id: each for each in nodes}
        for each in sorted(nodes, key=lambda node: node.version):
            self._nodes[each.name] = each
        self._stopping = threading.Event()
        self._sent: queue.SimpleQueue[v1.WorkRequest | None] = queue.SimpleQueue()
        self._stream: Stream[v1.WorkResponse] | None = None
        self._changed = threading.Condition()
        self._running = 0

    def run(self, grace: float = 10.0) -> None:
        """Work until `stop`; finish what is under way then, at most `grace` seconds.

        Raises `KernelError` for a kernel that refuses the worker.
        """
        self._host.start()
        beats = [
            Repeating("vesper-kernel-heartbeat", HEARTBEAT_SECONDS, self._beat),
            Repeating("vesper-kernel-answers", _ANSWERS_SECONDS, self._carry_answers),
        ]
        for each in beats:
            each.start()
        drainer = threading.Thread(target=self._drain, args=(grace,), name="vesper-kernel-drain", daemon=True)
        drainer.start()
        try:
            with ThreadPoolExecutor(self._threads, thread_name_prefix="vesper-kernel") as pool:
                try:
                    self._work(pool)
                finally:
                    self._stopping.set()
        finally:
            for each in beats:
                each.stop()
            drainer.join(grace)

    def stop(self) -> None:
        """Take no more work and let `run` return; may be called by a signal handler."""
        self._stopping.set()

    # -- the stream -------------------------------------------------------------------------------

    def _work(self, pool: ThreadPoolExecutor) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            try:
                self._register()
                self._sent = queue.SimpleQueue()
                start = v1.WorkerStart(service=self._service, worker=self.name, max_concurrent=self._threads)
                self._sent.put(v1.WorkRequest(start=start))
                self._stream = self._client.work(_until_none(self._sent))
                _log.info("working as %s of the service %s", self.name, self._service)
                for work in self._stream:
                    pause = _FIRST_PAUSE_SECONDS
                    self._take(pool, work)
            except KernelError as error:
                if error.code in _FATAL:
                    raise
                if not self._stopping.is_set():
                    _log.warning("the kernel at %s: %s; trying again", self._client.address, error)
            self._stopping.wait(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    def _register(self) -> None:
        """Register the service, or add these nodes to what it can do."""
        found = self._client.list_services(v1.ListServicesRequest()).services
        known = next((each for each in found if each.name == self._service), None)
        own = sorted(self._nodes)
        if known is not None and set(own) <= set(known.capabilities):
            return
        info = v1.ServiceInfo(
            name=self._service,
            type=v1.ServiceType.SERVICE_TYPE_WORKER if known is None else known.type,
            version="" if known is None else known.version,
            capabilities=sorted({*own, *(() if known is None else known.capabilities)}),
            max_concurrent=_SERVICE_LIMIT if known is None else known.max_concurrent,
            status=v1.ServiceStatus.SERVICE_STATUS_HEALTHY if known is None else known.status,
            metadata={} if known is None else known.metadata,
        )
        self._client.register_service(v1.RegisterServiceRequest(service=info))

    def _beat(self) -> None:
        self._sent.put(v1.WorkRequest(heartbeat=v1.WorkerHeartbeat()))

    def _carry_answers(self) -> None:
        try:
            carry_answers(self._client, self._host.journal)
        except KernelError as error:
            _log.debug("answers are not carried to the kernel: %s", error)

    def _drain(self, grace: float) -> None:
        """Wait for the work under way, then end the stream; the kernel gives the rest to others."""
        self._stopping.wait()
        with self._changed:
            self._changed.wait_for(lambda: self._running == 0, grace)
        self._sent.put(None)

    # -- work -------------------------------------------------------------------------------------

    def _take(self, pool: ThreadPoolExecutor, work: v1.WorkResponse) -> None:
        if self._stopping.is_set():
            return  # it goes back when the stream ends
        with self._changed:
            self._running += 1
        pool.submit(self._perform, work, self._sent)

    def _perform(self, work: v1.WorkResponse, sent: queue.SimpleQueue[v1.WorkRequest | None]) -> None:
        try:
            result = self._result(work)
            result.work_id = work.work_id
            sent.put(v1.WorkRequest(result=result))
        except (Abandoned, HostClosed):
            pass  # another worker gets the step
        except Exception as error:  # noqa: BLE001  # it is about this work: the kernel reports it
            _log.exception("work %s failed", work.work_id)
            failed = f"{type(error).__name__}: {self._host.redact(str(error))}"
            sent.put(v1.WorkRequest(result=v1.WorkResult(work_id=work.work_id, error=failed)))
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _result(self, work: v1.WorkResponse) -> v1.WorkResult:
        match work.WhichOneof("work"):
            case "step":
                return v1.WorkResult(agent=self._step(work.step))
            case "request":
                return v1.WorkResult(response=self._request(work.request))
            case "inference":
                return self._inference(work.inference)
            case other:
                return v1.WorkResult(error=f"this worker does not know work of the kind {other}")

    def _step(self, step: v1.Instruction) -> v1.AgentExecutionResult:
        node = self._nodes.get(step.agent_config.agent)
        if node is None:
            failure = v1.AgentFailure(code="unknown_agent", message=self._unknown(step.agent_config.agent))
            return v1.AgentExecutionResult(step_id=step.step_id, failure=failure)
        return perform_step(self._host, node, step, self._stopping)

    def _request(self, request: v1.ServiceRequest) -> v1.ServiceResponse:
        """Run the node that the metadata names as `node` on the envelope, and add its output."""
        name = request.metadata.get("node", "")
        node = self._nodes.get(name)
        if node is None:
            return v1.ServiceResponse(envelope=request.envelope, error=self._unknown(name))
        output, problem = outcome_of(node.run_json(inputs_of(node, request.envelope, v1.AgentConfig())))
        response = v1.ServiceResponse(envelope=request.envelope)
        if problem is None:
            response.envelope.outputs_json[name] = output
        else:
            response.error = ": ".join(problem)
        return response

    def _inference(self, inference: v1.InferenceRequest) -> v1.WorkResult:
        """Run the node with the name of the model."""
        node = self._nodes.get(inference.model)
        if node is None:
            return v1.WorkResult(error=self._unknown(inference.model))
        output, problem = outcome_of(node.run_json(inference.input_json.encode()))
        return v1.WorkResult(output_json=output) if problem is None else v1.WorkResult(error=": ".join(problem))

    def _unknown(self, name: str) -> str:
        return f"this worker has no node {json.dumps(name)}; it has {', '.join(sorted(self._nodes))}"


def _until_none(messages: queue.SimpleQueue[v1.WorkRequest | None]) -> Iterator[v1.WorkRequest]:
    return iter(messages.get, None)
