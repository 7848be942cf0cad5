"""RPCs as attributes of clients: the table declares each once, and the client decides how it is called.

On `Client` an RPC is a function, on `AsyncClient` a coroutine function; streams are iterators that can be cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, overload

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from vesper.kernel.client import AsyncClient, Client

_R = TypeVar("_R", bound="Message")
_A = TypeVar("_A", bound="Message")
_R_contra = TypeVar("_R_contra", contravariant=True)
_A_co = TypeVar("_A_co", covariant=True)


class Stream(Protocol[_A_co]):
    """Answers of the kernel as they come."""

    def __iter__(self) -> Iterator[_A_co]: ...
    def __next__(self) -> _A_co: ...
    def cancel(self) -> None:
        """End the stream; iteration stops."""


class AsyncStream(Protocol[_A_co]):
    """Answers of the kernel as they come, for coroutines."""

    def __aiter__(self) -> AsyncIterator[_A_co]: ...
    async def __anext__(self) -> _A_co: ...
    def cancel(self) -> None:
        """End the stream; iteration stops."""


class UnaryCall(Protocol[_R_contra, _A_co]):
    def __call__(self, request: _R_contra, *, timeout: float | None = None) -> _A_co: ...


class AsyncUnaryCall(Protocol[_R_contra, _A_co]):
    def __call__(self, request: _R_contra, *, timeout: float | None = None) -> Awaitable[_A_co]: ...


class StreamCall(Protocol[_R_contra, _A_co]):
    def __call__(self, request: _R_contra, *, timeout: float | None = None) -> Stream[_A_co]: ...


class AsyncStreamCall(Protocol[_R_contra, _A_co]):
    def __call__(self, request: _R_contra, *, timeout: float | None = None) -> AsyncStream[_A_co]: ...


class Rpc(Generic[_R, _A]):
    """An RPC: its path and its messages."""

    def __init__(self, path: str, request: type[_R], answer: type[_A]) -> None:
        self.path = f"/vesper.kernel.v1.{path}"
        self.request = request
        self.answer = answer
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _bound_to(self, client: Client | AsyncClient | None) -> Any:
        if client is None:
            return self
        # The attribute of the instance hides this one: a call is made once for each client.
        call = client.__dict__[self._name] = client._call(self)
        return call


class Unary(Rpc[_R, _A]):
    """One request, one answer."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: type) -> UnaryCall[_R, _A]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> AsyncUnaryCall[_R, _A]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> object:
        return self._bound_to(client)


class ServerStream(Rpc[_R, _A]):
    """One request, many answers."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: type) -> StreamCall[_R, _A]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> AsyncStreamCall[_R, _A]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> object:
        return self._bound_to(client)


class BothStream(Rpc[_R, _A]):
    """Many requests, many answers."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: type) -> StreamCall[Iterable[_R], _A]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> AsyncStreamCall[AsyncIterable[_R], _A]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> object:
        return self._bound_to(client)
