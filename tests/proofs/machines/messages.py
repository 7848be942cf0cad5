"""Messages of the kernel and of its log, for the reference and for the campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from vesper.kernel.v1 import (
    engine_pb2,
    envelope_pb2,
    interrupt_pb2,
    kernel_pb2,
    orchestration_pb2,
    process_pb2,
    registry_pb2,
)

__all__ = ["engine_pb2", "envelope_pb2", "interrupt_pb2", "kernel_pb2", "log_message", "orchestration_pb2"]
__all__ += ["process_pb2", "registry_pb2"]

ROOT = Path(__file__).parents[3]
CRATE = ROOT / "direct_runtime" / "crates" / "vesper-kernel"
_LOG = "vesper/kernel/log/v1/log.proto"


def _load_log() -> None:
    """Add the messages of the log, which have no generated Python, to the pool of the others."""
    files = descriptor_pb2.FileDescriptorSet.FromString((CRATE / "src" / "proto" / "descriptors.binpb").read_bytes())
    (log,) = (each for each in files.file if each.name == _LOG)
    descriptor_pool.Default().AddSerializedFile(log.SerializeToString())


_load_log()


def log_message(name: str) -> Any:
    """Return the class of a message of the log, such as `Change`."""
    found = descriptor_pool.Default().FindMessageTypeByName(f"vesper.kernel.log.v1.{name}")
    return message_factory.GetMessageClass(found)
