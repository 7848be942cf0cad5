//! Persistent state machines: `state_transition` and `state_read`, in tables of a configured database.
//!
//! An entity that nothing has moved is in the initial state of its machine and has no row. A move is one transaction:
//! the receipt, the row under its lock, and a line of history. Of two moves of one entity at once, the second sees the
//! state that the first has left.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use vesper_ir::{Effect, Type, Value};

use crate::database::performer::{Act, Databases, finish};
use crate::database::receipts::{FirstRow, receipt_name};
use crate::database::session::{Answer, Session, SessionError, Table};
use crate::database::statement::Statement;
use crate::database::values::{Cell, Column, Values};
use crate::effect::{Ask, Failure, Pending, Performer};

pub const STATES: Table = Table {
    sqlite: "CREATE TABLE IF NOT EXISTS vesper_states (
  machine TEXT NOT NULL, entity TEXT NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL,
  changed_at TEXT NOT NULL, PRIMARY KEY (machine, entity))",
    postgres: "CREATE TABLE IF NOT EXISTS vesper_states (
  machine TEXT NOT NULL, entity TEXT NOT NULL, state TEXT NOT NULL, version bigint NOT NULL,
  changed_at timestamptz NOT NULL, PRIMARY KEY (machine, entity))",
};
pub const HISTORY: Table = Table {
    sqlite: "CREATE TABLE IF NOT EXISTS vesper_state_history (
  machine TEXT NOT NULL, entity TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at TEXT NOT NULL,
  receipt TEXT NOT NULL PRIMARY KEY)",
    postgres: "CREATE TABLE IF NOT EXISTS vesper_state_history (
  machine TEXT NOT NULL, entity TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at timestamptz NOT NULL,
  receipt TEXT NOT NULL PRIMARY KEY)",
};

static BEGIN: LazyLock<Statement> = LazyLock::new(|| {
    Statement::own(
        "INSERT INTO vesper_states (machine, entity, state, version, changed_at) \
         VALUES (:machine, :entity, :state, 0, :at) ON CONFLICT (machine, entity) DO NOTHING",
    )
});
static LOCK: LazyLock<Statement> = LazyLock::new(|| {
    Statement::own("UPDATE vesper_states SET version = version WHERE machine = :machine AND entity = :entity")
});
static FIND: LazyLock<Statement> = LazyLock::new(|| {
    Statement::own("SELECT state, version FROM vesper_states WHERE machine = :machine AND entity = :entity")
});
static MOVE: LazyLock<Statement> = LazyLock::new(|| {
    Statement::own(
        "UPDATE vesper_states SET state = :state, version = version + 1, changed_at = :at \
         WHERE machine = :machine AND entity = :entity AND version = :version",
    )
});
static NOTE: LazyLock<Statement> = LazyLock::new(|| {
    Statement::own(
        "INSERT INTO vesper_state_history (machine, entity, from_state, to_state, at, receipt) \
         VALUES (:machine, :entity, :before, :after, :at, :receipt)",
    )
});

/// Bytes of an entity's name: an index of Postgres holds little more.
const MAX_ENTITY: &str = "1,000";
const MAX_ENTITY_BYTES: usize = 1_000;

/// The initial states of machines, by name.
#[derive(Debug, Default)]
pub struct Machines(RwLock<HashMap<String, Arc<str>>>);

impl Machines {
    /// Learns the initial state of a machine.
    pub fn know(&self, machine: &str, initial: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(machine.to_owned(), Arc::from(initial));
    }

    fn initial(&self, machine: &str) -> Result<Arc<str>, Failure> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = || Failure::new("unavailable", format!("no node here has the machine `{machine}`"));
        known.get(machine).cloned().ok_or_else(unknown)
    }
}

/// Performer of effects on state machines.
pub struct StateMachines {
    databases: Arc<Databases>,
    /// The name of the database that holds the states.
    database: String,
    machines: Arc<Machines>,
}

impl fmt::Debug for StateMachines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StateMachines({})", self.database)
    }
}

impl StateMachines {
    pub fn new(databases: Arc<Databases>, database: &str, machines: Arc<Machines>) -> Self {
        Self {
            databases,
            database: database.to_owned(),
            machines,
        }
    }

    async fn transition(&self, ask: &Ask<'_>) -> Result<String, SessionError> {
        let step = Move {
            entity: Entity::of(ask)?,
            initial: self.machines.initial(ask.fixed("machine"))?,
            sources: ask
                .fixed("from")
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect(),
            target: Arc::from(ask.fixed("to")),
            receipt: Arc::from(receipt_name(ask)),
            now: self.databases.now_us(),
        };
        match self
            .databases
            .once(&self.database, ask, "unavailable", &step)
            .await
        {
            Err(SessionError::MissingTable(_)) => {}
            result => return result,
        }
        let mut session = self
            .databases
            .session(&self.database, ask, true, "unavailable")
            .await?;
        let result = match session.create(STATES).await {
            Ok(()) => session.create(HISTORY).await,
            failed => failed,
        };
        finish(session, result).await?;
        self.databases
            .once(&self.database, ask, "unavailable", &step)
            .await
    }

    async fn read(&self, ask: &Ask<'_>) -> Result<String, SessionError> {
        let entity = Entity::of(ask)?;
        let initial = self.machines.initial(ask.fixed("machine"))?;
        let mut session = self
            .databases
            .session(&self.database, ask, false, "unavailable")
            .await?;
        let result = entity.find(&mut *session).await;
        let found = match finish(session, result).await {
            Err(SessionError::MissingTable(_)) => None, // nothing has ever moved
            result => result?,
        };
        Ok(found.map_or_else(|| initial.to_string(), |(state, _)| state))
    }
}

/// Returns the state as a member of the node's enum: the machine may have lost it since the entity came into it.
fn known(ask: &Ask<'_>, state: &str) -> Result<Value, Failure> {
    let Type::Enum(states) = &ask.request.result else {
        return Ok(Value::Text(Arc::from(state)));
    };
    states.member(state).map(Value::Member).ok_or_else(|| {
        let machine = ask.fixed("machine");
        let text =
            format!("the entity is in the state `{state}`, which this node's `{machine}` does not have");
        Failure {
            may_have_happened: ask.request.effect == Effect::StateTransition,
            ..Failure::new("unavailable", text)
        }
    })
}

impl Performer for StateMachines {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let state = match ask.request.effect {
                Effect::StateRead => self.read(&ask).await,
                _ => self.transition(&ask).await,
            };
            Ok(known(&ask, &state?)?)
        })
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move {
            let found = self.databases.happened(&self.database, &ask).await?;
            Ok(found.map(|state| known(&ask, &state)).transpose()?)
        })
    }

    /// Does nothing: the connections are those of the databases.
    fn close(&self) {}
}

/// An entity of a machine.
struct Entity {
    machine: Arc<str>,
    name: Arc<str>,
}

impl Entity {
    fn of(ask: &Ask<'_>) -> Result<Self, Failure> {
        let name = match ask.argument("entity").map(|argument| &argument.value) {
            Some(Value::Text(name)) => Arc::clone(name),
            _ => return Err(Failure::new("unavailable", "the name of an entity is a text")),
        };
        if name.len() > MAX_ENTITY_BYTES {
            return Err(Failure::new(
                "unavailable",
                format!("the name of an entity has at most {MAX_ENTITY} bytes"),
            ));
        }
        let machine = Arc::from(ask.fixed("machine"));
        Ok(Self { machine, name })
    }

    /// Returns the parameters of a statement about the entity.
    fn values<const N: usize>(&self, more: [(&str, Column); N]) -> Values {
        let own = [
            ("machine", Column::Text(Arc::clone(&self.machine))),
            ("entity", Column::Text(Arc::clone(&self.name))),
        ];
        own.into_iter()
            .chain(more)
            .map(|(name, value)| (Arc::from(name), value))
            .collect()
    }

    /// Returns the entity's state and version.
    async fn find(&self, session: &mut dyn Session) -> Result<Option<(String, i64)>, SessionError> {
        let mut first = FirstRow::default();
        session.rows(&FIND, &self.values([]), 1, &mut first).await?;
        match first.0.as_deref() {
            None => Ok(None),
            Some([Cell::Text(state), Cell::Integer(version)]) => Ok(Some((state.clone(), *version))),
            Some(_) => Err(Failure::new("unavailable", "`vesper_states` holds no state and version").into()),
        }
    }
}

/// A move of an entity to another state.
struct Move {
    entity: Entity,
    initial: Arc<str>,
    sources: Vec<String>,
    target: Arc<str>,
    receipt: Arc<str>,
    now: i64,
}

impl Act for Move {
    fn act<'a>(&'a self, session: &'a mut dyn Session) -> Answer<'a, String> {
        Box::pin(async move {
            let (entity, machine) = (&self.entity, &self.entity.machine);
            let (text, at) = (
                |text: &str| Column::Text(Arc::from(text)),
                Column::Timestamp(self.now),
            );
            let first = entity.values([("state", text(&self.initial)), ("at", at.clone())]);
            session.change(&BEGIN, &first).await?;
            // No other transaction moves it before this one has ended.
            session.change(&LOCK, &entity.values([])).await?;
            let found = entity.find(session).await?;
            let (before, version) = found.ok_or_else(|| {
                Failure::new("unavailable", format!("an entity of `{machine}` has vanished"))
            })?;
            if !self.sources.contains(&before) {
                let allowed: Vec<String> = self.sources.iter().map(|name| format!("`{name}`")).collect();
                let allowed = allowed.join(", ");
                let text = format!("it is in `{before}` of `{machine}`, and moves from {allowed} only");
                return Err(Failure::new("invalid_transition", text).into());
            }
            let target = Column::Text(Arc::clone(&self.target));
            let version = Column::Integer(version);
            let step = entity.values([
                ("state", target.clone()),
                ("at", at.clone()),
                ("version", version),
            ]);
            if session.change(&MOVE, &step).await? != 1 {
                let text = format!("another transaction has moved it in `{machine}`; try again");
                return Err(Failure::new("unavailable", text).into());
            }
            let receipt = Column::Text(Arc::clone(&self.receipt));
            let note = [
                ("before", text(&before)),
                ("after", target),
                ("at", at),
                ("receipt", receipt),
            ];
            session.change(&NOTE, &entity.values(note)).await?;
            Ok(before)
        })
    }
}
