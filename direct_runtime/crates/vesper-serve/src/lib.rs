//! Serves nodes by HTTP: requests, answers, authentication, sockets.

mod answer;
mod exchange;
mod server;

pub use answer::{Answer, Refusal, RefusalKind};
pub use exchange::{Actor, Builtin, Call, Endpoint, Exchange, Head, Peer, Routed, TableError, Trace, Via};
pub use server::{
    AccessRow, Engine, Epoch, Facts, NativeNode, Pending, Server, Settings, SpanRow, TlsSettings,
};
