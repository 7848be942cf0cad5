//! Blocking sessions with a Postgres server, on the caller's thread.
//!
//! tokio-postgres speaks the protocol over a `Socket` whose reads block. No reactor and no other thread takes part: a
//! session waits in the system call of its caller, and a fork leaves nothing behind but the descriptor.

pub mod dsn;
pub mod password_file;
pub mod pool;
pub mod session;
pub mod socket;
pub mod tls;
