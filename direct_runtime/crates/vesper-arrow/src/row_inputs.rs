//! The inputs of a single row as values, for inspection.

use arrow_array::RecordBatch;
use vesper_interp::Program;
use vesper_ir::Value;

use crate::cell_conversion::Conversion;
use crate::column_reader::Column;
use crate::part::json_text;
use crate::plan::{Form, InputSource, Plan};

/// Returns the inputs of a row in declared order, or `None` if they have problems. Reads by cells, which is slower
/// than the readers but gives the same values.
pub fn inputs_of_row(program: &Program, plan: &Plan, given: &RecordBatch, row: usize) -> Option<Vec<Value>> {
    if row >= given.num_rows() {
        return None;
    }
    if plan.form == Form::Json {
        return program
            .inputs_of_json(json_text(plan, given, row)?.as_bytes())
            .ok();
    }
    let mut conversion = Conversion::default();
    let mut values = Vec::with_capacity(plan.inputs.len());
    for (input, from) in program.node().inputs.iter().zip(&plan.inputs) {
        values.push(match from {
            InputSource::Same(value) => value.clone(),
            InputSource::Column(place) => Column::spelled(given.columns().get(*place)?.as_ref()).read_cell(
                &input.ty,
                input.default.as_ref(),
                row,
                plan.form == Form::Spelled,
                &input.name,
                &mut conversion,
            )?,
        });
    }
    conversion.problems.is_empty().then_some(values)
}
