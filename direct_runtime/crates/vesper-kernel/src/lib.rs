//! The kernel: processes of agents, their quotas, questions to people, services, pipelines and messages.

pub mod counts;
pub mod hub;
pub mod ids;
pub mod kernel;
pub mod log;
pub mod machines;
pub mod proto;
pub mod refusal;
pub mod routing;
pub mod settings;
pub mod writer;
