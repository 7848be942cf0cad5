//! Messages of Anthropic, also as Vertex and Bedrock offer them.

use vesper_ir::Json;
use vesper_ir::json::parse;

use super::answer::{Answer, Asked, Parts};
use super::catalog::{Api, Model, PromptCache, Usage};
use super::conversation::{Choice, Conversation, Message, Part};
use super::members::{array, count, list, member, number, object, string, text, with};
use super::wire::{Assembler, Progress, malformed};
use crate::effect::Failure;

/// Returns the body of a request.
pub(super) fn encode(model: &Model, conversation: &Conversation<'_>, is_streamed: bool) -> Json {
    let cached = |json: Json| match cache_control(model.prompt_cache) {
        Some(control) => with(&json, [("cache_control", control)]),
        None => json,
    };
    let mut messages = messages_of(conversation);
    // The end of the conversation: the next request of an agent begins with all of it.
    if let Some(last) = messages.last_mut()
        && let Some(block) = last.1.pop()
    {
        last.1.push(cached(block));
    }
    let mut body = vec![
        ("max_tokens", number(conversation.max_tokens)),
        (
            "messages",
            array(
                messages
                    .into_iter()
                    .map(|(role, blocks)| object([("role", string(role)), ("content", array(blocks))])),
            ),
        ),
    ];
    match model.api {
        Api::Vertex => body.push(("anthropic_version", string("vertex-2023-10-16"))),
        Api::Bedrock => body.push(("anthropic_version", string("bedrock-2023-05-31"))),
        _ => body.push(("model", string(&model.model))),
    }
    if is_streamed && model.api != Api::Bedrock {
        body.push(("stream", Json::Boolean(true)));
    }
    if let Some(system) = conversation.system {
        let block = object([("type", string("text")), ("text", string(system))]);
        body.push(("system", array([cached(block)])));
    }
    if let Some(temperature) = conversation.temperature {
        body.push(("temperature", temperature.clone()));
    }
    if !conversation.tools.is_empty() {
        let tools = conversation.tools.iter().map(|tool| {
            object([
                ("name", string(tool.name)),
                ("description", string(tool.description)),
                ("input_schema", tool.parameters.clone()),
            ])
        });
        body.push(("tools", array(tools)));
        let choice = match conversation.choice {
            Choice::Auto => object([("type", string("auto"))]),
            Choice::None => object([("type", string("none"))]),
            Choice::Required => object([("type", string("any"))]),
            Choice::Tool(name) => object([("type", string("tool")), ("name", string(name))]),
        };
        body.push(("tool_choice", choice));
    }
    if let Some(output) = &conversation.output {
        let format = object([("type", string("json_schema")), ("schema", output.schema.clone())]);
        body.push(("output_config", object([("format", format)])));
    }
    if let Some(budget) = conversation.thinking {
        let thinking = if model.is_adaptive {
            object([("type", string("adaptive"))])
        } else {
            object([("type", string("enabled")), ("budget_tokens", number(budget))])
        };
        body.push(("thinking", thinking));
    }
    object(body)
}

fn cache_control(cache: PromptCache) -> Option<Json> {
    let mut members = vec![("type", string("ephemeral"))];
    match cache {
        PromptCache::Off => return None,
        PromptCache::FiveMinutes => {}
        PromptCache::OneHour => members.push(("ttl", string("1h"))),
    }
    Some(object(members))
}

/// Returns the messages with their blocks: results of tools are blocks of the user, and neighbours of one role are one.
fn messages_of(conversation: &Conversation<'_>) -> Vec<(&'static str, Vec<Json>)> {
    let mut found: Vec<(&'static str, Vec<Json>)> = Vec::new();
    for message in &conversation.messages {
        let (role, blocks) = match message {
            Message::User(parts) => ("user", parts.iter().map(block_of).collect()),
            Message::Assistant { text, calls, raw } => (
                "assistant",
                raw.and_then(own_blocks).unwrap_or_else(|| {
                    let words = (!text.is_empty()).then(|| block_of(&Part::Text(text)));
                    let calls = calls.iter().map(|call| {
                        object([
                            ("type", string("tool_use")),
                            ("id", string(call.id)),
                            ("name", string(call.name)),
                            ("input", call.arguments.clone()),
                        ])
                    });
                    words.into_iter().chain(calls).collect()
                }),
            ),
            Message::Tool { call, text, is_error } => {
                let mut result = vec![
                    ("type", string("tool_result")),
                    ("tool_use_id", string(call)),
                    ("content", string(text)),
                ];
                if *is_error {
                    result.push(("is_error", Json::Boolean(true)));
                }
                ("user", vec![object(result)])
            }
        };
        match found.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => found.push((role, blocks)),
        }
    }
    found
}

fn block_of(part: &Part<'_>) -> Json {
    match part {
        Part::Text(text) => object([("type", string("text")), ("text", string(text))]),
        Part::Image { media_type, data } => {
            let source = object([
                ("type", string("base64")),
                ("media_type", string(media_type)),
                ("data", string(data)),
            ]);
            object([("type", string("image")), ("source", source)])
        }
    }
}

/// Returns the blocks of an answer of this interface; `None` for that of another one.
fn own_blocks(raw: &Json) -> Option<Vec<Json>> {
    let blocks = list(raw, "content");
    (text(raw, "type") == Some("message") && !blocks.is_empty()).then(|| blocks.to_vec())
}

/// Reads a whole answer.
pub(super) fn decode(raw: &Json) -> Result<Answer, Failure> {
    if text(raw, "type") != Some("message") || member(raw, "content").is_none() {
        return Err(malformed("it is no message"));
    }
    let mut answer = Answer {
        text: String::new(),
        thinking: None,
        calls: Vec::new(),
        stop: match text(raw, "stop_reason") {
            Some("tool_use") => "tools",
            Some("max_tokens" | "model_context_window_exceeded") => "length",
            Some("refusal") => "refusal",
            Some(_) => "end",
            None => return Err(malformed("it has no `stop_reason`")),
        },
        model: text(raw, "model").unwrap_or_default().to_owned(),
        usage: usage_of(member(raw, "usage").unwrap_or(&Json::Null)),
        raw: raw.clone(),
    };
    for block in list(raw, "content") {
        match text(block, "type") {
            Some("text") => answer.text.push_str(text(block, "text").unwrap_or_default()),
            Some("thinking") => {
                let words = text(block, "thinking").unwrap_or_default();
                answer.thinking.get_or_insert_default().push_str(words);
            }
            Some("tool_use") => answer.calls.push(Asked {
                id: text(block, "id").unwrap_or_default().to_owned(),
                name: text(block, "name").unwrap_or_default().to_owned(),
                arguments: member(block, "input").cloned().unwrap_or_else(|| object([])),
            }),
            // Redacted reasoning and blocks of the provider's own tools stay in `raw`.
            _ => {}
        }
    }
    Ok(answer)
}

fn usage_of(usage: &Json) -> Usage {
    let tokens = |name: &str| count(usage, name).unwrap_or_default();
    let cached_input = tokens("cache_read_input_tokens");
    let cache_write = tokens("cache_creation_input_tokens");
    Usage {
        input: tokens("input_tokens") + cached_input + cache_write,
        output: tokens("output_tokens"),
        cached_input,
        cache_write,
    }
}

/// Block of an answer that is under way.
struct Block {
    start: Json,
    /// The text that its deltas make: of the answer, of the reasoning, or of the arguments.
    text: String,
    signature: String,
}

/// Assembles the message that a stream consists of.
#[derive(Default)]
pub(super) struct Assembly {
    message: Option<Json>,
    blocks: Vec<Block>,
    delta: Option<Json>,
    usage: Option<Json>,
}

impl Assembler for Assembly {
    fn add(&mut self, event: &Json, parts: &mut Parts<'_>) -> Result<Progress, Failure> {
        match text(event, "type") {
            Some("message_start") => self.message = member(event, "message").cloned(),
            Some("content_block_start") => {
                let start =
                    member(event, "content_block").ok_or_else(|| malformed("a block has no start"))?;
                if count(event, "index") != u64::try_from(self.blocks.len()).ok() {
                    return Err(malformed("its blocks are out of order"));
                }
                if text(start, "type") == Some("tool_use") {
                    parts.put(
                        "tool_start",
                        text(start, "name").unwrap_or_default(),
                        text(start, "id"),
                    );
                }
                self.blocks.push(Block {
                    start: start.clone(),
                    text: String::new(),
                    signature: String::new(),
                });
            }
            Some("content_block_delta") => {
                let place = count(event, "index").and_then(|index| usize::try_from(index).ok());
                let block = place.and_then(|place| self.blocks.get_mut(place));
                let (Some(block), Some(delta)) = (block, member(event, "delta")) else {
                    return Err(malformed("a delta belongs to no block"));
                };
                block.add(delta, parts);
            }
            Some("message_delta") => {
                self.delta = member(event, "delta").cloned();
                self.usage = member(event, "usage").cloned();
            }
            Some("message_stop") => return Ok(Progress::Done),
            Some("error") => return Ok(Progress::Failed),
            // `ping`, `content_block_stop`, and events that later versions of the interface have.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Result<Json, Failure> {
        let message = self
            .message
            .ok_or_else(|| malformed("it has no `message_start`"))?;
        let content = self
            .blocks
            .into_iter()
            .map(Block::finish)
            .collect::<Result<Vec<_>, _>>()?;
        let entries = |json: &Option<Json>| match json {
            Some(Json::Object(object)) => object.entries().to_vec(),
            _ => Vec::new(),
        };
        let (delta, usage) = (entries(&self.delta), entries(&self.usage));
        // The counts at the end are those of the whole answer; the cached parts of the input stand at its start.
        let known = usage
            .iter()
            .filter(|(_, value)| !matches!(value, Json::Null))
            .map(|(name, value)| (&**name, value.clone()));
        let usage = with(member(&message, "usage").unwrap_or(&Json::Null), known);
        let message = with(
            &message,
            delta.iter().map(|(name, value)| (&**name, value.clone())),
        );
        Ok(with(&message, [("content", array(content)), ("usage", usage)]))
    }
}

impl Block {
    fn add(&mut self, delta: &Json, parts: &mut Parts<'_>) {
        let (kind, name) = match text(delta, "type") {
            Some("text_delta") => ("text", "text"),
            Some("thinking_delta") => ("thinking", "thinking"),
            Some("input_json_delta") => ("tool_arguments", "partial_json"),
            Some("signature_delta") => {
                self.signature
                    .push_str(text(delta, "signature").unwrap_or_default());
                return;
            }
            _ => return,
        };
        let words = text(delta, name).unwrap_or_default();
        self.text.push_str(words);
        let call = (kind == "tool_arguments")
            .then(|| text(&self.start, "id"))
            .flatten();
        parts.put(kind, words, call);
    }

    fn finish(self) -> Result<Json, Failure> {
        let (name, value) = match text(&self.start, "type") {
            Some("text") => ("text", string(&self.text)),
            Some("thinking") => ("thinking", string(&self.text)),
            Some("tool_use") if self.text.is_empty() => return Ok(self.start),
            Some("tool_use") => {
                let arguments = parse(&self.text);
                (
                    "input",
                    arguments.map_err(|_| malformed("the arguments of a tool are no JSON"))?,
                )
            }
            _ => return Ok(self.start),
        };
        let whole = with(&self.start, [(name, value)]);
        if self.signature.is_empty() {
            return Ok(whole);
        }
        Ok(with(&whole, [("signature", string(&self.signature))]))
    }
}
