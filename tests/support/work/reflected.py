"""A client of a gRPC server that knows its services by reflection alone: no generated code, no `.proto` file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

VERSIONS = ("v1", "v1alpha")
PATIENCE_SECONDS = 30.0
_LOCAL_CHANNEL = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))
Json = dict[str, Any]


@dataclass
class Result:
    """How a call ended, with all that was answered before."""

    code: str
    message: str = ""
    answers: list[Json] = field(default_factory=list)

    @property
    def answer(self) -> Json:
        """Return the only answer of a call that succeeded."""
        assert self.code == "OK", f"{self.code}: {self.message}"
        (only,) = self.answers
        return only


class Reflected:
    """Calls the RPCs of a server. Requests and answers are JSON forms with the names of the protos."""

    def __init__(self, address: str, version: str = "v1") -> None:
        """Read the descriptors of all services by this version of the reflection protocol."""
        self.address = address
        self.channel = grpc.insecure_channel(address, _LOCAL_CHANNEL)
        self._reflection = f"grpc.reflection.{version}"
        self._own = _reflection_messages(self._reflection)
        self._pool = DescriptorPool()
        self._known: set[str] = set()
        self.services = tuple(self._list_services())
        self.methods: dict[str, MethodDescriptor] = {}
        for service in self.services:
            self._add_files(file_containing_symbol=service)
            for method in self._pool.FindServiceByName(service).methods:
                self.methods[f"{service}/{method.name}"] = method

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def call(self, name: str, request: Json | bytes, *, timeout: float = PATIENCE_SECONDS, limit: int = 1) -> Result:
        """Call an RPC; of a stream of answers, take at most `limit`. Bytes are sent as they are."""
        return self.exchange(name, [request], timeout=timeout, limit=limit)

    def exchange(self, name: str, requests: Iterable[Json | bytes], *, timeout: float, limit: int) -> Result:
        """Call an RPC with a stream of requests, or with the only one."""
        started = self.start(name, requests, timeout=timeout)
        result = Result("OK")
        try:
            for answer in started:
                result.answers.append(answer)
                if len(result.answers) >= limit:
                    started.cancel()
                    break
        except grpc.RpcError as error:
            result.code, result.message = _code_of(error)
        return result

    def start(self, name: str, requests: Iterable[Json | bytes], *, timeout: float | None = None) -> Answers:
        """Start a call, and return the stream of its answers."""
        method = self.methods[name]
        kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        make = getattr(self.channel, kind)(f"/{name}")
        encoded: Any = (self.encode(method.input_type, each) for each in requests)
        given = encoded if method.client_streaming else next(encoded)
        return Answers(make, given, self._read(method.output_type), method.server_streaming, timeout)

    def encode(self, of: Descriptor, request: Json | bytes) -> bytes:
        """Return the bytes of a message."""
        if isinstance(request, bytes):
            return request
        message = json_format.ParseDict(request, GetMessageClass(of)())
        return bytes(message.SerializeToString())

    def _read(self, of: Descriptor) -> Any:
        kind = GetMessageClass(of)
        return lambda data: json_format.MessageToDict(kind.FromString(data), preserving_proto_field_name=True)

    def _ask(self, **request: str) -> Json:
        path = f"/{self._reflection}.ServerReflection/ServerReflectionInfo"
        make: Any = self.channel.stream_stream(path)
        asked = self._own[0](**request).SerializeToString()
        (data,) = make(iter([asked]), timeout=PATIENCE_SECONDS)
        answer = self._own[1].FromString(data)
        assert not answer.HasField("error_response"), answer.error_response.error_message
        return {"files": list(answer.file_descriptor_response.file_descriptor_proto), "answer": answer}

    def _list_services(self) -> list[str]:
        return [each.name for each in self._ask(list_services="*")["answer"].list_services_response.service]

    def _add_files(self, **request: str) -> None:
        for data in self._ask(**request)["files"]:
            file = FileDescriptorProto.FromString(data)
            if file.name in self._known:
                continue
            self._known.add(file.name)
            for needed in file.dependency:
                if needed not in self._known:
                    self._add_files(file_by_filename=needed)
            self._pool.Add(file)


class Answers:
    """The answers of a call. Waiting for one raises the status of a call that failed."""

    def __init__(self, make: Any, given: Any, read: Any, is_stream: bool, timeout: float | None) -> None:
        self._read = read
        self._is_stream = is_stream
        self._given = make(given, timeout=timeout) if is_stream else make.future(given, timeout=timeout)

    def __iter__(self) -> Iterator[Json]:
        if self._is_stream:
            yield from map(self._read, self._given)
        else:
            yield self._read(self._given.result())

    def cancel(self) -> None:
        """Withdraw the call."""
        self._given.cancel()


class RequestQueue:
    """Requests of a stream that are decided while it runs."""

    def __init__(self) -> None:
        self._waiting: list[Json] = []
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, request: Json) -> None:
        with self._changed:
            self._waiting.append(request)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Json]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                request = self._waiting.pop(0)
            yield request


def _code_of(error: Any) -> tuple[str, str]:
    return error.code().name, error.details() or ""


def _reflection_messages(package: str) -> tuple[Any, Any]:
    """Return request and response of the reflection protocol: the only messages that a client has to know."""
    text, message = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")

    def add(name: str, *fields: tuple[str, int, int, bool, str], oneof: str = "") -> None:
        made = DescriptorProto(name=name)
        if oneof:
            made.oneof_decl.add(name=oneof)
        for each, number, kind, is_many, of in fields:
            label = FieldDescriptorProto.LABEL_REPEATED if is_many else FieldDescriptorProto.LABEL_OPTIONAL
            found = made.field.add(name=each, number=number, type=kind, label=label)
            if of:
                found.type_name = f".{package}.{of}"
            if oneof:
                found.oneof_index = 0
        file.message_type.append(made)

    names = (("file_by_filename", 3), ("file_containing_symbol", 4), ("list_services", 7))
    request = [(name, number, int(text), False, "") for name, number in names]
    add("ServerReflectionRequest", *request, oneof="message_request")
    add("FileDescriptorResponse", ("file_descriptor_proto", 1, int(FieldDescriptorProto.TYPE_BYTES), True, ""))
    add("ServiceResponse", ("name", 1, int(text), False, ""))
    add("ListServiceResponse", ("service", 1, int(message), True, "ServiceResponse"))
    add("ErrorResponse", ("error_message", 2, int(text), False, ""))
    add(
        "ServerReflectionResponse",
        ("file_descriptor_response", 4, int(message), False, "FileDescriptorResponse"),
        ("list_services_response", 6, int(message), False, "ListServiceResponse"),
        ("error_response", 7, int(message), False, "ErrorResponse"),
        oneof="message_response",
    )
    pool = DescriptorPool()
    pool.Add(file)
    kinds = ("ServerReflectionRequest", "ServerReflectionResponse")
    request_type, response_type = (GetMessageClass(pool.FindMessageTypeByName(f"{package}.{each}")) for each in kinds)
    return request_type, response_type
