//! Runs on JSON text: JSON inputs to a canonical JSON outcome, without a host language (docs/spec/values.md).

use vesper_ir::json::{ParseJsonError, build, quote};
use vesper_ir::{Json, Node, Value};

use crate::inputs::ProblemKind;
use crate::inputs::problems::{Path, Problems};
use crate::observe::path::Path as Steps;
use crate::{Limits, Outcome, Program, Room};

mod fast_reader;
mod reader;
mod words;
mod writer;

use reader::{InputReader, Spelled};
pub use words::Worded;
use writer::OutcomeWriter;
pub(crate) use writer::order_of_outputs;

impl Program {
    /// Runs a node without effects on JSON inputs and returns the outcome as canonical JSON.
    pub fn run_json(&self, text: &[u8], now: Option<Value>, limits: Limits) -> String {
        let node = self.node();
        let written = OutcomeWriter { node };
        match self.inputs_of_json(text) {
            Ok(frame) => written.outcome(&self.run_within(frame, now, limits)),
            Err(problems) => writer::bad_input(&problems),
        }
    }

    /// Converts JSON inputs to values in declared order, or returns their problems.
    pub fn inputs_of_json(&self, text: &[u8]) -> Result<Vec<Value>, Problems> {
        self.frame_of_json(self.node(), text)
    }

    /// Runs JSON inputs and returns the canonical outcome of a node that returned on a path that `trusts` accepts.
    pub fn run_json_trusted(
        &self,
        text: &[u8],
        now: Option<Value>,
        limits: Limits,
        trusts: impl FnOnce(&Steps) -> bool,
    ) -> Option<String> {
        let frame = self.inputs_of_json(text).ok()?;
        match self.run_unhashed(frame, now, limits) {
            (outcome @ Outcome::Returned(_), path) if trusts(&path) => {
                Some(OutcomeWriter { node: self.node() }.outcome(&outcome))
            }
            _ => None,
        }
    }

    /// Runs the node in a reusable frame, which is clear afterwards. Returns `None`, without running, for a text that
    /// needs the general reader.
    pub fn run_json_in(&self, room: &mut Room, text: &[u8], limits: Limits) -> Option<String> {
        let node = self.node();
        let answer = fast_reader::inputs(node, text, room.inputs()).map(|()| {
            let written = OutcomeWriter { node };
            match self.run_in(room, limits) {
                Outcome::Returned(_) => self.write_outputs_in(room),
                outcome => written.outcome(&outcome),
            }
        });
        room.clear();
        answer
    }

    /// Runs the node like `run_json_in`. Returns the outcome of a node that returned on a path that `trusts` accepts,
    /// an inner `None` for any other, and an outer one, without running, for a text that needs the general reader.
    pub fn run_json_trusted_in(
        &self,
        room: &mut Room,
        text: &[u8],
        limits: Limits,
        trusts: impl FnOnce(&Steps) -> bool,
    ) -> Option<Option<String>> {
        let answer = fast_reader::inputs(self.node(), text, room.inputs()).map(|()| {
            let is_returned = matches!(self.run_in(room, limits), Outcome::Returned(_));
            (is_returned && trusts(&self.path_in(room))).then(|| self.write_outputs_in(room))
        });
        room.clear();
        answer
    }

    fn write_outputs_in(&self, room: &Room) -> String {
        let node = self.node();
        let order = room.order_of_outputs(node);
        OutcomeWriter { node }
            .write_returned(order, |place| self.output_in(room, place))
            .unwrap_or_else(|| fault("an output is not there"))
    }

    /// Converts JSON inputs with the general reader.
    fn frame_of_json(&self, node: &Node, text: &[u8]) -> Result<Vec<Value>, Problems> {
        let mut reading = InputReader::default();
        let text = std::str::from_utf8(text).map_err(|_| ProblemKind::Malformed);
        let entries = match text.and_then(parse) {
            Ok(Spelled::Object(entries)) => entries,
            Ok(_) => return Err(reading.reject(ProblemKind::WrongType)),
            // SEMANTICS: a text that is not JSON, or too deep for any inputs, is a single problem.
            Err(kind) => return Err(reading.reject(kind)),
        };
        let mut frame = self.new_frame();
        let outside = node.outside_inputs.as_ref();
        for (place, input) in node.inputs.iter().enumerate() {
            if let Some(flagged) = outside.and_then(|outside| outside.flagged(place)) {
                let is_absent = Spelled::find(&entries, node.input_key(flagged)).is_none();
                frame.push(Value::Boolean(is_absent));
                continue;
            }
            let key = node.input_key(place);
            let given = Spelled::find(&entries, key);
            frame.extend(reading.read_given(&input.ty, input.default.as_ref(), given, &Path::Input(key)));
        }
        let is_declared = |name: &str| match outside {
            Some(outside) => outside.place(name).is_some(),
            None => node.inputs.iter().any(|input| &*input.name == name),
        };
        for name in Spelled::unknown(&entries, is_declared) {
            reading.add_problem(&Path::UnknownInput(name.as_bytes()), ProblemKind::Unknown);
        }
        reading.finish(frame)
    }
}

/// Returns the value of a JSON text for an input of type `json`, or its problem.
pub fn json_of_text(text: &str) -> Result<Json, ProblemKind> {
    parse(text)?.to_json()
}

fn parse(text: &str) -> Result<Spelled, ProblemKind> {
    build(text).map_err(|error| match error {
        ParseJsonError::Malformed => ProblemKind::Malformed,
        ParseJsonError::TooLarge => ProblemKind::TooDeep,
    })
}

/// Returns the outcome of an engine fault.
pub fn fault(message: &str) -> String {
    let mut out = String::from("{\"kind\":\"engine_fault\",\"message\":");
    quote(message, &mut out);
    out.push('}');
    out
}
