"""Services: descriptions, health and load."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.proofs.machines.messages import registry_pb2
from tests.proofs.machines.reference.limits import MAX_AT_A_TIME, check_name
from tests.proofs.machines.reference.refusals import EXHAUSTED, INVALID, NOT_FOUND, PRECONDITION, demand, refuse

HEALTHY, DEGRADED, UNHEALTHY, UNKNOWN = 1, 2, 3, 4
TYPES = ("unspecified", "flow", "worker", "vertical", "inference")
STATUSES = ("unspecified", "healthy", "degraded", "unhealthy", "unknown")


@dataclass
class Registry:
    services: dict[str, registry_pb2.ServiceInfo] = field(default_factory=dict)

    def get(self, name: str) -> registry_pb2.ServiceInfo:
        if name not in self.services:
            refuse(NOT_FOUND if name else INVALID, f"no service {name}")
        return self.services[name]

    def register(self, given: registry_pb2.ServiceInfo, now_us: int) -> registry_pb2.ServiceInfo:
        demand(given.name != "", "a service has a name")
        demand(given.type in range(1, 5), "a service has a type")
        demand(given.status in range(5), "there is no such status")
        demand(1 <= given.max_concurrent <= MAX_AT_A_TIME, "max_concurrent is out of bounds")
        demand(not (given.current_load or given.last_health_check_us or given.workers), "these are the kernel's")
        check_name(given.name, "name")
        info = registry_pb2.ServiceInfo()
        info.CopyFrom(given)
        if info.status:
            info.last_health_check_us = now_us
        else:
            info.status = registry_pb2.SERVICE_STATUS_UNKNOWN
        if given.name in self.services:
            info.current_load = self.services[given.name].current_load
        self.services[given.name] = info
        return info

    def unregister(self, name: str) -> None:
        demand(self.get(name).current_load == 0, "it has load", PRECONDITION)
        del self.services[name]

    def set_health(self, name: str, status: registry_pb2.ServiceStatus, now_us: int) -> registry_pb2.ServiceInfo:
        demand(status in range(1, 5), "there is no such status")
        info = self.get(name)
        info.status, info.last_health_check_us = status, now_us
        return info

    @staticmethod
    def capacity(info: registry_pb2.ServiceInfo) -> int:
        """Return the requests at a time: half of them, at least one, while it is degraded."""
        if info.status == DEGRADED:
            return max(1, info.max_concurrent // 2)
        return 0 if info.status == UNHEALTHY else info.max_concurrent

    def can_accept(self, name: str) -> bool:
        info = self.get(name)
        return info.current_load < self.capacity(info)

    def acquire(self, name: str) -> registry_pb2.ServiceInfo:
        demand(self.can_accept(name), "it has no place", EXHAUSTED)
        info = self.get(name)
        info.current_load += 1
        return info

    def release(self, name: str) -> registry_pb2.ServiceInfo:
        info = self.get(name)
        demand(info.current_load > 0, "nothing is under way", PRECONDITION)
        info.current_load -= 1
        return info

    def by_type(self) -> Counter[str]:
        return Counter(TYPES[info.type] for info in self.services.values())

    def stats(self) -> registry_pb2.GetServiceStatsResponse:
        infos = self.services.values()
        return registry_pb2.GetServiceStatsResponse(
            total_services=len(infos),
            by_type=self.by_type(),
            by_status=Counter(STATUSES[info.status] for info in infos),
            total_load=sum(info.current_load for info in infos),
            total_capacity=sum(self.capacity(info) for info in infos),
        )
