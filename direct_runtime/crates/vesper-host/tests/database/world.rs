//! Databases and requests of the tests. Statements are read by hand, as the checker of the language would.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vesper_host::database::{
    Backend, DatabaseSettings, Databases, Facts, Kind, Library, Limits, Piece, PostgresBackend, PureNames,
    SqlReader, SqliteBackend,
};
use vesper_host::effect::{Ask, AttemptError, Failure, Performer, Secrets};
use vesper_host::runtime::{self, NoRuntime};
use vesper_host::sources::SystemSources;
use vesper_interp::{Argument, Request};
use vesper_ir::types::Field;
use vesper_ir::{Effect, EffectClass, RecordType, Type, Value};
use zeroize::Zeroizing;

/// Reads statements whose words after FROM, INTO, UPDATE and JOIN are their tables.
struct PlainReader;

impl SqlReader for PlainReader {
    fn facts(&self, sql: &str, _: Kind) -> Result<Facts, Failure> {
        let mut pieces = Vec::new();
        for (place, part) in sql.split(':').enumerate() {
            let end = part
                .find(|letter: char| !letter.is_alphanumeric())
                .unwrap_or(part.len());
            let (name, rest) = part.split_at(if place == 0 { 0 } else { end });
            if place > 0 {
                pieces.push(Piece::Parameter(Arc::from(name)));
            }
            pieces.push(Piece::Text(rest.to_owned()));
        }
        let words: Vec<String> = sql.split([' ', '(', ')']).map(str::to_lowercase).collect();
        let tables: HashSet<String> = words
            .windows(2)
            .filter(|pair| matches!(pair[0].as_str(), "from" | "into" | "update" | "join"))
            .map(|pair| pair[1].clone())
            .collect();
        let limits = Limits {
            reads: tables.clone(),
            writes: tables,
            ..Limits::default()
        };
        Ok(Facts {
            pieces,
            verb: sql.split(' ').next().unwrap_or_default().to_owned(),
            foreign: None,
            limits: Ok(limits),
            target: None,
        })
    }

    fn did_you_mean(&self, _: &str, _: &[&str]) -> Option<String> {
        None
    }
}

struct NoSecrets;

impl Secrets for NoSecrets {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        Err(Failure::new("not_found", name))
    }
}

/// One database, with the performer that has it as `main`.
pub(crate) struct World {
    pub(crate) databases: Arc<Databases>,
    pub(crate) kind: Kind,
    folder: Option<PathBuf>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.databases.close();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn settings(dsn: String, path: Option<PathBuf>) -> Arc<DatabaseSettings> {
    Arc::new(DatabaseSettings {
        name: "main".to_owned(),
        dsn,
        path,
        password_secret: None,
        timeout: Duration::from_secs(30),
        pool_size: 4,
        max_rows: 3,
        max_value: 1000,
        max_result: 2000,
        read_only: false,
        foreign_keys: true,
        create: true,
        busy_timeout: Duration::from_secs(20),
    })
}

fn pure() -> PureNames {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    PureNames {
        functions: names(&["count", "sum", "max", "length"]),
        syntax: names(&["cast", "coalesce"]),
    }
}

impl World {
    pub(crate) fn sqlite() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("vesper-host-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = PathBuf::from("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0");
        let wrong = Library::load(Some(&path), "0").unwrap_err();
        let version = wrong.split([' ', ',']).nth(3).unwrap().to_owned();
        let library = Library::load(Some(&path), &version).unwrap();
        let settings = settings(String::new(), Some(folder.join("main.db")));
        let backend = SqliteBackend::new(Arc::clone(&settings), library, Arc::new(pure()));
        Self::new(settings, Box::new(backend), Kind::Sqlite, Some(folder))
    }

    pub(crate) fn postgres(port: u16) -> Self {
        let settings = settings(format!("postgresql://vesper@127.0.0.1:{port}/postgres"), None);
        let backend = PostgresBackend::new(Arc::clone(&settings), Arc::new(NoSecrets));
        Self::new(settings, Box::new(backend), Kind::Postgres, None)
    }

    fn new(
        settings: Arc<DatabaseSettings>,
        backend: Box<dyn Backend>,
        kind: Kind,
        folder: Option<PathBuf>,
    ) -> Self {
        let databases = Databases::new(
            vec![(settings, backend)],
            Arc::new(PlainReader),
            SystemSources::shared(),
        );
        Self {
            databases: Arc::new(databases),
            kind,
            folder,
        }
    }

    pub(crate) fn query(&self, sql: &str, rows: &str, gives: Type) -> Result<Value, Failure> {
        let fixed = [("database", "main"), ("sql", sql), ("rows", rows)];
        self.perform(
            &request(Effect::DatabaseQuery, EffectClass::Read, &fixed, &[], gives),
            None,
        )
    }

    pub(crate) fn write(
        &self,
        path: &str,
        sql: &str,
        bind: &[(&str, Type, Value)],
    ) -> Result<Value, Failure> {
        self.perform(&write(path, sql, bind), None)
    }

    pub(crate) fn perform(&self, request: &Request, timeout: Option<Duration>) -> Result<Value, Failure> {
        let references = HashMap::new();
        failed(wait(self.databases.perform(ask(request, timeout, &references))))
    }

    pub(crate) fn probe(&self, request: &Request) -> Result<Option<Value>, Failure> {
        let references = HashMap::new();
        failed(wait(self.databases.probe(ask(request, None, &references))))
    }
}

pub(crate) fn ask<'a>(
    request: &'a Request,
    timeout: Option<Duration>,
    references: &'a HashMap<Arc<str>, Arc<str>>,
) -> Ask<'a> {
    Ask {
        execution: "run-1",
        request,
        timeout,
        is_repeat: false,
        attempt: 1,
        is_sensitive: false,
        secrets: &NoSecrets,
        references,
        trace: None,
        sink: None,
        limits: None,
        budgets: &[],
    }
}

pub(crate) fn write(path: &str, sql: &str, bind: &[(&str, Type, Value)]) -> Request {
    let fixed = [("database", "main"), ("sql", sql)];
    let mut request = request(
        Effect::DatabaseWrite,
        EffectClass::Txn,
        &fixed,
        bind,
        Type::Integer,
    );
    path.clone_into(&mut request.path);
    request
}

pub(crate) fn request(
    effect: Effect,
    class: EffectClass,
    fixed: &[(&str, &str)],
    bind: &[(&str, Type, Value)],
    result: Type,
) -> Request {
    let fields = bind.iter().map(|(name, ty, _)| Field {
        name: Arc::from(*name),
        ty: ty.clone(),
    });
    let arguments = RecordType::new(fields.collect()).ok().map(|record| Argument {
        name: Arc::from("bind"),
        ty: Type::Record(Arc::new(record)),
        value: Value::Record(bind.iter().map(|(_, _, value)| value.clone()).collect()),
    });
    Request {
        id: 0,
        node: Arc::from("node_v1"),
        step: Arc::from("step"),
        path: "step".to_owned(),
        effect,
        class,
        key: None,
        fixed: fixed
            .iter()
            .map(|(name, text)| (Arc::from(*name), Arc::from(*text)))
            .collect(),
        arguments: arguments.into_iter().collect(),
        result,
    }
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    runtime::block_on(future, || Ok::<(), NoRuntime>(())).unwrap()
}

pub(crate) fn failed<T>(result: Result<T, AttemptError>) -> Result<T, Failure> {
    result.map_err(|error| match error {
        AttemptError::Failed(failure) => failure,
        AttemptError::Broken(_) => panic!("nothing raises here"),
    })
}
