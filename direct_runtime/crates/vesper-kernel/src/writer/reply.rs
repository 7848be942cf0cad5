//! Answers to requests, which leave after the commit of what they saw.

use tokio::sync::oneshot;

use super::Core;
use crate::refusal::Refusal;

/// Where an answer goes.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<Result<T, Refusal>>);

impl<T: Send + 'static> Reply<T> {
    pub(super) fn to(caller: oneshot::Sender<Result<T, Refusal>>) -> Self {
        Self(caller)
    }

    /// Answers after the next commit.
    pub fn later(self, core: &mut Core, answer: Result<T, Refusal>) {
        core.answer_later(move |is_durable| {
            let lost = || {
                Err(Refusal::unavailable(
                    "The log of the kernel cannot be written; the change may be lost.",
                ))
            };
            self.now(if is_durable { answer } else { lost() });
        });
    }

    /// Answers at once, for what needs no commit.
    pub fn now(self, answer: Result<T, Refusal>) {
        // The caller may have gone.
        drop(self.0.send(answer));
    }
}
