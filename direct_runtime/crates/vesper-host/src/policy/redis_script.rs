//! A script that Redis runs in one step.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::state::hex;
use crate::resp::{Client, Reply, RespError, Word, refusal_class};

/// A script, and the hash under which Redis keeps it.
#[derive(Debug)]
pub(super) struct Script {
    text: String,
    hash: String,
}

impl Script {
    pub(super) fn new(text: String) -> Self {
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        let hash = hex(hash.as_ref());
        Self { text, hash }
    }

    /// Runs the script, which may be sent twice; the first `keys` words are its keys.
    pub(super) async fn run(
        &self,
        client: &Client,
        keys: usize,
        words: Vec<Word<'_>>,
    ) -> Result<Reply, RespError> {
        let count = i64::try_from(keys).unwrap_or_default();
        let mut command = vec![Word::Text("EVALSHA"), Word::Text(&self.hash), Word::Number(count)];
        command.extend(words);
        let mut commands = [command];
        loop {
            let reply = client.run_repeatable(&commands).await?.pop();
            let reply = reply.unwrap_or(Reply::Null);
            let Reply::Refused(refusal) = reply else {
                return Ok(reply);
            };
            let class = refusal_class(&refusal);
            match commands.first_mut().map(Vec::as_mut_slice) {
                // A server that was started anew does not know the script.
                Some([verb @ Word::Text("EVALSHA"), body, ..]) if class == "NoScriptError" => {
                    *verb = Word::Text("EVAL");
                    *body = Word::Text(&self.text);
                }
                _ => {
                    return Err(RespError {
                        class,
                        message: refusal,
                    });
                }
            }
        }
    }
}
