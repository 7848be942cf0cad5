//! Serves nodes by HTTP: requests, answers, authentication, sockets.

mod answer;
mod auth;
mod call;
mod exchange;
mod inputs;
mod numbers;
mod problem;
mod routes;
mod server;
mod table;
mod text;
mod trace;

pub use answer::{Answer, Refusal, RefusalKind};
pub use call::Call;
pub use exchange::{Actor, Builtin, Endpoint, Exchange, Head, Peer, Routed};
/// The types of heads and answers.
pub use http;
pub use server::{
    AccessRow, Engine, Epoch, Facts, NativeNode, Pending, Server, Settings, SpanRow, TlsSettings,
};
pub use table::TableError;
pub use trace::Trace;
