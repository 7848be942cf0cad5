"""The table `[cache.results]` of `vesper.toml`: which results are cached, where, and for how long.

Reading it opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.effects.redis_server import RedisAddress, require_redis
from vesper.effects.settings import Table
from vesper.values.node_id import split_node_id


@dataclass(frozen=True, slots=True)
class ResultSettings:
    nodes: tuple[str, ...] = ()
    """Ids, or names without a version for all of them. Other nodes are cached only where `vesper.load` asks for it."""
    ttl: float = 300.0
    max_bytes: int = 64 << 20
    """Limit of the memory of each process."""
    url: str = "memory:"
    prefix: str = "vesper:results:"
    timeout: float = 0.25
    """Seconds in which Redis must answer."""
    wait: float = 5.0
    """Seconds for which a process waits for another that computes the same result; a lock lives as long."""
    shares_sensitive: bool = False
    """True where results of nodes with sensitive inputs go to Redis too."""
    address: RedisAddress | None = None

    def names(self, node_id: str) -> bool:
        """Return whether results of this node are cached."""
        parts = split_node_id(node_id)
        return node_id in self.nodes or (parts is not None and parts[0] in self.nodes)


def read_caching(table: Table) -> ResultSettings:
    """Read `[cache]`. Raises `ConfigError`."""
    results = table.table("results")
    table.done()
    usual = ResultSettings()
    url = results.text("url", usual.url)
    address = None
    if url != "memory:":
        address = RedisAddress.from_table(results, url)
        require_redis(f"{results.where}.url")
    found = ResultSettings(
        results.texts("nodes", ()),
        results.seconds("ttl", usual.ttl),
        results.size("max_bytes", usual.max_bytes),
        url,
        results.text("prefix", usual.prefix),
        results.seconds("timeout", usual.timeout),
        results.seconds("wait", usual.wait),
        results.boolean("shares_sensitive", False),
        address,
    )
    results.done()
    if not 0.001 <= found.ttl <= 366 * 86_400:
        raise results.error("ttl", "a result is kept for a millisecond at least and for a year at most")
    if not 0.001 <= found.timeout <= 60 or not 0.001 <= found.wait <= 3600:
        raise results.error(
            "timeout", "`timeout` is a minute at most, `wait` an hour at most, both above a millisecond"
        )
    if not found.prefix:
        raise results.error("prefix", "a prefix keeps results apart from all else: it is not empty")
    return found
