//! Conditions of routes: pure nodes, evaluated over an envelope.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use vesper_interp::guard::guarded;
use vesper_interp::{Limits, Program};

use crate::machines::pipeline::Pipeline;
use crate::proto::v1::{AgentConfig, Envelope, PipelineConfig};
use crate::refusal::Refusal;

/// What a condition may declare as inputs.
const INPUTS: [&str; 4] = ["inputs", "metadata", "outputs", "stage"];
const MAX_TIME: Duration = Duration::from_millis(100);
/// Programs that are kept; beyond that all are loaded again.
const MAX_PROGRAMS: usize = 10_000;

/// The compiled conditions, by IR.
#[derive(Debug, Default)]
pub struct Conditions {
    programs: HashMap<String, Program>,
}

impl Conditions {
    /// Refuses a pipeline with a condition that cannot be evaluated.
    pub fn check(&mut self, config: &PipelineConfig) -> Result<(), Refusal> {
        let pipeline = Pipeline::new(config.clone())?;
        for stage in &pipeline.config().agents {
            for (number, rule) in stage.routes.iter().enumerate() {
                if rule.condition_ir.is_empty() {
                    continue;
                }
                let fault = |what: &str| {
                    let route = number + 1;
                    Refusal::invalid(format!(
                        "condition_ir of route {route} of \"{}\" {what}.",
                        stage.name
                    ))
                };
                let program = self
                    .program(&rule.condition_ir)
                    .map_err(|why| fault(&format!("is refused: {why}")))?;
                let node = program.node();
                if !node.calls.is_empty() {
                    return Err(fault("calls other nodes"));
                }
                if node.outputs.len() != 1 {
                    return Err(fault("needs one output, a boolean"));
                }
                if let Some(input) = node.inputs.iter().find(|input| !INPUTS.contains(&&*input.name)) {
                    return Err(fault(&format!(
                        "has the input \"{}\"; there are {}",
                        input.name,
                        INPUTS.join(", ")
                    )));
                }
            }
        }
        Ok(())
    }

    /// Returns the place of the first route whose condition holds.
    pub fn select(&mut self, stage: &AgentConfig, envelope: &Envelope) -> Result<Option<i32>, String> {
        for (place, rule) in (0..).zip(&stage.routes) {
            if rule.condition_ir.is_empty() {
                return Ok(Some(place));
            }
            let holds = self
                .evaluate(&rule.condition_ir, stage, envelope)
                .map_err(|why| {
                    format!(
                        "The condition `{}` of \"{}\" failed: {why}",
                        rule.condition, stage.name
                    )
                })?;
            if holds {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn evaluate(&mut self, ir: &str, stage: &AgentConfig, envelope: &Envelope) -> Result<bool, String> {
        let program = self.program(ir)?;
        let mut inputs = String::from("{");
        for input in &program.node().inputs {
            if inputs.len() > 1 {
                inputs.push(',');
            }
            let value = match &*input.name {
                "inputs" => object(&envelope.inputs_json),
                "outputs" => object(&envelope.outputs_json),
                "metadata" => Value::from_iter(envelope.metadata.clone()).to_string(),
                _ => Value::from(stage.name.as_str()).to_string(),
            };
            let _ = write!(inputs, "\"{}\":{value}", input.name);
        }
        inputs.push('}');
        let limits = Limits {
            time: Some(MAX_TIME),
            ..Limits::default()
        };
        let outcome = guarded(|| program.run_json(inputs.as_bytes(), None, limits))?;
        let read: Value = serde_json::from_str(&outcome).map_err(|error| error.to_string())?;
        let outputs = read.get("value").and_then(Value::as_object);
        let holds = outputs
            .and_then(|outputs| outputs.values().next())
            .and_then(Value::as_bool);
        holds.ok_or_else(|| format!("it gave {outcome}"))
    }

    fn program(&mut self, ir: &str) -> Result<&Program, String> {
        if !self.programs.contains_key(ir) {
            if self.programs.len() >= MAX_PROGRAMS {
                self.programs.clear();
            }
            let program =
                guarded(|| Program::load(ir.as_bytes()))?.map_err(|rejected| rejected.to_string())?;
            self.programs.insert(ir.to_owned(), program);
        }
        self.programs
            .get(ir)
            .ok_or_else(|| "it was not loaded".to_owned())
    }
}

/// Joins members whose values are JSON to an object.
fn object(members: &std::collections::BTreeMap<String, String>) -> String {
    let members = members
        .iter()
        .map(|(name, json)| format!("{}:{json}", Value::from(name.as_str())));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
