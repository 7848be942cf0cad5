"""Clients of a kernel: `Client` for threads, `AsyncClient` for coroutines.

    with Client("127.0.0.1:7443") as client:
        client.get_system_status(v1.GetSystemStatusRequest()).total_processes

Every RPC of `vesper.kernel.rpcs` is a method that takes its request and `timeout` in seconds. A call without one has
the time of the client; a stream has no limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Self

import grpc
from grpc import aio

from vesper.kernel.calls import BothStream, Rpc, ServerStream, Unary
from vesper.kernel.errors import KernelError
from vesper.kernel.rpcs import Rpcs
from vesper.kernel.tokens import Token
from vesper.observe.context import TRACEPARENT
from vesper.observe.spans import current_parent
from vesper.storage.file_access import read_regular

DEFAULT_ADDRESS = "127.0.0.1:7443"
DEFAULT_TIMEOUT_SECONDS = 30.0
_MAX_CERTIFICATES_BYTES = 1 << 20
_TIMED_OUT = ("CANCELLED", "Timeout expired")
"""Code and message of the gRPC library of the kernel for a deadline that has passed."""
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_Metadata = tuple[tuple[str, str], ...]
_OPTIONS = (
    # Other kernels at the same address share no connection, and a broken one is opened again soon.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.max_receive_message_length", -1),
)


class _Connection(Rpcs):
    """What both clients share: where the kernel is, and how it knows the caller."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: Token | None = None,
        tls: bool = False,
        ca: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """Prepare a client; the first call connects.

        `tls` verifies the kernel by the certificates of the system, `ca` by those of a file in PEM form. A token, or
        what a function returns for each call, is sent to other machines by TLS only. `certificate` and `key`, files
        in PEM form, are shown to a kernel that asks for a certificate.
        """
        is_safe = tls or ca is not None
        if token is not None and not is_safe and address.rpartition(":")[0] not in _LOOPBACK_HOSTS:
            raise ValueError(f"the token would reach {address} in plain text: use `tls=True` or `ca=FILE`")
        if (certificate is None) != (key is None) or (certificate is not None and not is_safe):
            raise ValueError("a certificate needs its key, and `tls=True` or `ca=FILE`")
        self.address = address
        self._timeout = timeout
        self._token = token
        roots, private, chain = (
            None if each is None else read_regular(each, _MAX_CERTIFICATES_BYTES) for each in (ca, key, certificate)
        )
        credentials = grpc.ssl_channel_credentials(roots, private, chain) if is_safe else None
        self._channel = self._open(address, credentials)

    def _open(self, address: str, credentials: grpc.ChannelCredentials | None) -> Any:
        raise NotImplementedError

    def _metadata(self) -> _Metadata:
        found = []
        if self._token is not None:
            token = self._token if isinstance(self._token, str) else self._token()
            found.append(("authorization", f"Bearer {token}"))
        parent = current_parent()
        if parent is not None:
            found.append((TRACEPARENT, str(parent)))
        return tuple(found)


class Client(_Connection):
    """A client for threads; any number may share it."""

    def _open(self, address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
        if credentials is None:
            return grpc.insecure_channel(address, _OPTIONS)
        return grpc.secure_channel(address, credentials, _OPTIONS)

    def close(self) -> None:
        """End all calls and streams."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, rpc: Rpc[Any, Any]) -> Callable[..., Any]:
        made = _maker(self._channel, rpc)

        def call(request: Any, *, timeout: float | None = None) -> Any:
            if not isinstance(rpc, Unary):
                return _Answers(made(request, timeout=timeout, metadata=self._metadata()))
            try:
                return made(request, timeout=self._timeout if timeout is None else timeout, metadata=self._metadata())
            except grpc.RpcError as error:
                raise _error(error) from None

        return call


class AsyncClient(_Connection):
    """A client for the coroutines of one event loop."""

    def _open(self, address: str, credentials: grpc.ChannelCredentials | None) -> aio.Channel:
        if credentials is None:
            return aio.insecure_channel(address, _OPTIONS)
        return aio.secure_channel(address, credentials, _OPTIONS)

    async def close(self) -> None:
        """End all calls and streams."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _call(self, rpc: Rpc[Any, Any]) -> Callable[..., Any]:
        made = _maker(self._channel, rpc)

        def stream(request: Any, *, timeout: float | None = None) -> Any:
            return _AsyncAnswers(made(request, timeout=timeout, metadata=self._metadata()))

        async def call(request: Any, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # as of `Client`
            try:
                limit = self._timeout if timeout is None else timeout
                return await made(request, timeout=limit, metadata=self._metadata())
            except grpc.RpcError as error:
                raise _error(error) from None

        return call if isinstance(rpc, Unary) else stream


class _Answers:
    def __init__(self, call: Any) -> None:
        self._answers = call
        self._is_cancelled = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._answers)
        except grpc.RpcError as error:
            if self._is_cancelled:
                raise StopIteration from None
            raise _error(error) from None

    def cancel(self) -> None:
        self._is_cancelled = True
        self._answers.cancel()


class _AsyncAnswers:
    def __init__(self, call: Any) -> None:
        self._call = call
        self._answers = aiter(call)
        self._is_cancelled = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return await anext(self._answers)
        except grpc.RpcError as error:
            raise _error(error) from None
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            raise StopAsyncIteration from None

    def cancel(self) -> None:
        self._is_cancelled = True
        self._call.cancel()


def _maker(channel: Any, rpc: Rpc[Any, Any]) -> Any:
    kinds = {Unary: "unary_unary", ServerStream: "unary_stream", BothStream: "stream_stream"}
    make = getattr(channel, kinds[type(rpc)])
    return make(rpc.path, request_serializer=rpc.request.SerializeToString, response_deserializer=rpc.answer.FromString)


def _error(error: Any) -> KernelError:
    code, details = error.code().name, error.details() or ""
    if (code, details) == _TIMED_OUT:  # the kernel noticed the deadline before this client did
        code = "DEADLINE_EXCEEDED"
    return KernelError(code, details)
