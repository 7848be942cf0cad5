//! Performer of `budget_read`: what a budget around the step admits, and what of it is used.

use std::sync::Arc;

use vesper_ir::Value;
use vesper_ir::json::parse;

use super::amounts::{Amounts, Resource};
use super::ledger::Standing;
use super::limits::Limit;
use super::state::{BudgetState, StoreError};
use crate::effect::{Ask, Failure, Pending, Performer};
use crate::model::Usd;
use crate::sources::SystemSources;

/// Reads the budgets around a request.
#[derive(Debug)]
pub struct BudgetReader(Arc<BudgetState>);

impl BudgetReader {
    pub fn new(state: Arc<BudgetState>) -> Self {
        Self(state)
    }

    async fn read(&self, ask: Ask<'_>) -> Result<Value, Failure> {
        let name = ask.fixed("budget");
        let Some(budget) = ask.budgets.iter().rfind(|each| &*each.name == name) else {
            let problem = format!("no budget around this step is called `{name}`");
            return Err(Failure::new("not_found", problem));
        };
        let now_us = SystemSources::shared().monotonic_us();
        let keys = [Arc::clone(&budget.key)];
        let unread = |error: StoreError| Failure::new("unavailable", error.0);
        let found = self.0.read(&keys, now_us).await.map_err(unread)?;
        let standing = found.into_iter().next().unwrap_or_default();
        let json = parse(&text_of(&budget.limit, &standing)).map_err(|_| {
            Failure::new(
                "unavailable",
                "the count of the budget has another form than JSON",
            )
        })?;
        Ok(Value::Json(Arc::new(json)))
    }
}

impl Performer for BudgetReader {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move { Ok(self.read(ask).await?) })
    }

    fn probe<'a>(&'a self, _: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move {
            let problem = "reading a budget changes nothing: it is not probed";
            Err(Failure::new("unavailable", problem).into())
        })
    }

    fn close(&self) {
        self.0.close();
    }
}

fn text_of(limit: &Limit, standing: &Standing) -> String {
    let taken = standing.used.plus(&standing.reserved);
    let of = |amounts: &Amounts| members(|resource| Some(amounts.of(resource)));
    let remaining = members(|resource| Some(limit.of(resource)?.saturating_sub(taken.of(resource))));
    format!(
        "{{\"limit\":{},\"used\":{},\"reserved\":{},\"remaining\":{remaining}}}",
        members(|resource| limit.of(resource)),
        of(&standing.used),
        of(&standing.reserved),
    )
}

/// Returns the JSON of an amount of each resource; money is a text, so that it stays exact.
fn members(amount: impl Fn(Resource) -> Option<u128>) -> String {
    let member = |resource: Resource| {
        let name = if resource == Resource::Time {
            "time_us"
        } else {
            resource.name()
        };
        match (resource, amount(resource)) {
            (_, None) => format!("\"{name}\":null"),
            (Resource::Usd, Some(amount)) => format!("\"{name}\":\"{}\"", Usd(amount)),
            (_, Some(amount)) => format!("\"{name}\":{amount}"),
        }
    };
    format!("{{{}}}", Resource::ALL.map(member).join(","))
}
