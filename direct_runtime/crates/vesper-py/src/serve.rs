//! Serving by HTTP: the bindings of `vesper-serve`.

pub(crate) mod exchange;
#[allow(unsafe_code, reason = "takes over the descriptor of a listening socket")]
pub(crate) mod server;
