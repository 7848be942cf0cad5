//! A small client of Redis: RESP2 over TCP, TLS or a socket file, with one time for each call.
//!
//! Commands of one call are sent together, and their replies come in order. Connections are kept for the next call.
//! A reply is bounded in length, depth and time, whatever the server sends.

mod address;
mod client;
mod connection;
mod frames;
mod tls;

pub use address::{Address, InvalidAddress};
pub use client::Client;
pub use frames::{Reply, refusal_class};

/// Error of a call. The class has the name that the client of Python gives it; the message may hold an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RespError {
    pub class: &'static str,
    pub message: String,
}

impl RespError {
    fn connection(message: impl Into<String>) -> Self {
        Self {
            class: "ConnectionError",
            message: message.into(),
        }
    }

    fn timeout(message: impl Into<String>) -> Self {
        Self {
            class: "TimeoutError",
            message: message.into(),
        }
    }

    /// Returns true where the connection broke, so that a new one may serve.
    fn is_broken_connection(&self) -> bool {
        self.class == "ConnectionError"
    }
}

/// Part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<'a> {
    Text(&'a str),
    Number(i64),
}
