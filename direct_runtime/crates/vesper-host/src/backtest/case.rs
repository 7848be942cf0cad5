//! One recorded run as a case: inputs, start, answers by path, and the outcome.

use std::collections::HashMap;

use serde_json::value::RawValue;
use vesper_interp::{Completion, Request};
use vesper_ir::{ErrorCode, FailureCode, Type, Value};

use crate::journal::stored_line::members;
use crate::journal::{Kind, Stored};
use crate::typed_json::{member, read_value, request_texts, text_member};

/// A recorded run. Values stay texts until a version reads them with its types.
#[derive(Debug)]
pub(super) struct Case<'a> {
    inputs: HashMap<String, &'a RawValue>,
    pub(super) now: Value,
    answers: HashMap<&'a str, Answer<'a>>,
    /// Body of END.
    pub(super) end: Option<&'a str>,
    /// Characters of the inputs as typed JSON.
    pub(super) size: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Answer<'a> {
    asked: Option<&'a Stored>,
    settled: Option<&'a Stored>,
}

impl<'a> Case<'a> {
    /// Reads the entries of a run; None where its START has no inputs.
    pub(super) fn of(entries: &'a [Stored]) -> Option<Self> {
        let start = entries.first().filter(|entry| entry.kind == Kind::Start)?;
        let inputs = member(&start.body, "inputs")?;
        let now = read_value(member(&start.body, "now")?, &Type::Timestamp).ok()?;
        let end = entries.last().filter(|entry| entry.kind == Kind::End);
        Some(Self {
            size: inputs.chars().count() as u64,
            inputs: members(inputs)?,
            now,
            answers: answers(entries),
            end: end.map(|entry| entry.body.as_str()),
        })
    }

    /// Returns the value of an input of a type; None where it was not given.
    pub(super) fn input(&self, name: &str, ty: &Type) -> Option<Result<Value, String>> {
        self.inputs.get(name).map(|raw| read_value(raw.get(), ty))
    }

    /// Returns the recorded completion of a request; None where the record has none for what it asks.
    pub(super) fn answer(&self, request: &Request) -> Option<Completion> {
        let known = self.answers.get(request.path.as_str())?;
        let settled = known.settled?;
        if !is_same(request, known.asked.unwrap_or(settled)) {
            return None;
        }
        if let Some(code) = text_member(&settled.body, "code") {
            return Some(Completion::Failed(FailureCode::new(&code)));
        }
        let text = member(&settled.body, "value").unwrap_or("null");
        // An answer that the step does not expect fails as it does on both engines.
        Some(read_value(text, &request.result).map_or_else(
            |_| Completion::Failed(FailureCode::Known(ErrorCode::BadResponse)),
            Completion::Value,
        ))
    }
}

fn answers(entries: &[Stored]) -> HashMap<&str, Answer<'_>> {
    let mut found: HashMap<&str, Answer<'_>> = HashMap::new();
    for entry in entries {
        let path = entry.path.split('#').next().unwrap_or_default();
        match entry.kind {
            Kind::Intent => found.entry(path).or_default().asked = Some(entry),
            Kind::Resolved if member(&entry.body, "not_done") == Some("true") => {
                found.remove(path);
            }
            Kind::Result | Kind::Failed | Kind::Resolved => {
                found.entry(path).or_default().settled = Some(entry);
            }
            _ => {}
        }
    }
    found
}

/// Returns whether a request asks the outside the same. Its key and its class are no part of the question.
fn is_same(request: &Request, asked: &Stored) -> bool {
    if request.effect.name() != asked.effect {
        return false;
    }
    let (Some(fixed), Some(arguments)) = (member(&asked.body, "fixed"), member(&asked.body, "arguments"))
    else {
        return true; // too large for the journal
    };
    request_texts(request).is_ok_and(|(own, own_arguments)| own == fixed && own_arguments == arguments)
}
