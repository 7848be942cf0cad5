//! The request of a model as a node writes it, checked before anything is sent (docs/spec/models.md).

use vesper_ir::Json;

use super::members::{member, text, whole};
use crate::effect::Failure;

const MEMBERS: [&str; 8] = [
    "system",
    "messages",
    "tools",
    "max_tokens",
    "temperature",
    "output",
    "tool_choice",
    "thinking",
];
const MAX_NAME: usize = 64;

/// Part of a user's message.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Image { media_type: &'a str, data: &'a str },
}

/// Call of a tool that the model made.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a Json,
}

#[derive(Debug)]
pub(super) enum Message<'a> {
    User(Vec<Part<'a>>),
    Assistant {
        text: &'a str,
        calls: Vec<Call<'a>>,
        /// The provider's own form of it.
        raw: Option<&'a Json>,
    },
    Tool {
        call: &'a str,
        text: &'a str,
        is_error: bool,
    },
}

#[derive(Debug)]
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: &'a Json,
}

#[derive(Debug)]
pub(super) struct Structure<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    Auto,
    None,
    Required,
    Tool(&'a str),
}

/// Request that was read.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) system: Option<&'a str>,
    pub(super) messages: Vec<Message<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) choice: Choice<'a>,
    pub(super) max_tokens: u64,
    pub(super) temperature: Option<&'a Json>,
    pub(super) output: Option<Structure<'a>>,
    /// Tokens of reasoning.
    pub(super) thinking: Option<u64>,
}

impl<'a> Conversation<'a> {
    pub(super) fn read(json: &'a Json) -> Result<Self, Failure> {
        let Json::Object(object) = json else {
            return Err(wrong("the request", "an object"));
        };
        if let Some((name, _)) = object
            .entries()
            .iter()
            .find(|(name, _)| !MEMBERS.contains(&&**name))
        {
            let known = MEMBERS.join(", ");
            return Err(invalid(&format!(
                "the request has no member `{}`: they are {known}",
                shown(name)
            )));
        }
        let tools = items(json, "tools")?
            .iter()
            .enumerate()
            .map(|(place, tool)| read_tool(&format!("tools[{place}]"), tool))
            .collect::<Result<Vec<_>, _>>()?;
        let messages = items(json, "messages")?
            .iter()
            .enumerate()
            .map(|(place, message)| read_message(&format!("messages[{place}]"), message))
            .collect::<Result<Vec<_>, _>>()?;
        if messages.is_empty() {
            return Err(wrong("messages", "a list of at least one message"));
        }
        let thinking = member(json, "thinking")
            .map(|thinking| positive("thinking.budget_tokens", thinking, "budget_tokens"))
            .transpose()?;
        let max_tokens = positive("max_tokens", json, "max_tokens")?;
        if thinking.is_some_and(|budget| budget >= max_tokens) {
            return Err(wrong(
                "thinking.budget_tokens",
                "less than `max_tokens`, which it is a part of",
            ));
        }
        let temperature = member(json, "temperature");
        if temperature.is_some_and(|found| !matches!(found, Json::Number(_))) {
            return Err(wrong("temperature", "a number"));
        }
        Ok(Self {
            system: optional_text("system", json, "system")?,
            choice: read_choice(json, &tools)?,
            messages,
            tools,
            max_tokens,
            temperature,
            output: member(json, "output").map(read_structure).transpose()?,
            thinking,
        })
    }

    /// Returns the name of the tool that a call of an earlier answer was for.
    pub(super) fn name_of_call(&self, before: usize, id: &str) -> Option<&'a str> {
        let calls = self
            .messages
            .iter()
            .take(before)
            .rev()
            .filter_map(|message| match message {
                Message::Assistant { calls, .. } => Some(calls),
                _ => None,
            });
        let mut calls = calls.flatten();
        calls.find(|call| call.id == id).map(|call| call.name)
    }
}

fn read_message<'a>(place: &str, json: &'a Json) -> Result<Message<'a>, Failure> {
    match text(json, "role") {
        Some("user") => Ok(Message::User(read_content(place, json)?)),
        Some("assistant") => Ok(Message::Assistant {
            text: optional_text(&format!("{place}.content"), json, "content")?.unwrap_or_default(),
            calls: items(json, "tool_calls")?
                .iter()
                .enumerate()
                .map(|(number, call)| read_call(&format!("{place}.tool_calls[{number}]"), call))
                .collect::<Result<_, _>>()?,
            raw: member(json, "raw"),
        }),
        Some("tool") => Ok(Message::Tool {
            call: required_text(&format!("{place}.call"), json, "call")?,
            text: required_text(&format!("{place}.content"), json, "content")?,
            is_error: match member(json, "is_error") {
                None => false,
                Some(Json::Boolean(is_error)) => *is_error,
                Some(_) => return Err(wrong(&format!("{place}.is_error"), "true or false")),
            },
        }),
        _ => Err(wrong(&format!("{place}.role"), "`user`, `assistant` or `tool`")),
    }
}

fn read_content<'a>(place: &str, json: &'a Json) -> Result<Vec<Part<'a>>, Failure> {
    let expected = "a text, or a list of parts";
    match member(json, "content") {
        Some(Json::Text(text)) => Ok(vec![Part::Text(text)]),
        Some(Json::Array(parts)) if !parts.is_empty() => parts
            .iter()
            .enumerate()
            .map(|(number, part)| read_part(&format!("{place}.content[{number}]"), part))
            .collect(),
        _ => Err(wrong(&format!("{place}.content"), expected)),
    }
}

fn read_part<'a>(place: &str, json: &'a Json) -> Result<Part<'a>, Failure> {
    match text(json, "type") {
        Some("text") => Ok(Part::Text(required_text(&format!("{place}.text"), json, "text")?)),
        Some("image") => Ok(Part::Image {
            media_type: required_text(&format!("{place}.media_type"), json, "media_type")?,
            data: required_text(&format!("{place}.data"), json, "data")?,
        }),
        _ => Err(wrong(&format!("{place}.type"), "`text` or `image`")),
    }
}

fn read_call<'a>(place: &str, json: &'a Json) -> Result<Call<'a>, Failure> {
    Ok(Call {
        id: required_text(&format!("{place}.id"), json, "id")?,
        name: required_text(&format!("{place}.name"), json, "name")?,
        arguments: match json {
            Json::Object(object) => object.get("arguments"),
            _ => None,
        }
        .ok_or_else(|| wrong(&format!("{place}.arguments"), "the arguments"))?,
    })
}

fn read_tool<'a>(place: &str, json: &'a Json) -> Result<Tool<'a>, Failure> {
    let name = required_text(&format!("{place}.name"), json, "name")?;
    if !is_name(name) {
        let expected = "a name: letters, digits, `_` and `-`, at most 64";
        return Err(wrong(&format!("{place}.name"), expected));
    }
    Ok(Tool {
        name,
        description: optional_text(&format!("{place}.description"), json, "description")?.unwrap_or_default(),
        parameters: member(json, "parameters")
            .filter(|found| matches!(found, Json::Object(_)))
            .ok_or_else(|| wrong(&format!("{place}.parameters"), "a JSON Schema"))?,
    })
}

fn read_structure(json: &Json) -> Result<Structure<'_>, Failure> {
    Ok(Structure {
        name: text(json, "name")
            .filter(|name| is_name(name))
            .ok_or_else(|| wrong("output.name", "a name"))?,
        schema: member(json, "schema")
            .filter(|found| matches!(found, Json::Object(_)))
            .ok_or_else(|| wrong("output.schema", "a JSON Schema"))?,
    })
}

fn read_choice<'a>(json: &'a Json, tools: &[Tool<'a>]) -> Result<Choice<'a>, Failure> {
    match optional_text("tool_choice", json, "tool_choice")? {
        None | Some("auto") => Ok(Choice::Auto),
        Some("none") => Ok(Choice::None),
        Some("required") if !tools.is_empty() => Ok(Choice::Required),
        Some(name) if tools.iter().any(|tool| tool.name == name) => Ok(Choice::Tool(name)),
        Some(_) => Err(wrong(
            "tool_choice",
            "`auto`, `none`, or with `tools` `required` or the name of one",
        )),
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_plain)
}

fn items<'a>(json: &'a Json, name: &str) -> Result<&'a [Json], Failure> {
    match member(json, name) {
        None => Ok(&[]),
        Some(Json::Array(items)) => Ok(items),
        Some(_) => Err(wrong(name, "a list")),
    }
}

fn optional_text<'a>(place: &str, json: &'a Json, name: &str) -> Result<Option<&'a str>, Failure> {
    match member(json, name) {
        None => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(place, "a text")),
    }
}

fn required_text<'a>(place: &str, json: &'a Json, name: &str) -> Result<&'a str, Failure> {
    text(json, name).ok_or_else(|| wrong(place, "a text"))
}

fn positive(place: &str, json: &Json, name: &str) -> Result<u64, Failure> {
    let found = match member(json, name) {
        Some(Json::Number(number)) => whole(number),
        _ => None,
    };
    found
        .filter(|found| (1..=1 << 32).contains(found))
        .ok_or_else(|| wrong(place, "a whole number from 1"))
}

fn wrong(place: &str, expected: &str) -> Failure {
    invalid(&format!(
        "`{place}` of the request is not as expected: {expected}"
    ))
}

fn invalid(problem: &str) -> Failure {
    Failure::new("invalid_request", format!("nothing was sent: {problem}"))
}

fn shown(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(40).collect()
}
