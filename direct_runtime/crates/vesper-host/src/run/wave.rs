//! A wave: requests that an execution makes together, performed side by side on one thread.
//!
//! Their INTENTs become durable together, in written order, before any of them is performed. Each RESULT is appended when
//! it comes; the run takes note of them in written order, so no later entry or outcome depends on which came first.

use futures_util::future::join_all;
use vesper_interp::{Completion, Request};

use crate::run::running::{Interruption, Prepared, Running};
use crate::run::settling::{Asked, Open};

/// A request of a wave.
enum Place<'a> {
    Settled(Completion),
    Open(Open<'a>),
    /// It takes the run out of memory, after all others were performed.
    Suspending(Open<'a>),
}

impl Running {
    /// Settles the requests of a wave; returns their completions in written order. In a transaction of the caller they
    /// are performed one after the other.
    pub(super) async fn complete_wave(
        &mut self,
        prepared: &Prepared,
        wave: Vec<Request>,
    ) -> Result<Vec<(u64, Completion)>, Interruption> {
        let mut completions = Vec::with_capacity(wave.len());
        if wave.len() == 1 || prepared.is_joined {
            for request in wave {
                completions.push((request.id, self.complete(prepared, request).await?));
            }
            return Ok(completions);
        }
        let mut places = Vec::with_capacity(wave.len());
        for request in wave {
            places.push((request.id, self.place(prepared, request).await?));
        }
        let mut has_intent = false;
        for (_, place) in &mut places {
            if let Place::Open(open) = place {
                match self.append_intent(open)? {
                    Some(unsent) => *place = Place::Settled(unsent),
                    None => has_intent |= open.is_intended(),
                }
            }
        }
        if has_intent {
            self.commit_intents()?;
        }
        let open = places.iter().filter_map(|(_, place)| match place {
            Place::Open(open) => Some(self.perform_open(open)),
            Place::Settled(_) | Place::Suspending(_) => None,
        });
        let mut performed = join_all(open).await.into_iter();
        // Of every result is taken note: the audit has what happened, whatever ends the run.
        let mut interruption = None;
        let mut suspending = Vec::new();
        for (id, place) in places {
            let completion = match place {
                Place::Settled(completion) => Ok(completion),
                Place::Open(open) => match performed.next() {
                    Some(performed) => self.adopt(&open, performed),
                    None => continue,
                },
                Place::Suspending(open) => {
                    suspending.push((id, open));
                    continue;
                }
            };
            match completion {
                Ok(completion) => completions.push((id, completion)),
                Err(error) => interruption = interruption.or(Some(error)),
            }
        }
        if let Some(error) = interruption {
            return Err(error);
        }
        for (id, open) in suspending {
            completions.push((id, self.suspend(&open.request)?));
        }
        completions.sort_unstable_by_key(|(id, _)| *id);
        Ok(completions)
    }

    /// Prepares a request. What became of one that an earlier process sent is found out here, before anything new is
    /// performed: a run in doubt performs nothing more.
    async fn place<'a>(
        &mut self,
        prepared: &'a Prepared,
        request: Request,
    ) -> Result<Place<'a>, Interruption> {
        let open = match self.prepare(prepared, request)? {
            Asked::Settled(completion) => return Ok(Place::Settled(completion)),
            Asked::Open(open) => open,
        };
        if self.suspends_at(&open) {
            return Ok(Place::Suspending(open));
        }
        Ok(match self.find_out(&open).await? {
            Some(completion) => Place::Settled(completion),
            None => Place::Open(open),
        })
    }
}
