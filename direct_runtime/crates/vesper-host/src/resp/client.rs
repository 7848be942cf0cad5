//! A client with a pool of connections.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::address::Address;
use super::connection::Connection;
use super::frames::Reply;
use super::{RespError, Word};
use crate::per_process::PerProcess;

/// Connections that wait for the next call; others are closed after use.
const MAX_IDLE: usize = 32;

/// Sends commands to one server. Any number of tasks may use it, and a forked process.
#[derive(Debug)]
pub struct Client {
    address: Address,
    timeout: Duration,
    idle: PerProcess<Mutex<Vec<Connection>>>,
}

impl Client {
    /// Creates a client that connects at first use. `timeout` bounds connecting, and each call.
    pub fn new(address: Address, timeout: Duration) -> Self {
        Self {
            address,
            timeout,
            idle: PerProcess::default(),
        }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends commands together; returns their replies in order. Over a connection that broke while it was idle, or
    /// breaks now, they are sent a second time: only for commands that may be repeated.
    pub async fn run_repeatable(&self, commands: &[Vec<Word<'_>>]) -> Result<Vec<Reply>, RespError> {
        match self.attempt(self.connection().await?, commands).await {
            Err(error) if error.is_broken_connection() => {
                self.attempt(self.new_connection().await?, commands).await
            }
            done => done,
        }
    }

    /// Closes the connections that wait. The client stays usable.
    pub fn close(&self) {
        self.idle_connections(Vec::clear);
    }

    async fn attempt(
        &self,
        mut connection: Connection,
        commands: &[Vec<Word<'_>>],
    ) -> Result<Vec<Reply>, RespError> {
        let replies = self
            .within(connection.run(commands), "Timeout reading from socket")
            .await?;
        self.idle_connections(|idle| {
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
        });
        Ok(replies)
    }

    async fn connection(&self) -> Result<Connection, RespError> {
        while let Some(mut connection) = self.idle_connections(Vec::pop) {
            if connection.is_quiet().await {
                return Ok(connection);
            }
        }
        self.new_connection().await
    }

    async fn new_connection(&self) -> Result<Connection, RespError> {
        self.within(Connection::open(&self.address), "Timeout connecting to server")
            .await
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, RespError>>,
        late: &str,
    ) -> Result<T, RespError> {
        timeout(self.timeout, work)
            .await
            .unwrap_or_else(|_| Err(RespError::timeout(late)))
    }

    fn idle_connections<T>(&self, change: impl FnOnce(&mut Vec<Connection>) -> T) -> T {
        change(&mut self.idle.get().lock().unwrap_or_else(PoisonError::into_inner))
    }
}
