//! Chat Completions of `OpenAI`, of Azure, and of servers that speak alike.

use vesper_ir::Json;
use vesper_ir::json::parse;

use super::answer::{Answer, Asked, Parts};
use super::catalog::{Model, Usage};
use super::conversation::{Choice, Conversation, Message, Part};
use super::members::{array, count, list, member, number, object, string, text, with};
use super::wire::{Assembler, Progress, malformed};
use crate::effect::Failure;

/// Members of an answer's message that a later request may hold.
const OWN_MEMBERS: [&str; 7] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
];
/// Names that servers give the text of the reasoning.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// Returns the body of a request.
pub(super) fn encode(model: &Model, conversation: &Conversation<'_>, is_streamed: bool) -> Json {
    let system = conversation
        .system
        .map(|system| object([("role", string("system")), ("content", string(system))]));
    let messages = conversation.messages.iter().map(message_of);
    let mut body = vec![
        ("model", string(&model.model)),
        ("max_completion_tokens", number(conversation.max_tokens)),
        ("messages", array(system.into_iter().chain(messages))),
    ];
    if is_streamed {
        body.push(("stream", Json::Boolean(true)));
        body.push(("stream_options", object([("include_usage", Json::Boolean(true))])));
    }
    if let Some(temperature) = conversation.temperature {
        body.push(("temperature", temperature.clone()));
    }
    if !conversation.tools.is_empty() {
        body.push(("tools", tools_of(conversation)));
        let choice = match conversation.choice {
            Choice::Auto => string("auto"),
            Choice::None => string("none"),
            Choice::Required => string("required"),
            Choice::Tool(name) => object([
                ("type", string("function")),
                ("function", object([("name", string(name))])),
            ]),
        };
        body.push(("tool_choice", choice));
    }
    if let Some(output) = &conversation.output {
        let schema = object([
            ("name", string(output.name)),
            ("schema", output.schema.clone()),
            ("strict", Json::Boolean(true)),
        ]);
        let format = object([("type", string("json_schema")), ("json_schema", schema)]);
        body.push(("response_format", format));
    }
    if let Some(budget) = conversation.thinking {
        let effort = match budget {
            ..=2048 => "low",
            2049..=8192 => "medium",
            _ => "high",
        };
        body.push(("reasoning_effort", string(effort)));
    }
    object(body)
}

/// Returns the tools as functions.
pub(super) fn tools_of(conversation: &Conversation<'_>) -> Json {
    array(conversation.tools.iter().map(|tool| {
        let function = object([
            ("name", string(tool.name)),
            ("description", string(tool.description)),
            ("parameters", tool.parameters.clone()),
        ]);
        object([("type", string("function")), ("function", function)])
    }))
}

fn message_of(message: &Message<'_>) -> Json {
    match message {
        Message::User(parts) => {
            let content = match parts.as_slice() {
                [Part::Text(text)] => string(text),
                parts => array(parts.iter().map(part_of)),
            };
            object([("role", string("user")), ("content", content)])
        }
        Message::Assistant { text, calls, raw } => raw.and_then(own_message).unwrap_or_else(|| {
            let mut members = vec![("role", string("assistant")), ("content", string(text))];
            if !calls.is_empty() {
                let calls = calls.iter().map(|call| {
                    let function = object([
                        ("name", string(call.name)),
                        ("arguments", string(&call.arguments.literal_text())),
                    ]);
                    object([
                        ("id", string(call.id)),
                        ("type", string("function")),
                        ("function", function),
                    ])
                });
                members.push(("tool_calls", array(calls)));
            }
            object(members)
        }),
        Message::Tool { call, text, .. } => object([
            ("role", string("tool")),
            ("tool_call_id", string(call)),
            ("content", string(text)),
        ]),
    }
}

fn part_of(part: &Part<'_>) -> Json {
    match part {
        Part::Text(text) => object([("type", string("text")), ("text", string(text))]),
        Part::Image { media_type, data } => {
            let url = object([("url", string(&format!("data:{media_type};base64,{data}")))]);
            object([("type", string("image_url")), ("image_url", url)])
        }
    }
}

/// Returns the message of an answer of this interface; `None` for that of another one.
fn own_message(raw: &Json) -> Option<Json> {
    let message = member(list(raw, "choices").first()?, "message")?;
    let found = OWN_MEMBERS
        .into_iter()
        .filter_map(|name| Some((name, member(message, name)?.clone())));
    Some(object(found))
}

/// Reads a whole answer.
pub(super) fn decode(raw: &Json) -> Result<Answer, Failure> {
    let Some(choice) = list(raw, "choices").first() else {
        return Err(malformed("it has no `choices`"));
    };
    let Some(message) = member(choice, "message") else {
        return Err(malformed("it has no message"));
    };
    let calls = list(message, "tool_calls")
        .iter()
        .map(call_of)
        .collect::<Result<Vec<_>, _>>()?;
    let refusal = text(message, "refusal");
    let stop = match text(choice, "finish_reason") {
        _ if refusal.is_some() => "refusal",
        Some("content_filter") => "refusal",
        Some("length") => "length",
        Some("tool_calls" | "function_call") => "tools",
        Some(_) if calls.is_empty() => "end",
        // A call that was required ends with `stop`.
        Some(_) => "tools",
        None => return Err(malformed("it has no `finish_reason`")),
    };
    let content = text(message, "content").or(refusal);
    Ok(Answer {
        text: content.unwrap_or_default().to_owned(),
        thinking: REASONING
            .into_iter()
            .find_map(|name| text(message, name))
            .map(str::to_owned),
        calls,
        stop,
        model: text(raw, "model").unwrap_or_default().to_owned(),
        usage: usage_of(member(raw, "usage").unwrap_or(&Json::Null)),
        raw: raw.clone(),
    })
}

fn call_of(call: &Json) -> Result<Asked, Failure> {
    let function = member(call, "function").unwrap_or(&Json::Null);
    let arguments = match text(function, "arguments") {
        None | Some("") => object([]),
        Some(text) => parse(text).map_err(|_| malformed("the arguments of a tool are no JSON"))?,
    };
    Ok(Asked {
        id: text(call, "id").unwrap_or_default().to_owned(),
        name: text(function, "name").unwrap_or_default().to_owned(),
        arguments,
    })
}

fn usage_of(usage: &Json) -> Usage {
    let tokens = |name: &str| count(usage, name).unwrap_or_default();
    let details = member(usage, "prompt_tokens_details");
    Usage {
        input: tokens("prompt_tokens"),
        output: tokens("completion_tokens"),
        cached_input: details
            .and_then(|details| count(details, "cached_tokens"))
            .unwrap_or_default(),
        cache_write: 0,
    }
}

/// Call of a tool that is under way.
#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// Assembles the completion that a stream consists of.
#[derive(Default)]
pub(super) struct Assembly {
    first: Option<Json>,
    content: Option<String>,
    refusal: Option<String>,
    /// The name of the member and the text.
    reasoning: Option<(&'static str, String)>,
    calls: Vec<Call>,
    finish_reason: Option<Json>,
    usage: Option<Json>,
}

impl Assembler for Assembly {
    fn add(&mut self, event: &Json, parts: &mut Parts<'_>) -> Result<Progress, Failure> {
        if member(event, "error").is_some() {
            return Ok(Progress::Failed);
        }
        if let Some(usage) = member(event, "usage") {
            self.usage = Some(usage.clone());
        }
        self.first.get_or_insert_with(|| event.clone());
        let Some(choice) = list(event, "choices").first() else {
            return Ok(Progress::More);
        };
        if let Some(reason) = member(choice, "finish_reason") {
            self.finish_reason = Some(reason.clone());
        }
        let delta = member(choice, "delta").unwrap_or(&Json::Null);
        for name in REASONING {
            if let Some(words) = text(delta, name) {
                self.reasoning
                    .get_or_insert((name, String::new()))
                    .1
                    .push_str(words);
                parts.put("thinking", words, None);
                break;
            }
        }
        for (place, name) in [(&mut self.content, "content"), (&mut self.refusal, "refusal")] {
            if let Some(words) = text(delta, name) {
                place.get_or_insert_default().push_str(words);
                parts.put("text", words, None);
            }
        }
        for call in list(delta, "tool_calls") {
            self.add_call(call, parts)?;
        }
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Result<Json, Failure> {
        let first = self.first.ok_or_else(|| malformed("it has no chunk"))?;
        let mut message = vec![
            ("role", string("assistant")),
            ("content", self.content.as_deref().map_or(Json::Null, string)),
        ];
        if let Some(refusal) = &self.refusal {
            message.push(("refusal", string(refusal)));
        }
        if let Some((name, words)) = &self.reasoning {
            message.push((name, string(words)));
        }
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(|call| {
                let function = object([
                    ("name", string(&call.name)),
                    ("arguments", string(&call.arguments)),
                ]);
                object([
                    ("id", string(&call.id)),
                    ("type", string("function")),
                    ("function", function),
                ])
            });
            message.push(("tool_calls", array(calls)));
        }
        let choice = object([
            ("index", number(0)),
            ("message", object(message)),
            ("finish_reason", self.finish_reason.unwrap_or(Json::Null)),
        ]);
        Ok(with(
            &first,
            [
                ("object", string("chat.completion")),
                ("choices", array([choice])),
                ("usage", self.usage.unwrap_or(Json::Null)),
            ],
        ))
    }
}

impl Assembly {
    fn add_call(&mut self, delta: &Json, parts: &mut Parts<'_>) -> Result<(), Failure> {
        let index = count(delta, "index").and_then(|index| usize::try_from(index).ok());
        let index = index.unwrap_or(self.calls.len());
        if index > self.calls.len() {
            return Err(malformed("its calls of tools are out of order"));
        }
        let function = member(delta, "function").unwrap_or(&Json::Null);
        if index == self.calls.len() {
            let call = Call {
                id: text(delta, "id").unwrap_or_default().to_owned(),
                name: text(function, "name").unwrap_or_default().to_owned(),
                arguments: String::new(),
            };
            parts.put("tool_start", &call.name, Some(&call.id));
            self.calls.push(call);
        }
        if let (Some(call), Some(words)) = (self.calls.get_mut(index), text(function, "arguments")) {
            call.arguments.push_str(words);
            parts.put("tool_arguments", words, Some(&call.id));
        }
        Ok(())
    }
}
