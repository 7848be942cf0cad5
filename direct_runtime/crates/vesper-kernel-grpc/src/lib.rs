//! Serves the kernel by gRPC: services, health, reflection, authentication, shutdown.

mod answers;
mod codec;
mod credentials;
mod metrics;
mod server;
mod services;
pub mod settings;
mod streams;
mod traces;

pub use server::{Running, ServeError, serve};
