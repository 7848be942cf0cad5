//! The chat of Ollama.

use vesper_ir::Json;

use super::answer::{Answer, Asked, Parts};
use super::catalog::{Model, Usage};
use super::conversation::{Choice, Conversation, Message, Part};
use super::members::{array, count, list, member, number, object, string, text, with};
use super::openai::tools_of;
use super::wire::{Assembler, Progress, malformed};
use crate::effect::Failure;

/// Returns the body of a request.
pub(super) fn encode(
    model: &Model,
    conversation: &Conversation<'_>,
    is_streamed: bool,
) -> Result<Json, Failure> {
    let system = conversation
        .system
        .map(|system| object([("role", string("system")), ("content", string(system))]));
    let messages = conversation
        .messages
        .iter()
        .enumerate()
        .map(|(place, message)| message_of(conversation, place, message));
    let mut options = vec![("num_predict", number(conversation.max_tokens))];
    if let Some(temperature) = conversation.temperature {
        options.push(("temperature", temperature.clone()));
    }
    if let Some(context) = model.context {
        options.push(("num_ctx", number(context)));
    }
    let mut body = vec![
        ("model", string(&model.model)),
        ("messages", array(system.into_iter().chain(messages))),
        ("stream", Json::Boolean(is_streamed)),
        ("options", object(options)),
    ];
    match conversation.choice {
        Choice::None => {}
        Choice::Auto if conversation.tools.is_empty() => {}
        Choice::Auto => body.push(("tools", tools_of(conversation))),
        Choice::Required | Choice::Tool(_) => {
            return Err(Failure::new(
                "invalid_request",
                "nothing was sent: a model of Ollama cannot be made to call a tool: `tool_choice` is `auto` or `none`",
            ));
        }
    }
    if let Some(output) = &conversation.output {
        body.push(("format", output.schema.clone()));
    }
    if conversation.thinking.is_some() {
        body.push(("think", Json::Boolean(true)));
    }
    Ok(object(body))
}

fn message_of(conversation: &Conversation<'_>, place: usize, message: &Message<'_>) -> Json {
    match message {
        Message::User(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(*text),
                    Part::Image { .. } => None,
                })
                .collect();
            let images: Vec<Json> = parts
                .iter()
                .filter_map(|part| match part {
                    Part::Image { data, .. } => Some(string(data)),
                    Part::Text(_) => None,
                })
                .collect();
            let mut members = vec![("role", string("user")), ("content", string(&texts.join("\n")))];
            if !images.is_empty() {
                members.push(("images", array(images)));
            }
            object(members)
        }
        Message::Assistant { text, calls, raw } => {
            let own = raw.and_then(|raw| member(raw, "message"));
            own.cloned().unwrap_or_else(|| {
                let mut members = vec![("role", string("assistant")), ("content", string(text))];
                if !calls.is_empty() {
                    let calls = calls.iter().map(|call| {
                        let function =
                            object([("name", string(call.name)), ("arguments", call.arguments.clone())]);
                        object([("function", function)])
                    });
                    members.push(("tool_calls", array(calls)));
                }
                object(members)
            })
        }
        Message::Tool { call, text, .. } => object([
            ("role", string("tool")),
            ("content", string(text)),
            (
                "tool_name",
                string(conversation.name_of_call(place, call).unwrap_or(call)),
            ),
        ]),
    }
}

/// Reads a whole answer. Calls of tools have no ids there: they get one that no earlier call has.
pub(super) fn decode(raw: &Json, conversation: &Conversation<'_>) -> Result<Answer, Failure> {
    let Some(message) = member(raw, "message") else {
        return Err(malformed("it has no message"));
    };
    let turn = conversation.messages.len();
    let call = |(place, call): (usize, &Json)| {
        let function = member(call, "function").unwrap_or(&Json::Null);
        Asked {
            id: format!("call_{turn}_{place}"),
            name: text(function, "name").unwrap_or_default().to_owned(),
            arguments: member(function, "arguments")
                .cloned()
                .unwrap_or_else(|| object([])),
        }
    };
    let calls: Vec<_> = list(message, "tool_calls").iter().enumerate().map(call).collect();
    if !matches!(member(raw, "done"), Some(Json::Boolean(true))) {
        return Err(malformed("it has no end"));
    }
    Ok(Answer {
        text: text(message, "content").unwrap_or_default().to_owned(),
        thinking: text(message, "thinking").map(str::to_owned),
        stop: match text(raw, "done_reason") {
            Some("length") => "length",
            _ if calls.is_empty() => "end",
            _ => "tools",
        },
        calls,
        model: text(raw, "model").unwrap_or_default().to_owned(),
        usage: Usage {
            input: count(raw, "prompt_eval_count").unwrap_or_default(),
            output: count(raw, "eval_count").unwrap_or_default(),
            ..Usage::default()
        },
        raw: raw.clone(),
    })
}

/// Assembles the answer that a stream consists of.
pub(super) struct Assembly {
    /// Messages of the conversation, for the ids of calls.
    pub(super) turn: usize,
    content: String,
    thinking: String,
    calls: Vec<Json>,
    last: Option<Json>,
}

impl Assembly {
    pub(super) fn new(turn: usize) -> Self {
        Self {
            turn,
            content: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            last: None,
        }
    }
}

impl Assembler for Assembly {
    fn add(&mut self, event: &Json, parts: &mut Parts<'_>) -> Result<Progress, Failure> {
        if member(event, "error").is_some() {
            return Ok(Progress::Failed);
        }
        let message = member(event, "message").unwrap_or(&Json::Null);
        for (place, kind, name) in [
            (&mut self.thinking, "thinking", "thinking"),
            (&mut self.content, "text", "content"),
        ] {
            let words = text(message, name).unwrap_or_default();
            place.push_str(words);
            parts.put(kind, words, None);
        }
        for call in list(message, "tool_calls") {
            let id = format!("call_{}_{}", self.turn, self.calls.len());
            let function = member(call, "function").unwrap_or(&Json::Null);
            parts.put(
                "tool_start",
                text(function, "name").unwrap_or_default(),
                Some(&id),
            );
            let arguments = member(function, "arguments").map(Json::literal_text);
            parts.put("tool_arguments", &arguments.unwrap_or_default(), Some(&id));
            self.calls.push(call.clone());
        }
        let is_done = matches!(member(event, "done"), Some(Json::Boolean(true)));
        self.last = Some(event.clone());
        Ok(if is_done { Progress::Done } else { Progress::More })
    }

    fn finish(self: Box<Self>) -> Result<Json, Failure> {
        let last = self.last.ok_or_else(|| malformed("it is empty"))?;
        let mut message = vec![("role", string("assistant")), ("content", string(&self.content))];
        if !self.thinking.is_empty() {
            message.push(("thinking", string(&self.thinking)));
        }
        if !self.calls.is_empty() {
            message.push(("tool_calls", array(self.calls)));
        }
        Ok(with(&last, [("message", object(message))]))
    }
}
