//! `database_query` and `database_write`, on SQLite and Postgres.
//!
//! Both kinds give the same for the same statement (docs/how-to/configure-databases.md names the column types).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vesper_interp::Argument;
use vesper_ir::{Effect, EffectClass, Type, Value};

use crate::database::deadline::Deadline;
use crate::database::receipts::{self, RECEIPTS, receipt_name};
use crate::database::roles::{ROLE, RoleRisks};
use crate::database::rows::{AllRows, Found, counted};
use crate::database::session::{Answer, Backend, Joiner, Kind, Purpose, Session, SessionError};
use crate::database::settings::DatabaseSettings;
use crate::database::statement::{SqlReader, Statement};
use crate::database::values::{Cell, Column, Values};
use crate::effect::{Ask, Failure, Pending, Performer};
use crate::messages::grouped;
use crate::per_process::PerProcess;
use crate::sources::Sources;

/// Statements that are kept; beyond this number all are read anew.
const MAX_STATEMENTS: usize = 4096;

/// Rows that `try_out` returns.
const MAX_TRIED_ROWS: usize = 50;

type Kept = HashMap<(Kind, Arc<str>), Arc<Statement>>;
type Statements = Mutex<Kept>;

/// The configured databases. Nothing is opened before it is used.
pub struct Databases {
    shared: Arc<Shared>,
    /// For runs that are part of a caller's transaction; None for all others.
    joiner: Option<Arc<dyn Joiner>>,
}

struct Shared {
    known: HashMap<String, (Arc<DatabaseSettings>, Box<dyn Backend>)>,
    reader: Arc<dyn SqlReader>,
    sources: Arc<dyn Sources>,
    statements: PerProcess<Statements>,
}

impl std::fmt::Debug for Databases {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.shared.known.keys()).finish()
    }
}

/// A write that happens once, under its receipt.
pub trait Act: Send + Sync {
    /// Performs the write; returns its result as text.
    fn act<'a>(&'a self, session: &'a mut dyn Session) -> Answer<'a, String>;
}

impl Databases {
    pub fn new(
        databases: Vec<(Arc<DatabaseSettings>, Box<dyn Backend>)>,
        reader: Arc<dyn SqlReader>,
        sources: Arc<dyn Sources>,
    ) -> Self {
        let named = databases.into_iter().map(|each| (each.0.name.clone(), each));
        let shared = Shared {
            known: named.collect(),
            reader,
            sources,
            statements: PerProcess::default(),
        };
        Self {
            shared: Arc::new(shared),
            joiner: None,
        }
    }

    /// Returns the same databases for runs that are part of callers' transactions.
    #[must_use]
    pub fn joined(&self, joiner: Arc<dyn Joiner>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            joiner: Some(joiner),
        }
    }

    async fn begin(&self, name: &str, purpose: Purpose) -> Result<Box<dyn Session>, SessionError> {
        let (settings, backend) = self.configured(name)?;
        if purpose.writes && settings.read_only {
            return Err(Failure::new("unavailable", format!("`{name}` is configured as `read_only`")).into());
        }
        match &self.joiner {
            None => backend.begin(purpose).await,
            Some(joiner) => match joiner.join(settings, &purpose)? {
                Some(session) => Ok(session),
                None => backend.begin(purpose).await,
            },
        }
    }

    /// Begins a transaction. `refusal` is the code for a value that the database does not accept.
    pub async fn session(
        &self,
        name: &str,
        ask: &Ask<'_>,
        writes: bool,
        refusal: &'static str,
    ) -> Result<Box<dyn Session>, SessionError> {
        self.begin(name, self.purpose(name, ask, writes, refusal)?).await
    }

    /// Performs a write in one transaction with its receipt; returns its result, or that of the first time.
    ///
    /// The table of the receipts is created where the database has none yet.
    pub async fn once(
        &self,
        name: &str,
        ask: &Ask<'_>,
        refusal: &'static str,
        act: &dyn Act,
    ) -> Result<String, SessionError> {
        let purpose = self.purpose(name, ask, true, refusal)?;
        let receipt: Arc<str> = Arc::from(receipt_name(ask));
        if let Some(value) = self.once_within(name, purpose, &receipt, act).await? {
            return Ok(value);
        }
        let mut session = self.begin(name, purpose).await?;
        let result = session.create(RECEIPTS).await;
        finish(session, result).await?;
        let value = self.once_within(name, purpose, &receipt, act).await?;
        value.ok_or_else(|| {
            Failure::new(
                "unavailable",
                format!("`{name}` has lost the table of its receipts"),
            )
            .into()
        })
    }

    /// Performs a write once; returns None where the table of the receipts is missing.
    async fn once_within(
        &self,
        name: &str,
        purpose: Purpose,
        receipt: &Arc<str>,
        act: &dyn Act,
    ) -> Result<Option<String>, SessionError> {
        let mut session = self.begin(name, purpose).await?;
        let begun = receipts::begin(&mut *session, receipt, self.now_us()).await;
        let result = match begun {
            Ok(None) => write(&mut *session, receipt, act).await,
            // Nothing is written yet: this transaction ends, and one that creates the table follows.
            Err(missing @ SessionError::MissingTable(_)) => {
                return match session.rollback(missing).await {
                    SessionError::MissingTable(_) => Ok(None),
                    other => Err(other),
                };
            }
            other => other,
        };
        finish(session, result).await
    }

    /// Returns the result in the receipt of a request; None where there is none.
    pub async fn happened(&self, name: &str, ask: &Ask<'_>) -> Result<Option<String>, SessionError> {
        let mut session = self.session(name, ask, false, "unavailable").await?;
        let result = receipts::find(&mut *session, &Arc::from(receipt_name(ask))).await;
        finish(session, result).await
    }

    /// Returns the rights of a database's role that no node needs; none for SQLite, which has no roles.
    pub async fn role_risks(&self, name: &str) -> Result<Vec<String>, SessionError> {
        let (settings, backend) = self.configured(name)?;
        let purpose = Purpose {
            deadline: Deadline::new(settings.timeout),
            writes: false,
            refusal: "unavailable",
        };
        let mut session = backend.begin(purpose).await?;
        let mut risks = RoleRisks::default();
        let result = match session.kind() {
            Kind::Sqlite => Ok(()),
            Kind::Postgres => session.rows(&ROLE, &Vec::new(), 1, &mut risks).await,
        };
        finish(session, result).await?;
        Ok(risks.found)
    }

    /// Prepares for a fork of the process; each of the three holds for all databases.
    pub fn before_fork(&self) {
        self.shared
            .known
            .values()
            .for_each(|(_, backend)| backend.before_fork());
    }

    pub fn after_fork_in_parent(&self) {
        self.shared
            .known
            .values()
            .for_each(|(_, backend)| backend.after_fork_in_parent());
    }

    pub fn after_fork_in_child(&self) {
        self.shared
            .known
            .values()
            .for_each(|(_, backend)| backend.after_fork_in_child());
    }

    /// Returns the time in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.shared.sources.now_us()
    }

    fn purpose(
        &self,
        name: &str,
        ask: &Ask<'_>,
        writes: bool,
        refusal: &'static str,
    ) -> Result<Purpose, Failure> {
        let (settings, _) = self.configured(name)?;
        let deadline = Deadline::new(ask.timeout.unwrap_or(settings.timeout));
        Ok(Purpose {
            deadline,
            writes,
            refusal,
        })
    }

    fn configured(&self, name: &str) -> Result<&(Arc<DatabaseSettings>, Box<dyn Backend>), Failure> {
        self.shared.known.get(name).ok_or_else(|| {
            let mut known: Vec<&str> = self.shared.known.keys().map(String::as_str).collect();
            known.sort_unstable();
            let text = format!("no database `{name}` is configured; add [databases.{name}]");
            let close = self.shared.reader.did_you_mean(name, &known);
            Failure::new(
                "unavailable",
                close.map_or(text.clone(), |close| format!("{text}; {close}")),
            )
        })
    }

    /// Returns the statement of a node, which must begin with a word of its effect.
    ///
    /// The checker makes sure of it; a node that was damaged since must not get further than this. (A WITH that writes
    /// in a query is refused by its transaction, which can only read.)
    fn statement(&self, kind: Kind, ask: &Ask<'_>) -> Result<Arc<Statement>, Failure> {
        let statement = self.read_statement(kind, ask.fixed("sql"))?;
        let (effect, verbs): (&str, &[&str]) = match ask.request.effect {
            Effect::DatabaseQuery => ("database_query", &["SELECT", "WITH", "VALUES"]),
            _ => ("database_write", &["INSERT", "UPDATE", "DELETE", "WITH"]),
        };
        if !verbs.contains(&&*statement.verb) {
            let text = format!(
                "its SQL begins with {}, which is nothing for {effect}",
                statement.verb
            );
            return Err(Failure::new("unavailable", text));
        }
        Ok(statement)
    }

    fn read_statement(&self, kind: Kind, sql: &str) -> Result<Arc<Statement>, Failure> {
        let statements = self.shared.statements.get();
        let key = (kind, Arc::from(sql));
        if let Some(found) = lock(statements).get(&key) {
            return Ok(Arc::clone(found));
        }
        let statement = Arc::new(Statement::of_node(self.shared.reader.facts(sql, kind)?));
        let mut kept = lock(statements);
        if kept.len() >= MAX_STATEMENTS {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&statement));
        Ok(statement)
    }

    /// Runs a node's statement and undoes it; returns its rows, or those of `then` after a write. For proofs.
    pub async fn try_out(
        &self,
        name: &str,
        sql: &str,
        then: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<Vec<Cell>>, SessionError> {
        let (_, backend) = self.configured(name)?;
        let statement = self.read_statement(backend.kind(), sql)?;
        let purpose = Purpose {
            deadline: Deadline::new(timeout),
            writes: then.is_some(),
            refusal: "conflict",
        };
        let mut session = self.begin(name, purpose).await?;
        let mut found = AllRows::default();
        let none = Values::new();
        let result = match then {
            None => session.rows(&statement, &none, MAX_TRIED_ROWS, &mut found).await,
            Some(then) => match session.change(&statement, &none).await {
                Ok(_) => {
                    session
                        .rows(&Statement::own(then), &none, MAX_TRIED_ROWS, &mut found)
                        .await
                }
                Err(error) => Err(error),
            },
        };
        let undone = session
            .rollback(Failure::new("unavailable", "it is undone").into())
            .await;
        match (result, undone) {
            (Ok(()), SessionError::Broken(broken)) => Err(SessionError::Broken(broken)),
            (Ok(()), _) => Ok(found.0),
            (Err(error), _) => Err(error),
        }
    }

    async fn perform_one(&self, ask: &Ask<'_>) -> Result<Value, SessionError> {
        let name = ask.fixed("database");
        let (settings, backend) = self.configured(name)?;
        let statement = self.statement(backend.kind(), ask)?;
        let values = bound(ask.argument("bind"))?;
        if ask.request.effect == Effect::DatabaseQuery {
            return self.query(settings, ask, &statement, &values).await;
        }
        let write = Write { statement, values };
        let count = if ask.request.class == EffectClass::Unsafe {
            let mut session = self.session(name, ask, true, "conflict").await?;
            let result = write.act(&mut *session).await;
            finish(session, result).await?
        } else {
            self.once(name, ask, "conflict", &write).await?
        };
        changed_rows(&count).map_err(SessionError::from)
    }

    async fn query(
        &self,
        settings: &DatabaseSettings,
        ask: &Ask<'_>,
        statement: &Statement,
        values: &Values,
    ) -> Result<Value, SessionError> {
        let (rows, name) = (ask.fixed("rows"), &settings.name);
        let (most, row) = match (rows, &ask.request.result) {
            ("all", Type::Array(of)) => (settings.max_rows, &**of),
            ("optional", Type::Optional(of)) => (1, &**of),
            (_, ty) => (1, ty),
        };
        let mut session = self.session(name, ask, false, "bad_response").await?;
        let mut found = Found::new(settings, row, session.kind(), most);
        let result = session.rows(statement, values, most + 1, &mut found).await;
        finish(session, result).await?;
        if found.count > most {
            let advice = match rows {
                "all" => format!(" (`max_rows` is {}); add a LIMIT, or raise it", grouped(most)),
                _ => String::new(),
            };
            let text = format!("the query on `{name}` gives more than {}{advice}", counted(most));
            return Err(Failure::new("too_many_rows", text).into());
        }
        let mut values = found.values;
        match (rows, values.pop()) {
            ("all", last) => {
                values.extend(last);
                Ok(Value::Array(Arc::from(values)))
            }
            (_, Some(only)) => Ok(only),
            ("one", None) => {
                Err(Failure::new("not_found", format!("the query on `{name}` gives no row")).into())
            }
            (_, None) => Ok(Value::Null),
        }
    }
}

/// Performs a write and fills its receipt.
async fn write(
    session: &mut dyn Session,
    receipt: &Arc<str>,
    act: &dyn Act,
) -> Result<Option<String>, SessionError> {
    let value = act.act(session).await?;
    receipts::fill(session, receipt, &value).await?;
    Ok(Some(value))
}

/// Commits a transaction after a success, and rolls it back after a failure.
pub async fn finish<T>(
    session: Box<dyn Session>,
    result: Result<T, SessionError>,
) -> Result<T, SessionError> {
    match result {
        Ok(value) => session.commit().await.map(|()| value),
        Err(error) => Err(session.rollback(error).await),
    }
}

fn lock(statements: &Statements) -> MutexGuard<'_, Kept> {
    statements.lock().unwrap_or_else(PoisonError::into_inner)
}

fn changed_rows(count: &str) -> Result<Value, Failure> {
    let bad = || Failure::new("unavailable", "the receipt of this write holds no number of rows");
    count.parse().map(Value::Integer).map_err(|_| bad())
}

/// Returns the values of a statement's parameters.
fn bound(bind: Option<&Argument>) -> Result<Values, Failure> {
    let Some(bind) = bind else {
        return Ok(Vec::new());
    };
    let (Type::Record(record), Value::Record(fields)) = (&bind.ty, &bind.value) else {
        return Err(Failure::new(
            "unavailable",
            "`bind` is no record: the node was not checked, or is damaged",
        ));
    };
    let values = record.fields().iter().zip(fields.iter()).map(|(field, value)| {
        let column = Column::of(&field.ty, value).ok_or_else(|| {
            Failure::new(
                "unavailable",
                format!("the value of `:{}` is too large for JSON", field.name),
            )
        })?;
        Ok((Arc::clone(&field.name), column))
    });
    values.collect()
}

/// A write of a node.
struct Write {
    statement: Arc<Statement>,
    values: Values,
}

impl Act for Write {
    fn act<'a>(&'a self, session: &'a mut dyn Session) -> Answer<'a, String> {
        Box::pin(async move { Ok(session.change(&self.statement, &self.values).await?.to_string()) })
    }
}

impl Performer for Databases {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move { Ok(self.perform_one(&ask).await?) })
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move {
            let found = self.happened(ask.fixed("database"), &ask).await?;
            Ok(found.map(|count| changed_rows(&count)).transpose()?)
        })
    }

    fn close(&self) {
        self.shared
            .known
            .values()
            .for_each(|(_, backend)| backend.close());
    }
}
