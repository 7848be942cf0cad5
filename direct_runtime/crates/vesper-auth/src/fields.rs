//! Members of a table in JSON, each read once.

use std::fmt;

use serde_json::{Map, Value};

/// A table that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError(pub String);

impl fmt::Display for TableError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the table of endpoints: {}", self.0)
    }
}

impl std::error::Error for TableError {}

/// The members of an object of the table; each is taken once.
#[derive(Debug)]
pub struct Fields {
    path: String,
    members: Map<String, Value>,
}

impl Fields {
    pub fn of(value: Value, path: &str) -> Result<Self, TableError> {
        match value {
            Value::Object(members) => Ok(Self {
                path: path.to_owned(),
                members,
            }),
            Value::Null => Ok(Self {
                path: path.to_owned(),
                members: Map::new(),
            }),
            _ => Err(TableError(format!("{path}: an object is expected"))),
        }
    }

    /// Where the object is, for messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn error(&self, name: &str, problem: &str) -> TableError {
        TableError(format!("{}.{name}: {problem}", self.path))
    }

    pub fn take(&mut self, name: &str) -> Value {
        self.members.remove(name).unwrap_or(Value::Null)
    }

    pub fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    pub fn text(&mut self, name: &str) -> Result<String, TableError> {
        self.optional_text(name)?
            .ok_or_else(|| self.error(name, "a string is expected"))
    }

    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, TableError> {
        match self.take(name) {
            Value::String(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => Err(self.error(name, "a string is expected")),
        }
    }

    pub fn boolean(&mut self, name: &str) -> Result<bool, TableError> {
        match self.take(name) {
            Value::Bool(found) => Ok(found),
            Value::Null => Ok(false),
            _ => Err(self.error(name, "true or false is expected")),
        }
    }

    pub fn list(&mut self, name: &str) -> Result<Vec<Value>, TableError> {
        match self.take(name) {
            Value::Array(found) => Ok(found),
            Value::Null => Ok(Vec::new()),
            _ => Err(self.error(name, "an array is expected")),
        }
    }

    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, TableError> {
        let text = |each: Value| match each {
            Value::String(text) => Ok(text),
            _ => Err(self.error(name, "strings are expected")),
        };
        let listed = match self.members.get(name).cloned() {
            Some(Value::Array(found)) => found,
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return Err(self.error(name, "an array is expected")),
        };
        let found = listed.into_iter().map(text).collect();
        self.take(name);
        found
    }

    /// Reports a member that nothing has taken.
    pub fn done(self) -> Result<(), TableError> {
        match self.members.keys().next() {
            Some(name) => Err(self.error(name, "is unknown")),
            None => Ok(()),
        }
    }
}
