//! A pipeline that can run: its stages, routes and edge limits refer to each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::proto::v1::{AgentConfig, PipelineConfig, RoutingRule};
use crate::refusal::Refusal;

const MAX_STAGES: usize = 1_000;
const MAX_ROUTES: usize = 1_000;
const MAX_TARGETS: usize = 100;

/// A checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    config: PipelineConfig,
    places: BTreeMap<String, usize>,
    limits: BTreeMap<(String, String), i64>,
}

impl Pipeline {
    /// Checks a configuration. The message of a refusal names its fault.
    pub fn new(config: PipelineConfig) -> Result<Self, Refusal> {
        if config.name.is_empty() {
            return Err(Refusal::invalid("Give the pipeline a name."));
        }
        let count = config.agents.len();
        if !(1..=MAX_STAGES).contains(&count) {
            return Err(Refusal::invalid(format!(
                "The pipeline \"{}\" has {count} stages; it needs 1 to {MAX_STAGES}.",
                config.name
            )));
        }
        let mut places = BTreeMap::new();
        for (place, stage) in config.agents.iter().enumerate() {
            check_stage(stage)?;
            if places.insert(stage.name.clone(), place).is_some() {
                return Err(Refusal::invalid(format!(
                    "Two stages are named \"{}\".",
                    stage.name
                )));
            }
        }
        let know = |stage: &str, by: &str| {
            if places.contains_key(stage) {
                return Ok(());
            }
            Err(Refusal::invalid(format!(
                "{by} names the stage \"{stage}\", which does not exist."
            )))
        };
        for stage in &config.agents {
            if !stage.on_error.is_empty() {
                know(&stage.on_error, &format!("on_error of \"{}\"", stage.name))?;
            }
            for (number, rule) in stage.routes.iter().enumerate() {
                let name = format!("Route {} of \"{}\"", number + 1, stage.name);
                check_rule(rule, &name)?;
                for target in &rule.targets {
                    know(target, &name)?;
                }
                if !rule.join.is_empty() {
                    know(&rule.join, &name)?;
                }
            }
        }
        let mut limits = BTreeMap::new();
        for limit in &config.edge_limits {
            know(&limit.from, "An edge limit")?;
            know(&limit.to, "An edge limit")?;
            if limit.max_traversals < 0 {
                return Err(Refusal::invalid("max_traversals of an edge limit is negative."));
            }
            let edge = (limit.from.clone(), limit.to.clone());
            if limits.insert(edge, limit.max_traversals).is_some() {
                return Err(Refusal::invalid(format!(
                    "Two limits are for {}->{}.",
                    limit.from, limit.to
                )));
            }
        }
        Ok(Self {
            config,
            places,
            limits,
        })
    }

    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    /// Returns the stage with this name.
    pub fn stage(&self, name: &str) -> Option<&AgentConfig> {
        self.config.agents.get(*self.places.get(name)?)
    }

    /// Returns the first stage.
    pub fn entry(&self) -> &str {
        self.config.agents.first().map_or("", |stage| stage.name.as_str())
    }

    /// Returns how often an edge may be taken.
    pub fn limit(&self, from: &str, to: &str) -> Option<i64> {
        self.limits.get(&(from.to_owned(), to.to_owned())).copied()
    }
}

fn check_stage(stage: &AgentConfig) -> Result<(), Refusal> {
    let name = &stage.name;
    if name.is_empty() || name.len() > 200 || name.contains("->") {
        return Err(Refusal::invalid(format!(
            "\"{name}\" is no name of a stage: it has 1 to 200 bytes and no \"->\"."
        )));
    }
    if stage.agent.is_empty() {
        return Err(Refusal::invalid(format!("The stage \"{name}\" names no agent.")));
    }
    if stage.service.is_empty() {
        return Err(Refusal::invalid(format!(
            "The stage \"{name}\" names no service."
        )));
    }
    if stage.routes.len() > MAX_ROUTES {
        return Err(Refusal::invalid(format!(
            "The stage \"{name}\" has more than {MAX_ROUTES} routes."
        )));
    }
    if stage.timeout_us.is_some_and(|timeout_us| timeout_us < 1) {
        return Err(Refusal::invalid(format!(
            "timeout_us of the stage \"{name}\" is not positive."
        )));
    }
    Ok(())
}

fn check_rule(rule: &RoutingRule, name: &str) -> Result<(), Refusal> {
    let distinct: BTreeSet<&String> = rule.targets.iter().collect();
    if distinct.len() != rule.targets.len() || distinct.len() > MAX_TARGETS {
        return Err(Refusal::invalid(format!(
            "{name} repeats a target or has more than {MAX_TARGETS}."
        )));
    }
    if (rule.targets.len() > 1) == rule.join.is_empty() {
        return Err(Refusal::invalid(format!(
            "{name} needs a join where it has several targets, and only there."
        )));
    }
    if rule.condition.is_empty() != rule.condition_ir.is_empty() {
        return Err(Refusal::invalid(format!(
            "{name} needs condition and condition_ir, or neither of them."
        )));
    }
    Ok(())
}
