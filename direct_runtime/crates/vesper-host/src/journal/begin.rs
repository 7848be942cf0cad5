//! The journal over any store, and the beginning of its runs.

use std::fmt;
use std::sync::Arc;

use vesper_ir::json::quote;

use crate::journal::batch::{Birth, Definition};
use crate::journal::keyed::key_digest;
use crate::journal::limits::Limits;
use crate::journal::lines::first_hash;
use crate::journal::moving::plain_entry;
use crate::journal::owner::this_owner;
use crate::journal::run::{RunHead, StoreRun};
use crate::journal::sealing::{KeyRing, RunKey};
use crate::journal::store::Store;
use crate::journal::{ErrorKind, JournalError, Kind, Run};
use crate::sources::{Sources, kill_point};

/// A journal: a store with the keys, limits and owner of this process.
pub struct StoreJournal {
    pub store: Arc<dyn Store>,
    pub keys: Arc<KeyRing>,
    pub limits: Limits,
    pub sources: Arc<dyn Sources>,
    owner: Option<String>,
}

impl fmt::Debug for StoreJournal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreJournal({})", self.store.name())
    }
}

/// What a run starts with. Texts of values are typed JSON.
#[derive(Clone, Debug)]
pub struct Beginning<'a> {
    pub execution: &'a str,
    pub definition: Arc<Definition>,
    /// Typed JSON of the mapping of inputs.
    pub inputs: &'a str,
    /// Typed JSON of the start time.
    pub now: &'a str,
    pub engine: &'a str,
    /// True: every body of this run is encrypted under a key of its own.
    pub is_sensitive: bool,
    /// True: commits are synced to the disk; False: a loss of power may take the last ones.
    pub writes: bool,
    /// True where effects are part of the caller's transaction: no other process can finish the run.
    pub is_joined: bool,
    /// Typed JSON of the mapping of texts that describes the caller; its `key` has one run.
    pub context: Option<&'a str>,
}

impl StoreJournal {
    /// Creates a journal; `owner` names this process in leases, by default in a way that shows whether it lives.
    pub fn new(
        store: Arc<dyn Store>,
        keys: Arc<KeyRing>,
        limits: Limits,
        sources: Arc<dyn Sources>,
        owner: Option<String>,
    ) -> Result<Self, JournalError> {
        let length = owner.as_ref().map_or(1, |owner| owner.chars().count());
        if !(1..=500).contains(&length) {
            return Err(JournalError::new(
                ErrorKind::Journal,
                "the owner of runs has a name of 1 to 500 signs",
            ));
        }
        Ok(Self {
            store,
            keys,
            limits,
            sources,
            owner,
        })
    }

    /// Returns the name under which this process owns runs; another one after a fork.
    pub fn owner(&self) -> String {
        self.owner.clone().unwrap_or_else(|| this_owner().to_string())
    }

    /// Returns a new run with its START appended; nothing is written before the first commit.
    pub fn begin(&self, beginning: &Beginning<'_>) -> Result<StoreRun, JournalError> {
        self.begin_in(beginning, None)
    }

    /// Begins a run, or one that is to be queued: it belongs to no process.
    pub(super) fn begin_in(
        &self,
        beginning: &Beginning<'_>,
        queue: Option<&str>,
    ) -> Result<StoreRun, JournalError> {
        let execution = beginning.execution;
        check_id(execution)?;
        let now = self.sources.now_us();
        let key = beginning
            .is_sensitive
            .then(|| RunKey::random(execution, self.sources.clone()))
            .transpose()?;
        let wrapped = key
            .as_ref()
            .map(|key| self.keys.wrap(key, execution))
            .transpose()?;
        let head = RunHead {
            execution: execution.into(),
            fence: 1,
            row: 0,
            seq: 0,
            last_hash: first_hash(execution),
            is_synced: beginning.writes,
            is_queued: false,
        };
        let birth = Birth {
            definition: beginning.definition.clone(),
            owner: queue.map_or_else(|| self.owner(), |_| String::new()),
            engine: beginning.engine.to_owned(),
            started_us: now,
            is_joined: beginning.is_joined,
            is_sensitive: beginning.is_sensitive,
            is_synced: beginning.writes,
            key: wrapped,
            run_key: beginning
                .context
                .and_then(|context| key_digest(&beginning.definition.node_id, context)),
        };
        let run = StoreRun::new(self, head, key, Some(birth), Vec::new());
        run.append(&plain_entry(Kind::Start, now, &start_body(beginning, queue)))?;
        kill_point("begin.appended");
        Ok(run)
    }
}

/// Returns the body of START, its names in code-point order.
fn start_body(beginning: &Beginning<'_>, queue: Option<&str>) -> String {
    let mut body = String::with_capacity(beginning.inputs.len() + 256);
    body.push('{');
    if let Some(context) = beginning.context {
        body.push_str("\"context\":");
        body.push_str(context);
        body.push(',');
    }
    body.push_str("\"engine\":");
    quote(beginning.engine, &mut body);
    body.push_str(",\"inputs\":");
    body.push_str(beginning.inputs);
    body.push_str(",\"node_id\":");
    quote(&beginning.definition.node_id, &mut body);
    body.push_str(",\"now\":");
    body.push_str(beginning.now);
    if let Some(queue) = queue {
        body.push_str(",\"queue\":");
        quote(queue, &mut body);
    }
    body.push_str(",\"semantic_hash\":");
    quote(&beginning.definition.semantic_hash, &mut body);
    body.push('}');
    body
}

fn check_id(execution: &str) -> Result<(), JournalError> {
    if (1..=200).contains(&execution.chars().count()) && execution.chars().all(is_printable) {
        return Ok(());
    }
    let start: String = execution.chars().take(40).collect();
    Err(JournalError::new(
        ErrorKind::Journal,
        format!(
            "'{}' cannot be the id of an execution: 1 to 200 printable signs",
            start.escape_debug()
        ),
    ))
}

/// Returns whether a character has a visible form, or is a blank.
fn is_printable(each: char) -> bool {
    // Behind another character a combining mark is not escaped for being one.
    matches!(each, '"' | '\'' | '\\') || format!("a{each}").escape_debug().count() == 2
}
