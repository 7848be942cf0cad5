"""What the calls of these tests refer to: processes in every state, services with workers, subscribers, questions."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from tests.support.waiting import eventually
from tests.support.work.reflected import Answers, Json, Reflected, RequestQueue

PACKAGE = "vesper.kernel.v1"
WORKER = "the-worker"
HOUR_US = 3_600_000_000
USER_LIMIT = 5
"""Requests of a user in an hour, in these kernels."""

_NUMBERS = itertools.count(1)


class World:
    """Makes things in a kernel by the RPCs that it knows by reflection. Each has a new name."""

    def __init__(self, kernel: Reflected) -> None:
        self.kernel = kernel
        self._streams: list[Answers] = []
        self._queues: list[RequestQueue] = []

    def do(self, rpc: str, request: Json) -> Json:
        """Call an RPC that has to succeed."""
        return self.kernel.call(f"{PACKAGE}.{rpc}", request).answer

    def close(self) -> None:
        """End all streams, and wait until the kernel has noticed."""
        for queue in self._queues:
            queue.close()
        for stream in self._streams:
            stream.cancel()
        eventually(lambda: self.subscribers() == 0)

    def name(self, what: str = "n") -> str:
        return f"{what}-{next(_NUMBERS)}"

    def sequence(self) -> int:
        """Return the number of the last change of the log."""
        return int(self.do("KernelService/GetSystemStatus", {}).get("last_sequence", 0))

    # Processes.

    def new(self, **more: Any) -> str:
        return str(self.do("KernelService/CreateProcess", more)["process"]["pid"])

    def taken(self) -> str:
        """Return the name of a request that has a process."""
        name = self.name("request")
        self.new(request_id=name)
        return name

    def ready(self) -> str:
        return str(self.do("KernelService/Submit", {})["process"]["pid"])

    def running(self) -> str:
        pid = self.ready()
        self.do("KernelService/TransitionState", {"pid": pid, "state": "PROCESS_STATE_RUNNING"})
        return pid

    def ended(self) -> str:
        pid = self.new()
        self.do("KernelService/TerminateProcess", {"pid": pid})
        return pid

    def exhausted(self) -> str:
        """Return a process that has used more than its quota."""
        pid = self.new(quota={"max_llm_calls": 0})
        self.do("KernelService/RecordUsage", {"pid": pid, "usage": {"llm_calls": 1}})
        return pid

    def busy_user(self) -> str:
        """Return a user whose rate limit refuses further requests."""
        user = self.name("user")
        for _ in range(USER_LIMIT):
            self.do("KernelService/CheckRateLimit", {"user_id": user, "record": True})
        return user

    # Questions.

    def interrupt(self, kind: str = "INTERRUPT_KIND_CONFIRMATION") -> str:
        request = {"pid": self.running(), "kind": kind}
        return str(self.do("InterruptService/CreateInterrupt", request)["interrupt"]["interrupt_id"])

    def resolved(self) -> str:
        interrupt = self.interrupt()
        request = {"interrupt_id": interrupt, "response": {"value_json": "true"}}
        self.do("InterruptService/ResolveInterrupt", request)
        return interrupt

    # Pipelines.

    def pipeline(self, **stage: Any) -> Json:
        first = {"name": "first", "agent": "node", "service": "desk-without-workers", **stage}
        return {"name": "two", "agents": [first, {**first, "name": "second", "routes": []}]}

    def session(self) -> str:
        pid = self.ready()
        request = {"pid": pid, "pipeline": self.pipeline(routes=[{"targets": ["second"]}])}
        self.do("OrchestrationService/InitializeSession", request)
        return pid

    def step(self) -> Json:
        """Return process, worker and step of an instruction."""
        pid = self.session()
        request = {"pid": pid, "worker": WORKER, "lease_us": HOUR_US}
        return {
            "pid": pid,
            "worker": WORKER,
            "step_id": self.do("OrchestrationService/GetNextInstruction", request)["step_id"],
        }

    def reported(self) -> Json:
        """Return the request that has reported a result."""
        step = self.step()
        result = {"step_id": step.pop("step_id"), "output_json": "1"}
        request = {**step, "result": result}
        self.do("OrchestrationService/ReportAgentResult", request)
        return request

    def ended_session(self) -> str:
        pid = self.session()
        self.do("OrchestrationService/TerminateSession", {"pid": pid})
        return pid

    def envelope(self) -> str:
        return str(self.do("EngineService/CreateEnvelope", {})["envelope_id"])

    # Services and workers.

    def service(self, **more: Any) -> str:
        name = self.name("service")
        given = {"name": name, "type": "SERVICE_TYPE_WORKER", "max_concurrent": 2, **more}
        self.do("RegistryService/RegisterService", {"service": given})
        return name

    def loaded(self, load: int = 1) -> str:
        """Return a service with requests under way; it takes two."""
        name = self.service()
        for _ in range(load):
            self.do("RegistryService/AcquireSlot", {"name": name})
        return name

    def worked(self, *, is_failing: bool = False, **more: Any) -> str:
        """Return a service with a worker, which answers everything at once."""
        service = self.service(**more)
        requests = RequestQueue()
        requests.put({"start": {"service": service, "worker": self.name("worker"), "max_concurrent": 2}})
        stream = self.kernel.start(f"{PACKAGE}.RegistryService/Work", requests)
        self._streams.append(stream)
        self._queues.append(requests)
        threading.Thread(target=perform, args=(stream, requests, is_failing), daemon=True).start()
        eventually(lambda: self.workers_of(service) == 1)
        return service

    def workers_of(self, service: str) -> int:
        services = self.do("RegistryService/ListServices", {}).get("services", [])
        (found,) = (each for each in services if each["name"] == service)
        return int(found.get("workers", 0))

    def inference(self, *, is_failing: bool = False) -> str:
        """Return a model that a worker performs."""
        model = self.name("model")
        self.worked(type="SERVICE_TYPE_INFERENCE", capabilities=[model], is_failing=is_failing)
        return model

    def idle_model(self) -> str:
        """Return a model whose service has no worker."""
        model = self.name("model")
        self.service(type="SERVICE_TYPE_INFERENCE", capabilities=[model])
        return model

    def busy_worker(self) -> Json:
        """Return the start of a worker whose name has a stream."""
        start = {"service": self.service(), "worker": self.name("worker"), "max_concurrent": 1}
        requests = RequestQueue()
        requests.put({"start": start})
        self._streams.append(self.kernel.start(f"{PACKAGE}.RegistryService/Work", requests))
        self._queues.append(requests)
        eventually(lambda: self.workers_of(str(start["service"])) == 1)
        return start

    # Messages.

    def subscribe(self, **request: Any) -> Answers:
        """Open a stream of messages; it is open when this returns."""
        probe = self.name("probe")
        given = request | {"topics": [*request.get("topics", []), probe]}
        stream = self.kernel.start(f"{PACKAGE}.CommBusService/Subscribe", [given])
        self._streams.append(stream)
        eventually(lambda: self.do("CommBusService/Publish", {"topic": probe}).get("receivers") == "1")
        assert next(iter(stream))["topic"] == probe
        return stream

    def subscribers(self) -> int:
        return int(self.do("KernelService/GetSystemStatus", {})["bus"].get("subscribers", 0))

    def listened(self, **more: Any) -> str:
        """Return a topic that is also the name of its only subscriber, which never replies."""
        topic = self.name("topic")
        self.subscribe(topics=[topic], name=topic, **more)
        return topic

    def replied(self) -> str:
        """Return a topic whose subscriber replies to queries."""
        topic = self.name("topic")
        stream = self.subscribe(topics=[topic])

        def reply() -> None:
            with ends_by_test():
                message = next(iter(stream))
                answer = {"query_id": message["query_id"], "responder": "test"}
                result = self.kernel.call(f"{PACKAGE}.CommBusService/Reply", answer)
                assert result.code in ("OK", "NOT_FOUND")  # a test may withdraw the query

        threading.Thread(target=reply, daemon=True).start()
        return topic

    def kept(self) -> Json:
        """Return the subscription of a group for which a message waits."""
        topic = self.name("topic")
        request: Json = {"topics": [topic], "group": topic, "acknowledges": True}
        self.subscribe(**request).cancel()
        self.do("CommBusService/Publish", {"topic": topic})
        return request

    def open_query(self) -> str:
        """Return the id of a query that waits for its reply."""
        topic = self.name("topic")
        stream = self.subscribe(topics=[topic])
        self._streams.append(self.kernel.start(f"{PACKAGE}.CommBusService/Query", [{"topic": topic}]))
        return str(next(iter(stream))["query_id"])

    def delivered(self, *, acknowledges: bool) -> Json:
        """Return a request that acknowledges a message that was delivered."""
        topic = self.name("topic")
        stream = self.subscribe(topics=[topic], acknowledges=acknowledges)
        self.do("CommBusService/Publish", {"topic": topic})
        message = next(iter(stream))
        return {"subscription_id": message["subscription_id"], "message_ids": [message["message_id"]]}

    # All of it.

    def facts(self, *, only: frozenset[str] | None = None) -> Json:
        """Return processes, questions and services as a client sees them, without load; `only` are some processes."""
        found: Json = {}
        pids = [each["pid"] for each in self._pages("KernelService/ListProcesses", "processes")]
        for pid in pids if only is None else sorted(only):
            found[pid] = self.do("KernelService/GetRequestStatus", {"pid": pid})
            found[pid]["remaining"].pop("time_remaining_us", None)
            session = self.kernel.call(f"{PACKAGE}.OrchestrationService/GetSessionState", {"pid": pid})
            found[pid]["session"] = session.answers if session.code == "OK" else session.code
        for each in self._pages("InterruptService/ListInterrupts", "interrupts"):
            if only is None or each["pid"] in only:
                found[each["interrupt_id"]] = each
        if only is None:
            services = self.do("RegistryService/ListServices", {}).get("services", [])
            found["services"] = [
                {name: value for name, value in each.items() if name not in ("workers", "current_load")}
                for each in services
            ]
        return found

    def _pages(self, rpc: str, member: str) -> list[Json]:
        found: list[Json] = []
        token = ""
        while True:
            page = self.do(rpc, {"page_size": 1000, "page_token": token})
            found += page.get(member, [])
            token = page.get("next_page_token", "")
            if not token:
                return found


def perform(stream: Answers, requests: RequestQueue, is_failing: bool) -> None:
    """Answer the work of a stream until the kernel or the test ends it."""
    results: Json = {
        "request": {"response": {}},
        "inference": {"output_json": "1"},
        "step": {"agent": {"output_json": "1"}},
    }
    with ends_by_test():
        for work in stream:
            (kind,) = (each for each in results if each in work)
            result = {"error": "planned"} if is_failing else results[kind]
            requests.put({"result": {"work_id": work["work_id"], **result}})


@contextmanager
def ends_by_test() -> Iterator[None]:
    """Let a thread end when the test withdraws its stream or ends the kernel."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code().name not in ("CANCELLED", "UNAVAILABLE"):
            raise
