//! Models of the application: a function answers in place of a provider.

use vesper_ir::Json;

use super::answer::{Answer, Asked};
use super::catalog::{Model, Usage};
use super::conversation::Conversation;
use super::members::{count, list, member, text};
use super::wire::malformed;
use crate::effect::{Ask, Failure};

/// Answer of a function: JSON of the form of docs/spec/models.md.
pub type CustomAnswer = Result<Json, Failure>;

/// The models of the application.
pub trait CustomModels: Send + Sync {
    /// Asks the function of a model.
    fn ask(&self, model: &Model, ask: &Ask<'_>) -> CustomAnswer;
}

pub(super) fn ask(
    models: Option<&dyn CustomModels>,
    model: &Model,
    ask: &Ask<'_>,
    conversation: &Conversation<'_>,
) -> Result<Answer, Failure> {
    let Some(models) = models else {
        let problem = format!(
            "nothing was sent: `{}` is a model of the application, which has none here",
            model.name
        );
        return Err(Failure::new("unavailable", problem));
    };
    let found = models.ask(model, ask)?;
    read(&found, conversation)
}

/// Reads the answer of a function: `text`, `tool_calls`, `stop` and `usage`, and what else it has.
fn read(found: &Json, conversation: &Conversation<'_>) -> Result<Answer, Failure> {
    let usage = member(found, "usage").ok_or_else(|| malformed("it has no `usage`"))?;
    let tokens = |name: &str| count(usage, name);
    let required = |name: &str| tokens(name).ok_or_else(|| malformed(&format!("`usage` has no `{name}`")));
    let mut calls = Vec::new();
    for call in list(found, "tool_calls") {
        let (Some(id), Some(name), Some(arguments)) =
            (text(call, "id"), text(call, "name"), member(call, "arguments"))
        else {
            return Err(malformed("a call of a tool has no `id`, `name` or `arguments`"));
        };
        if !conversation.tools.iter().any(|tool| tool.name == name) {
            return Err(malformed("it calls a tool that the request does not have"));
        }
        calls.push(Asked {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.clone(),
        });
    }
    let stop = match text(found, "stop") {
        None if calls.is_empty() => "end",
        None | Some("tools") => "tools",
        Some("end") => "end",
        Some("length") => "length",
        Some("refusal") => "refusal",
        Some(_) => return Err(malformed("`stop` is `end`, `tools`, `length` or `refusal`")),
    };
    Ok(Answer {
        text: text(found, "text").unwrap_or_default().to_owned(),
        thinking: text(found, "thinking").map(str::to_owned),
        calls,
        stop,
        model: text(found, "model").unwrap_or_default().to_owned(),
        usage: Usage {
            input: required("input_tokens")?,
            output: required("output_tokens")?,
            cached_input: tokens("cached_input_tokens").unwrap_or_default(),
            cache_write: tokens("cache_write_tokens").unwrap_or_default(),
        },
        raw: member(found, "raw").cloned().unwrap_or(Json::Null),
    })
}
