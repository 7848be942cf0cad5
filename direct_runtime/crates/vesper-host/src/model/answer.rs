//! The answer of a model in the form that nodes get, and its parts while it is under way.

use vesper_ir::Json;
use vesper_ir::json::parse;

use super::catalog::Usage;
use super::conversation::Conversation;
use super::members::{array, number, object, string};
use crate::effect::{Chunk, ChunkSink};

/// Call of a tool.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Json,
}

/// Answer of any provider.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) thinking: Option<String>,
    pub(super) calls: Vec<Asked>,
    /// `end`, `tools`, `length` or `refusal`.
    pub(super) stop: &'static str,
    pub(super) raw: Json,
    pub(super) model: String,
    pub(super) usage: Usage,
}

impl Answer {
    /// Returns the members of the value that a node gets, without those of the attempt.
    pub(super) fn members(&self, conversation: &Conversation<'_>) -> Vec<(&'static str, Json)> {
        let call = |call: &Asked| {
            object([
                ("id", string(&call.id)),
                ("name", string(&call.name)),
                ("arguments", call.arguments.clone()),
            ])
        };
        let is_structured = conversation.output.is_some() && matches!(self.stop, "end" | "length");
        let output = if is_structured {
            parse(&self.text).ok()
        } else {
            None
        };
        vec![
            ("text", string(&self.text)),
            ("thinking", self.thinking.as_deref().map_or(Json::Null, string)),
            ("tool_calls", array(self.calls.iter().map(call))),
            ("output", output.unwrap_or(Json::Null)),
            ("stop", string(self.stop)),
            ("raw", self.raw.clone()),
            ("model", string(&self.model)),
            ("usage", usage_json(self.usage)),
        ]
    }

    /// Delivers the parts of an answer that came as a whole.
    pub(super) fn deliver(&self, parts: &mut Parts<'_>) {
        if let Some(thinking) = &self.thinking {
            parts.put("thinking", thinking, None);
        }
        if !self.text.is_empty() {
            parts.put("text", &self.text, None);
        }
        for call in &self.calls {
            parts.put("tool_start", &call.name, Some(&call.id));
            parts.put("tool_arguments", &call.arguments.literal_text(), Some(&call.id));
        }
    }
}

pub(super) fn usage_json(usage: Usage) -> Json {
    object([
        ("input_tokens", number(usage.input)),
        ("output_tokens", number(usage.output)),
        ("cached_input_tokens", number(usage.cached_input)),
        ("cache_write_tokens", number(usage.cache_write)),
    ])
}

/// Parts of an answer on their way to a listener.
pub(super) struct Parts<'a> {
    pub(super) path: &'a str,
    pub(super) sink: Option<&'a dyn ChunkSink>,
    /// Replaces secrets in what the provider sends.
    pub(super) redact: &'a (dyn Fn(&str) -> String + Sync),
}

impl Parts<'_> {
    pub(super) fn put(&mut self, kind: &'static str, text: &str, call: Option<&str>) {
        if let Some(sink) = self.sink
            && (!text.is_empty() || kind == "start")
        {
            let text = (self.redact)(text);
            sink.put(Chunk {
                path: self.path,
                kind,
                text: &text,
                call,
            });
        }
    }
}
