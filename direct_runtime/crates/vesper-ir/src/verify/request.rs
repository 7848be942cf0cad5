//! Verification of requests against their effect's declaration, and of calls of other nodes.

use crate::EffectClass;
use crate::Rejected;
use crate::effect::{EffectArgument, Gives};
use crate::flow::{Call, Request};
use crate::generated::effects::{Effect, INTERRUPT_KINDS};
use crate::types::{Field, Type};

use super::expression::Scope;
use super::flow::Flow;
use super::taint::field;

impl Flow<'_> {
    pub(super) fn request(&mut self, request: &Request) -> Result<Type, Rejected> {
        let refuse = |what: String| Rejected(format!("request `{}`: {what}", request.name));
        let effect = request.effect.name();
        let declared = request.effect.declaration();
        if !declared.classes.contains(&request.class) {
            let class = request.class.name();
            return Err(refuse(format!("`{effect}` is never of class `{class}`")));
        }
        let mut names: Vec<&str> = declared.fixed.to_vec();
        names.sort_unstable();
        if !names
            .iter()
            .copied()
            .eq(request.fixed.iter().map(|(name, _)| &**name))
        {
            return Err(refuse(format!(
                "the fixed fields of `{effect}` are {}",
                if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                }
            )));
        }
        if request.key.is_some() != (request.class == EffectClass::Keyed) {
            return Err(refuse(
                "a `key` is required for class `keyed` and forbidden otherwise".to_owned(),
            ));
        }
        if let Some(key) = request.key {
            let found = self.root(key, Scope::Body)?;
            if found != Type::Text {
                return Err(refuse(format!("its key is a string, not {found}")));
            }
        }
        let mut arguments = declared.arguments.iter();
        for (name, value) in &request.arguments {
            let found = self.root(*value, Scope::Body)?;
            let argument = loop {
                match arguments.next() {
                    Some(argument) if argument.name == &**name => break argument,
                    Some(argument) if argument.is_optional => {}
                    Some(argument) => return Err(refuse(missing(argument))),
                    None => {
                        return Err(refuse(format!(
                            "`{name}` is no argument of `{effect}`, or is out of order"
                        )));
                    }
                }
            };
            if !argument.types.iter().any(|word| admits(word, &found)) {
                return Err(refuse(format!(
                    "its argument `{name}` is {}, not {found}",
                    argument.types.join(" or ")
                )));
            }
        }
        if let Some(argument) = arguments.find(|argument| !argument.is_optional) {
            return Err(refuse(missing(argument)));
        }
        if request.effect == Effect::Sleep && request.arguments.len() != 1 {
            return Err(refuse("a `sleep` has either `duration` or `until`".to_owned()));
        }
        if request.effect == Effect::Interrupt
            && let Some((_, kind)) = request.fixed.first()
            && !INTERRUPT_KINDS.contains(&&**kind)
        {
            return Err(refuse(format!("`{kind}` is no kind of interrupts")));
        }
        let result = self.result(request.result, refuse)?;
        match declared.gives {
            Gives::Declared => {}
            Gives::Type(word) if admits(word, &result) => {}
            Gives::Type(word) => return Err(refuse(format!("`{effect}` returns {word}, not {result}"))),
            Gives::States => {
                let fixed = request.fixed.iter().find(|(name, _)| &**name == "machine");
                let machine =
                    fixed.and_then(|(_, fixed)| self.machines.iter().find(|each| each.name == *fixed));
                let machine = machine.ok_or_else(|| refuse("its machine is not declared".to_owned()))?;
                let states = self.typing.types.enumeration(machine.states.clone(), None);
                let states = states.map_err(refuse)?;
                if result != states {
                    return Err(refuse(format!("`{effect}` returns {states}, not {result}")));
                }
            }
        }
        for name in &request.sensitive {
            if field(&result, name).is_none() {
                return Err(refuse(format!(
                    "`{name}` is declared sensitive, but {result} has no such field"
                )));
            }
        }
        Ok(result)
    }

    pub(super) fn call(&mut self, call: &Call) -> Result<Type, Rejected> {
        let refuse = |what: String| Rejected(format!("call `{}`: {what}", call.name));
        let called = self.calls.iter().find(|called| called.node == call.node);
        let called = called.ok_or_else(|| refuse(format!("`calls` has no node `{}`", call.node)))?;
        let mut declared = called.inputs.iter();
        for (name, value) in &call.inputs {
            let found = self.root(*value, Scope::Body)?;
            let input = loop {
                match declared.next() {
                    Some(input) if input.name == *name => break input,
                    Some(input) if input.is_optional => {}
                    Some(input) => return Err(refuse(format!("its input `{}` is missing", input.name))),
                    None => {
                        return Err(refuse(format!(
                            "`{name}` is no input of `{}`, or is out of order",
                            called.node
                        )));
                    }
                }
            };
            if input.ty != found {
                return Err(refuse(format!("its input `{name}` is {}, not {found}", input.ty)));
            }
        }
        if let Some(input) = declared.find(|input| !input.is_optional) {
            return Err(refuse(format!("its input `{}` is missing", input.name)));
        }
        let result = self.result(call.result, refuse)?;
        let fields = called.success.iter().map(|output| Field {
            name: output.name.clone(),
            ty: output.ty.clone(),
        });
        let wanted = self.typing.types.record(fields.collect()).map_err(refuse)?;
        if result != wanted {
            return Err(refuse(format!(
                "`{}` returns {wanted}, not {result}",
                called.node
            )));
        }
        Ok(result)
    }
}

fn missing(argument: &EffectArgument) -> String {
    format!("its argument `{}` is missing", argument.name)
}

/// Returns true when the type matches a type name of `schemas/effects.toml`.
fn admits(word: &str, ty: &Type) -> bool {
    match word {
        "any" => true,
        "record" => matches!(ty, Type::Record(_)),
        // A type without parts is displayed as its name.
        word => ty.to_string() == word,
    }
}
