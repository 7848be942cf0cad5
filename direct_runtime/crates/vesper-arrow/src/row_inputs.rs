//! The inputs of a single row as values, for inspection.

use arrow_array::RecordBatch;
use vesper_interp::Program;
use vesper_ir::Value;

use crate::cell_conversion::Conversion;
use crate::column_reader::Column;
use crate::part::json_text;
use crate::plan::{Form, InputSource, Plan, flag_of_texts};

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
    let node = program.node();
    let is_empty = |place: usize| match plan.inputs.get(place) {
        Some(InputSource::Column(column)) => given
            .columns()
            .get(*column)
            .is_none_or(|array| array.is_null(row)),
        _ => true,
    };
    for (own, (input, from)) in node.inputs.iter().zip(&plan.inputs).enumerate() {
        let flag = flag_of_texts(node, plan.form, own, is_empty);
        if let (Some(flag), true) = (flag, is_empty(own)) {
            values.push(flag);
            continue;
        }
        values.push(match from {
            InputSource::Same(value) => value.clone(),
            InputSource::Column(place) => Column::spelled(given.columns().get(*place)?.as_ref()).read_cell(
                &input.ty,
                input.default.as_ref(),
                row,
                plan.form == Form::Spelled,
                node.input_key(own),
                &mut conversion,
            )?,
        });
    }
    conversion.problems.is_empty().then_some(values)
}
