//! Landlock and seccomp.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::filter;

/// Confines this process and returns what the kernel lacks, as texts.
///
/// Files below `readable` stay readable; nothing can be written, executed or connected to. All threads are confined.
/// Fails where the kernel has no seccomp: then nothing is a boundary.
pub fn confine(readable: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut lacks = Vec::new();
    let landlock = restrict_files(readable).map_err(|error| format!("Landlock failed: {error}"))?;
    match landlock.ruleset {
        RulesetStatus::FullyEnforced => {}
        RulesetStatus::PartiallyEnforced => {
            lacks.push("Landlock of Linux 6.12: older rules confine files".to_owned());
        }
        RulesetStatus::NotEnforced => {
            lacks.push("Landlock: no file can be opened instead".to_owned());
        }
    }
    let opens_files = landlock.ruleset != RulesetStatus::NotEnforced;
    filter::apply(opens_files).map_err(|error| format!("seccomp failed: {error}"))?;
    Ok(lacks)
}

fn restrict_files(readable: &[PathBuf]) -> Result<RestrictionStatus, RulesetError> {
    let abi = ABI::V6;
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(
            readable,
            AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .restrict_self()
}
