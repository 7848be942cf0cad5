//! Records of decisions: typed JSON with `decision` and the members of the decision.

use std::fmt::Write as _;

use crate::typed_json::write_text;

/// Member of a record.
#[derive(Clone, Copy, Debug)]
pub enum Member<'a> {
    Number(i64),
    Text(&'a str),
}

/// Returns the record of a decision with these members.
pub fn record(decision: &str, members: &[(&str, Member<'_>)]) -> String {
    let mut out = String::with_capacity(96);
    let mut all: Vec<(&str, Member<'_>)> = Vec::with_capacity(members.len() + 1);
    all.extend(members);
    all.push(("decision", Member::Text(decision)));
    all.sort_unstable_by_key(|(name, _)| *name);
    for (place, (name, member)) in all.into_iter().enumerate() {
        out.push(if place == 0 { '{' } else { ',' });
        write_text(&mut out, name);
        out.push(':');
        match member {
            // Writing to a string cannot fail.
            Member::Number(number) => {
                let _ = write!(out, "{number}");
            }
            Member::Text(text) => write_text(&mut out, text),
        }
    }
    out.push('}');
    out
}
