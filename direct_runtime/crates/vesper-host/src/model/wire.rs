//! What the adapters of providers have in common: where a request goes, how a stream is framed and assembled.

use vesper_ir::Json;

use super::answer::{Answer, Parts};
use super::catalog::{Api, Model};
use super::conversation::Conversation;
use super::lines::Framing;
use super::{anthropic, ollama, openai};
use crate::effect::Failure;
use crate::http::{bad_response, quote};

/// State of a stream after one of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
    /// The event is an error of the provider.
    Failed,
}

/// Assembles the events of a stream to the answer that the provider gives without one.
pub(super) trait Assembler: Send {
    fn add(&mut self, event: &Json, parts: &mut Parts<'_>) -> Result<Progress, Failure>;

    fn finish(self: Box<Self>) -> Result<Json, Failure>;
}

impl Api {
    /// Returns true where the provider sends parts of an answer in a form that is read here.
    pub(super) fn can_stream(self) -> bool {
        !matches!(self, Self::Bedrock | Self::Custom)
    }

    pub(super) fn framing(self) -> Framing {
        match self {
            Self::Ollama => Framing::Lines,
            _ => Framing::Events,
        }
    }

    /// Returns the path of a request below the base URL.
    pub(super) fn endpoint(self, model: &Model, is_streamed: bool) -> String {
        let name = quote(&model.model, b"");
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Vertex => {
                let verb = if is_streamed {
                    "streamRawPredict"
                } else {
                    "rawPredict"
                };
                format!("/publishers/anthropic/models/{name}:{verb}")
            }
            Self::Bedrock => format!("/model/{name}/invoke"),
            Self::OpenAi => "/chat/completions".to_owned(),
            Self::Azure => "/openai/v1/chat/completions".to_owned(),
            Self::Ollama => "/api/chat".to_owned(),
            Self::Custom => String::new(),
        }
    }

    /// Returns the headers of a request besides those of the settings.
    pub(super) fn headers(self, is_streamed: bool) -> Vec<(&'static str, &'static str)> {
        let mut headers = Vec::new();
        if is_streamed && self.framing() == Framing::Events {
            headers.push(("accept", "text/event-stream"));
        }
        if self == Self::Anthropic {
            headers.push(("anthropic-version", "2023-06-01"));
        }
        headers
    }

    pub(super) fn encode(
        self,
        model: &Model,
        conversation: &Conversation<'_>,
        is_streamed: bool,
    ) -> Result<Json, Failure> {
        match self {
            Self::OpenAi | Self::Azure => Ok(openai::encode(model, conversation, is_streamed)),
            Self::Ollama => ollama::encode(model, conversation, is_streamed),
            Self::Anthropic | Self::Vertex | Self::Bedrock | Self::Custom => {
                Ok(anthropic::encode(model, conversation, is_streamed))
            }
        }
    }

    pub(super) fn decode(self, raw: &Json, conversation: &Conversation<'_>) -> Result<Answer, Failure> {
        match self {
            Self::OpenAi | Self::Azure => openai::decode(raw),
            Self::Ollama => ollama::decode(raw, conversation),
            Self::Anthropic | Self::Vertex | Self::Bedrock | Self::Custom => anthropic::decode(raw),
        }
    }

    pub(super) fn assembler(self, conversation: &Conversation<'_>) -> Box<dyn Assembler> {
        match self {
            Self::OpenAi | Self::Azure => Box::<openai::Assembly>::default(),
            Self::Ollama => Box::new(ollama::Assembly::new(conversation.messages.len())),
            Self::Anthropic | Self::Vertex | Self::Bedrock | Self::Custom => {
                Box::<anthropic::Assembly>::default()
            }
        }
    }
}

/// Returns the failure of an answer that is not of the provider's form.
pub(super) fn malformed(problem: &str) -> Failure {
    bad_response(format!("the answer is malformed: {problem}"))
}
