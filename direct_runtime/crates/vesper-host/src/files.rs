//! Performer of `file_read`, `file_write` and `file_append` below configured folders.
//!
//! A path is a text from a node, and a node may have it from anywhere. It stays below its root by the way it is opened:
//! part by part, each relative to the folder before it, and no link is followed. No path is checked first and opened
//! later, so nothing can be exchanged in between.
//!
//! A folder that a write needs is created. A file is replaced as a whole by renaming: after a crash it is the old or the
//! new one, and a file `.vesper-….tmp` may remain beside it.

mod file;
mod path;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use vesper_ir::{Effect, Value};

use crate::effect::{Ask, Failure, Pending, Performer};
use crate::files::file::File;
use crate::sources::Sources;

/// Settings of `[files.ROOT]`.
#[derive(Clone, Debug)]
pub struct Root {
    pub name: String,
    pub path: PathBuf,
    pub is_read_only: bool,
    /// Bytes of the longest file that is read or written, and that appending makes.
    pub max_bytes: u64,
    /// True where a written file and its folder are on the disk when the effect completes.
    pub is_synced: bool,
    /// True where files with another name, perhaps elsewhere, may be used.
    pub allows_hard_links: bool,
}

/// The files of all configured roots.
pub struct Files {
    roots: HashMap<String, Root>,
    sources: Arc<dyn Sources>,
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Files")
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

impl Files {
    pub fn new(roots: Vec<Root>, sources: Arc<dyn Sources>) -> Self {
        let roots = roots.into_iter().map(|root| (root.name.clone(), root)).collect();
        Self { roots, sources }
    }

    async fn value(&self, ask: Ask<'_>) -> Result<Value, Failure> {
        let name = ask.fixed("root");
        let root = self.roots.get(name).ok_or_else(|| {
            let message = format!("no root `{name}` is configured: add [files.{name}] to vesper.toml");
            Failure::new("unavailable", message)
        })?;
        let Some(Value::Text(path)) = ask.argument("path").map(|argument| &argument.value) else {
            return Err(Failure::new("unavailable", "the argument `path` is no text"));
        };
        let is_read = ask.request.effect == Effect::FileRead;
        let file = File::new(root, path, is_read, ask.timeout)?;
        if is_read {
            return file.read(&ask.request.result);
        }
        let content = match ask.argument("content").map(|argument| &argument.value) {
            Some(Value::Text(text)) => text.as_bytes(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => {
                return Err(Failure::new(
                    "unavailable",
                    "the argument `content` is no text and no bytes",
                ));
            }
        };
        match ask.request.effect {
            Effect::FileWrite => file.write(content, &*self.sources),
            Effect::FileAppend => file.append(content).await,
            other => Err(Failure::new(
                "unavailable",
                format!("a root does not perform {}", other.name()),
            )),
        }
    }
}

impl Performer for Files {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move { Ok(self.value(ask).await?) })
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        let effect = ask.request.effect.name();
        let failure = Failure::new("unavailable", format!("{effect} is never of class `probe`"));
        Box::pin(std::future::ready(Err(failure.into())))
    }

    fn close(&self) {}
}
