//! Which values of a loop are new, and their prices (docs/spec/limits.md, "Memory").
//!
//! Computed from the node as verified, because an optimised node may have other new values.

use std::collections::HashMap;
use std::sync::Arc;

use vesper_ir::flow::{Block, Loop, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind, For, ForKind, Function};
use vesper_ir::prices::{self, ENTRY_BYTES, MEMBER_BYTES, Plan, Price, SLOT_BYTES};
use vesper_ir::types::TypePattern;
use vesper_ir::{Node, Op};

/// A fixed price and one that depends on a value.
pub(crate) type ItemPrice = (u64, Price);

/// The prices of a `for`.
#[derive(Clone, Debug)]
pub(super) struct ForPrices {
    /// The price of each kept item: of its place and its value, or its key.
    pub(super) item: Option<ItemPrice>,
    /// The price of the key of a map's entry.
    pub(super) key: Option<ItemPrice>,
    /// The price of the state of a `fold`, unless it is fixed.
    pub(super) state: Option<Price>,
    /// True where a round may take memory.
    pub(super) takes_memory: bool,
}

/// The prices of a loop.
#[derive(Clone, Debug)]
pub(super) struct LoopPrices {
    pub(super) collected: Option<ItemPrice>,
    /// The prices of the variables of its state, or none if all are fixed.
    pub(super) state: Vec<Price>,
    pub(super) takes_memory: bool,
}

/// The prices of all loops of a node.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) fors: HashMap<ExpressionIndex, ForPrices>,
    pub(super) loops: HashMap<Arc<str>, LoopPrices>,
    /// The price of the value of each function, unless it is fixed.
    pub(super) functions: Vec<Option<Price>>,
}

impl Memory {
    pub(super) fn of(node: &Node) -> Self {
        let mut memory = Self::default();
        for (index, expression) in (0..).zip(&node.expressions) {
            if let ExpressionKind::For { so_far, parts, .. } = &expression.kind {
                memory.fors.insert(index, for_prices(node, parts, *so_far));
            }
        }
        memory.add_loops(node, &node.body);
        memory.functions = node
            .functions
            .iter()
            .map(|function| function_price(node, function))
            .collect();
        memory
    }

    fn add_loops(&mut self, node: &Node, block: &Block) {
        for statement in block {
            if let Statement::Loop(repeated) = statement {
                self.loops
                    .insert(Arc::clone(&repeated.name), loop_prices(node, repeated));
            }
            for block in statement.blocks() {
                self.add_loops(node, block);
            }
        }
    }
}

/// The plans of names that were bound since the scope began. Any other name refers to an older value.
struct Planner<'a> {
    node: &'a Node,
    locals: HashMap<usize, Plan>,
    steps: HashMap<usize, Plan>,
    /// The plan of the value of a function, which pays for it when it returns.
    apply: Plan,
}

/// The maximum rounds until the plan of a state is stable; a plan only grows.
const MAX_ROUNDS: usize = 64;

impl<'a> Planner<'a> {
    fn new(node: &'a Node) -> Self {
        Self {
            node,
            locals: HashMap::new(),
            steps: HashMap::new(),
            apply: Plan::Fresh,
        }
    }

    /// Returns which parts of a value are new since the scope began.
    fn plan(&mut self, index: ExpressionIndex) -> Plan {
        let node = self.node;
        let Some(expression) = node.expression(index) else {
            return Plan::Fresh;
        };
        match &expression.kind {
            ExpressionKind::Literal(_)
            | ExpressionKind::Input(_)
            | ExpressionKind::Constant(_)
            | ExpressionKind::Output(_)
            | ExpressionKind::Error(_)
            | ExpressionKind::Now => Plan::Kept,
            ExpressionKind::Step(step) => self.steps.get(step).cloned().unwrap_or(Plan::Kept),
            ExpressionKind::Local(local) => self.locals.get(local).cloned().unwrap_or(Plan::Kept),
            ExpressionKind::Result | ExpressionKind::And(..) | ExpressionKind::Or(..) => Plan::Fresh,
            ExpressionKind::Apply { .. } => self.apply.clone(),
            ExpressionKind::Call { op, args, .. } => self.plan_call(*op, args),
            ExpressionKind::If { then, otherwise, .. } => {
                let then = self.plan(*then);
                then.join(self.plan(*otherwise))
            }
            ExpressionKind::Let { local, value, body } => {
                let value = self.plan(*value);
                self.locals.insert(*local, value);
                self.plan(*body)
            }
            ExpressionKind::Array(items) => {
                let mut plan = Plan::Kept;
                for item in items {
                    plan = plan.join(self.plan(*item));
                }
                Plan::Parts(vec![plan])
            }
            ExpressionKind::Record(fields) => {
                Plan::Parts(fields.iter().map(|field| self.plan(*field)).collect())
            }
            ExpressionKind::Field { place, of } => self.plan(*of).part(*place as usize).clone(),
            ExpressionKind::For {
                item,
                entry_value,
                so_far,
                parts,
            } => {
                let over = self.plan(parts.over);
                self.locals.insert(*item, over.part(0).clone());
                if let Some(local) = entry_value {
                    self.locals.insert(*local, over.part(1).clone());
                }
                self.plan_for(parts, *so_far, over.part(0).clone())
            }
        }
    }

    fn plan_call(&mut self, op: Op, args: &[ExpressionIndex]) -> Plan {
        let signature = op.signature();
        if op == Op::JsonCast {
            return Plan::Fresh;
        }
        if matches!(op, Op::JsonGet | Op::JsonField | Op::JsonItem) {
            return args.first().map_or(Plan::Fresh, |value| self.plan(*value));
        }
        let mut of_parameter = Plan::Kept;
        for (arg, (_, declared)) in args.iter().zip(signature.params) {
            if mentions_parameter(declared) && self.plan(*arg) != Plan::Kept {
                of_parameter = Plan::Fresh;
            }
        }
        Plan::of_result(&signature.returns, &of_parameter)
    }

    fn plan_for(&mut self, parts: &For, so_far: Option<usize>, item: Plan) -> Plan {
        match parts.kind {
            ForKind::Array | ForKind::Set => Plan::Parts(vec![self.plan(parts.value)]),
            ForKind::Map => {
                let key = parts.key.map_or(Plan::Fresh, |key| self.plan(key));
                Plan::Parts(vec![key, self.plan(parts.value)])
            }
            ForKind::ForAll | ForKind::Exists | ForKind::Sum | ForKind::Count | ForKind::Avg => Plan::Fresh,
            ForKind::Min | ForKind::Max => self.plan(parts.value),
            ForKind::SortBy | ForKind::DistinctBy | ForKind::TakeWhile | ForKind::DropWhile => {
                Plan::Parts(vec![item])
            }
            ForKind::MinBy | ForKind::MaxBy => item,
            ForKind::GroupBy => Plan::Parts(vec![self.plan(parts.value), Plan::Parts(vec![item])]),
            ForKind::CountBy => Plan::Parts(vec![self.plan(parts.value), Plan::Fresh]),
            ForKind::IndexBy => Plan::Parts(vec![self.plan(parts.value), item]),
            ForKind::Fold => {
                let first = parts.with.map_or(Plan::Fresh, |with| self.plan(with));
                self.plan_state(so_far, parts.value, first)
            }
        }
    }

    /// Returns the plan of a state after any number of rounds.
    fn plan_state(&mut self, local: Option<usize>, next: ExpressionIndex, first: Plan) -> Plan {
        let mut state = first;
        for _ in 0..MAX_ROUNDS {
            if let Some(local) = local {
                self.locals.insert(local, state.clone());
            }
            let following = state.clone().join(self.plan(next));
            if following == state {
                return state;
            }
            state = following;
        }
        Plan::Fresh
    }

    /// Binds the steps of a block.
    fn bind(&mut self, block: &Block) {
        for statement in block {
            let plan = match statement {
                Statement::Step { value, handlers, .. } => {
                    let mut plan = self.plan(*value);
                    for handler in handlers {
                        self.bind(&handler.body);
                        plan = handler
                            .value
                            .map_or(Plan::Kept, |value| self.plan(value))
                            .join(plan);
                    }
                    plan
                }
                _ => Plan::Fresh,
            };
            if let Statement::Branch(branch) = statement {
                for arm in &branch.arms {
                    self.bind(&arm.body);
                }
                self.bind(&branch.otherwise);
            }
            if let Statement::Parallel(parallel) = statement {
                for member in &parallel.members {
                    self.bind(member);
                }
            }
            if let Some(step) = statement.name().and_then(|name| self.node.step_place(name)) {
                self.steps.insert(step, plan);
            }
        }
    }

    fn price(&self, index: ExpressionIndex, plan: &Plan) -> Price {
        let found = self.node.expression(index);
        found.map_or(Price::Fixed(0), |expression| Price::of_type(&expression.ty, plan))
    }

    /// Returns the price of a value that a round hands on.
    fn price_new(&mut self, index: ExpressionIndex) -> Price {
        let plan = self.plan(index);
        self.price(index, &plan)
    }
}

fn mentions_parameter(declared: &TypePattern) -> bool {
    match declared {
        TypePattern::Parameter(_) => true,
        TypePattern::SetOf(inner) | TypePattern::ArrayOf(inner) | TypePattern::OptionalOf(inner) => {
            mentions_parameter(inner)
        }
        TypePattern::MapOf(key, value) => mentions_parameter(key) || mentions_parameter(value),
        TypePattern::RecordOf(fields) => fields.iter().any(|(_, field)| mentions_parameter(field)),
        _ => false,
    }
}

/// Adds a fixed price.
fn with(place: u64, price: Price) -> ItemPrice {
    match price {
        Price::Fixed(fixed) => (place + fixed, Price::Fixed(0)),
        price => (place, price),
    }
}

/// Returns the price of the value that a call makes. The values of inner calls are older: those calls paid for them.
fn function_price(node: &Node, function: &Function) -> Option<Price> {
    let mut planner = Planner::new(node);
    planner.apply = Plan::Kept;
    let plan = planner.plan(function.value);
    let price = Price::of_type(&function.returns, &plan);
    Some(price).filter(|price| !matches!(price, Price::Fixed(_)))
}

fn for_prices(node: &Node, parts: &For, so_far: Option<usize>) -> ForPrices {
    let mut planner = Planner::new(node);
    let place = match parts.kind {
        ForKind::Array | ForKind::Avg | ForKind::GroupBy => Some(SLOT_BYTES),
        ForKind::Set => Some(MEMBER_BYTES),
        ForKind::Map | ForKind::IndexBy | ForKind::DistinctBy => Some(ENTRY_BYTES),
        ForKind::SortBy => Some(2 * SLOT_BYTES),
        ForKind::CountBy => Some(0),
        _ => None,
    };
    let item = match parts.kind {
        ForKind::TakeWhile | ForKind::DropWhile => Some((SLOT_BYTES, Price::Fixed(0))),
        _ => place.map(|place| with(place, planner.price_new(parts.value))),
    };
    let state = (parts.kind == ForKind::Fold).then(|| {
        let plan = planner.plan_state(so_far, parts.value, Plan::Kept);
        planner.price(parts.value, &plan)
    });
    let inside = [parts.filter, parts.key, Some(parts.value)];
    ForPrices {
        item,
        key: parts.key.map(|key| with(0, planner.price_new(key))),
        state: state.filter(|price| !matches!(price, Price::Fixed(_))),
        takes_memory: inside.into_iter().flatten().any(|part| takes_memory(node, part)),
    }
}

fn loop_prices(node: &Node, repeated: &Loop) -> LoopPrices {
    let mut planner = Planner::new(node);
    let nexts: HashMap<_, _> = repeated.next.iter().copied().collect();
    let mut plans: Vec<Plan> = vec![Plan::Kept; repeated.state.len()];
    for _ in 0..MAX_ROUNDS {
        for (variable, plan) in repeated.state.iter().zip(&plans) {
            if let Some(local) = node.loop_local(variable.local) {
                planner.locals.insert(local, plan.clone());
            }
        }
        planner.bind(&repeated.body);
        let mut following = Vec::with_capacity(plans.len());
        for (variable, plan) in repeated.state.iter().zip(&plans) {
            let next = nexts.get(&variable.local).map(|next| planner.plan(*next));
            following.push(plan.clone().join(next.unwrap_or(Plan::Kept)));
        }
        if following == plans {
            break;
        }
        plans = following;
    }
    let states = repeated.state.iter().zip(&plans);
    let state: Vec<Price> = states
        .map(|(variable, plan)| planner.price(variable.value, plan))
        .collect();
    // What a round hands on is new since the round began, in which the state is older.
    let mut planner = Planner::new(node);
    planner.bind(&repeated.body);
    let collected = repeated
        .collect
        .map(|collect| with(SLOT_BYTES, planner.price_new(collect)));
    let is_fixed = state.iter().all(|price| matches!(price, Price::Fixed(_)));
    LoopPrices {
        collected,
        state: if is_fixed { Vec::new() } else { state },
        takes_memory: loop_takes_memory(node, repeated),
    }
}

fn loop_takes_memory(node: &Node, repeated: &Loop) -> bool {
    let parts = [
        repeated.filter,
        repeated.condition,
        repeated.collect,
        repeated.stop_when,
    ];
    let nexts = repeated.next.iter().map(|(_, next)| *next);
    let mut all = parts.into_iter().flatten().chain(nexts);
    all.any(|part| takes_memory(node, part)) || block_takes_memory(node, &repeated.body)
}

fn block_takes_memory(node: &Node, block: &Block) -> bool {
    let takes = |part: &ExpressionIndex| takes_memory(node, *part);
    block.iter().any(|statement| {
        let own = match statement {
            Statement::Step { value, .. } => takes(value),
            Statement::Require { holds } => takes(holds),
            Statement::Return { success } => success.iter().any(|(_, value)| takes(value)),
            Statement::Raise { error } => error.iter().any(|(_, value)| takes(value)),
            Statement::Branch(branch) => {
                branch.arms.iter().any(|arm| {
                    takes(&arm.when) || arm.value.iter().any(takes) || block_takes_memory(node, &arm.body)
                }) || branch.otherwise_value.iter().any(takes)
                    || block_takes_memory(node, &branch.otherwise)
            }
            Statement::Loop(inner) => {
                inner.collect.is_some()
                    || inner.over.is_some_and(|over| head_takes_memory(node, over))
                    || inner.state.iter().any(|variable| takes(&variable.value))
                    || loop_takes_memory(node, inner)
            }
            // Strands count their own memory and hand it on.
            Statement::Parallel(_) | Statement::Call(_) | Statement::Request(_) => true,
        };
        let mut handlers = statement.handlers().iter();
        own || handlers
            .any(|handler| handler.value.iter().any(takes) || block_takes_memory(node, &handler.body))
    })
}

/// Returns true where evaluating the expression may take memory.
fn takes_memory(node: &Node, index: ExpressionIndex) -> bool {
    let Some(expression) = node.expression(index) else {
        return true;
    };
    // The parts of an expression precede it in the table.
    let parts =
        || (expression.start..=index).map(|part| (part, node.expression(part).map(|part| &part.kind)));
    parts().any(|(part, kind)| match kind {
        Some(ExpressionKind::Call {
            op: Op::ArrayRange, ..
        }) => !parts()
            .any(|(_, kind)| matches!(kind, Some(ExpressionKind::For { parts, .. }) if parts.over == part)),
        Some(ExpressionKind::Call { op, .. }) => prices::takes_memory(*op),
        Some(ExpressionKind::For { parts, .. }) => keeps_items(parts.kind),
        Some(ExpressionKind::Apply { .. }) | None => true,
        _ => false,
    })
}

/// Returns true where the head of a loop may take memory. A range there is not built.
fn head_takes_memory(node: &Node, over: ExpressionIndex) -> bool {
    match node.expression(over).map(|over| &over.kind) {
        Some(ExpressionKind::Call {
            op: Op::ArrayRange,
            args,
            ..
        }) => args.iter().any(|bound| takes_memory(node, *bound)),
        _ => takes_memory(node, over),
    }
}

fn keeps_items(kind: ForKind) -> bool {
    !matches!(
        kind,
        ForKind::ForAll
            | ForKind::Exists
            | ForKind::Sum
            | ForKind::Count
            | ForKind::Min
            | ForKind::Max
            | ForKind::MinBy
            | ForKind::MaxBy
            | ForKind::Fold
    )
}
