//! Decoder of budgets. Like all policies they belong to the Host.

use std::sync::Arc;

use crate::Rejected;
use crate::budget::{Budget, OnExceeded, Scope};
use crate::canonical::Reader;
use crate::decimal::Decimal;
use crate::limits::{LISTED, NAME_BYTES};

/// Reads the budgets of a policy or of a call, outermost first.
pub(super) fn budgets(reader: &mut Reader<'_>) -> Result<Vec<Budget>, Rejected> {
    let found = reader.list(LISTED, budget)?;
    if found.is_empty() {
        return Err(reader.refuse("`budgets` is empty"));
    }
    Ok(found)
}

fn budget(reader: &mut Reader<'_>) -> Result<Budget, Rejected> {
    reader.open_object()?;
    let alert_percent = amount(reader, "alert_percent")?;
    let calls = amount(reader, "calls")?;
    let name = reader.field("name", |reader| reader.string(NAME_BYTES))?;
    let on_exceeded = reader.optional_field("on_exceeded", |reader| {
        let word = reader.string(NAME_BYTES)?;
        OnExceeded::from_name(&word)
            .filter(|found| *found != OnExceeded::Block)
            .ok_or_else(|| unknown(reader, "on_exceeded", &word))
    })?;
    let scope = reader.field("scope", |reader| {
        let word = reader.string(NAME_BYTES)?;
        Scope::from_name(&word).ok_or_else(|| unknown(reader, "scope", &word))
    })?;
    let time_us = amount(reader, "time_us")?;
    let tokens = amount(reader, "tokens")?;
    let usd = reader.optional_field("usd", |reader| {
        let text = reader.string(NAME_BYTES)?;
        match Decimal::parse(&text) {
            Ok(found) if found.signum() > 0 => Ok(Arc::from(text)),
            _ => Err(unknown(reader, "usd", &text)),
        }
    })?;
    reader.close_object()?;
    if name.is_empty() || alert_percent.is_some_and(|share| share > 100) {
        return Err(reader.refuse("a budget has a name, and `alert_percent` from 1 to 100"));
    }
    if usd.is_none() && tokens.is_none() && calls.is_none() && time_us.is_none() {
        return Err(reader.refuse("a budget limits nothing"));
    }
    Ok(Budget {
        scope,
        name: Arc::from(name),
        usd,
        tokens,
        calls,
        time_us,
        on_exceeded: on_exceeded.unwrap_or_default(),
        alert_percent,
        depth: 0,
    })
}

fn amount(reader: &mut Reader<'_>, field: &str) -> Result<Option<i64>, Rejected> {
    reader.optional_field(field, |reader| match reader.integer()? {
        number @ 1.. => Ok(number),
        number => Err(reader.refuse(format_args!("`{field}` of a budget is {number}"))),
    })
}

fn unknown(reader: &Reader<'_>, field: &str, text: &str) -> Rejected {
    reader.refuse(format_args!("`{field}` of a budget is `{}`", text.escape_debug()))
}
