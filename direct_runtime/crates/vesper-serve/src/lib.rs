//! Serves nodes by HTTP: requests, answers, authentication, sockets.

mod answer;
mod exchange;

pub use answer::{Answer, Refusal, RefusalKind};
pub use exchange::{Actor, Builtin, Call, Endpoint, Exchange, Head, Peer, Routed, TableError, Trace, Via};
