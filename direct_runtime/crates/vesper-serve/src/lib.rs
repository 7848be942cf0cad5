//! Serves nodes by HTTP: requests, answers, authentication, sockets.

mod answer;
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
mod webhook;

pub use answer::{Answer, Refusal, RefusalKind};
pub use call::Call;
pub use exchange::{Builtin, Endpoint, Exchange, Head, Peer, Routed};
/// The types of heads and answers.
pub use http;
pub use server::{
    AccessRow, Engine, Epoch, Facts, NativeNode, Parts, Pending, Server, Settings, SpanRow, TlsSettings,
};
pub use trace::Trace;
pub use vesper_auth::{Actor, TableError};
pub use webhook::{Signature, Webhook};
