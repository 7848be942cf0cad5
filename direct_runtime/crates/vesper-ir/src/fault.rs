//! Faults on purpose: what a tired person could have written, one at a time, to see whether anything notices.
//!
//! `planted!(name, right, wrong)` is the right expression and nothing else, unless this crate is built with the feature
//! `faults`; no build for users is. With the feature it is the wrong one while the fault of this name is selected.
//! `make proof-mutants` selects one after the other (docs/how-to/plant-faults.md).

/// The right expression.
#[cfg(not(feature = "faults"))]
#[macro_export]
macro_rules! planted {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {
        $right
    };
}

/// The right expression, or the wrong one while the fault of this name is selected.
#[cfg(feature = "faults")]
#[macro_export]
macro_rules! planted {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {
        if $crate::fault::is_selected(const { $crate::fault::number($name) }) {
            $wrong
        } else {
            $right
        }
    };
}

#[cfg(feature = "faults")]
pub use selection::{is_selected, number, select};

#[cfg(feature = "faults")]
mod selection {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::FAULTS;

    /// No fault.
    const NONE: usize = usize::MAX;

    static SELECTED: AtomicUsize = AtomicUsize::new(NONE);

    /// The number of a fault. A name that is not in the list stops the build: it could never be selected.
    #[allow(
        clippy::panic,
        clippy::indexing_slicing,
        clippy::missing_panics_doc,
        reason = "evaluated by the compiler, where a panic is an error"
    )]
    pub const fn number(name: &str) -> usize {
        let mut number = 0;
        while number < FAULTS.len() {
            if is_same(FAULTS[number].0.as_bytes(), name.as_bytes()) {
                return number;
            }
            number += 1;
        }
        panic!("this fault is not in the list")
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "evaluated by the compiler, where a panic is an error"
    )]
    const fn is_same(left: &[u8], right: &[u8]) -> bool {
        if left.len() != right.len() {
            return false;
        }
        let mut place = 0;
        while place < left.len() {
            if left[place] != right[place] {
                return false;
            }
            place += 1;
        }
        true
    }

    #[inline]
    pub fn is_selected(number: usize) -> bool {
        SELECTED.load(Ordering::Relaxed) == number
    }

    /// Selects a fault for the whole process, or none; false where there is none of this name.
    pub fn select(name: Option<&str>) -> bool {
        let found = match name {
            None => Some(NONE),
            Some(name) => FAULTS.iter().position(|(own, _)| *own == name),
        };
        if let Some(number) = found {
            SELECTED.store(number, Ordering::Relaxed);
        }
        found.is_some()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_the_selected_fault_is_wrong() {
            // One test: what is selected is so for the whole process.
            let answer = || planted!("integer.add_wraps", "right", "wrong");
            assert_eq!(answer(), "right");
            assert!(select(Some("integer.add_wraps")));
            assert_eq!(answer(), "wrong");
            assert!(!select(Some("no.such_fault")));
            assert_eq!(answer(), "wrong");
            assert!(select(Some("integer.negate_wraps")));
            assert_eq!(answer(), "right");
            assert!(select(None));
        }
    }
}

/// The name of every fault, which begins with where it is, and its kind.
#[cfg(feature = "faults")]
pub const FAULTS: &[(&str, &str)] = &[
    ("integer.add_wraps", "overflow"),
    ("integer.subtract_turned_round", "order"),
    ("integer.multiply_saturates", "overflow"),
    ("integer.negate_wraps", "overflow"),
    ("integer.less_takes_equal", "comparison"),
    ("integer.greater_or_equal_misses_equal", "comparison"),
    ("integer.quot_by_zero_has_another_code", "error_code"),
    ("integer.rem_overflows_with_its_quotient", "overflow"),
    ("integer.div_floor_ignores_sign_of_divisor", "sign"),
    ("integer.mod_ignores_sign_of_divisor", "sign"),
    ("integer.abs_wraps", "overflow"),
    ("integer.pow_refuses_zero", "comparison"),
    ("integer.pow_of_minus_one_turned_round", "sign"),
    ("integer.shift_by_64", "off_by_one"),
    ("integer.shift_right_without_sign", "sign"),
    ("integer.parse_takes_no_digits", "guard"),
    ("integer.bit_count_of_magnitude", "sign"),
    ("integer.sum_saturates", "overflow"),
    ("integer.avg_of_nothing_has_another_code", "error_code"),
    ("decimal.divide_by_zero_has_another_code", "error_code"),
    ("decimal.less_of_long_ones_takes_equal", "comparison"),
    ("decimal.div_refuses_last_scale", "off_by_one"),
    ("decimal.round_refuses_tens", "guard"),
    ("decimal.floor_truncates", "rounding"),
    ("decimal.ceil_goes_away_from_zero", "rounding"),
    ("decimal.to_integer_drops_fraction", "guard"),
    ("decimal.avg_of_one_more", "off_by_one"),
    ("decimal.parse_too_long_has_another_code", "error_code"),
    ("decimal.one_digit_too_many", "off_by_one"),
    ("decimal.left_not_aligned", "scale"),
    ("decimal.difference_turned_round", "sign"),
    ("decimal.product_has_larger_scale", "scale"),
    ("decimal.long_negatives_by_magnitude", "sign"),
    ("decimal.abs_turned_round", "sign"),
    ("decimal.half_even_goes_up", "rounding"),
    ("decimal.negative_rounds_toward_zero", "sign"),
    ("decimal.normalize_keeps_a_place", "off_by_one"),
    ("decimal.quotient_rounds_half_up", "rounding"),
    ("decimal.exact_quotient_loses_zeros", "scale"),
    ("decimal.div_ignores_sign_of_divisor", "sign"),
    ("decimal.parse_refuses_last_digit", "off_by_one"),
    ("decimal.parse_ignores_sign_of_exponent", "sign"),
    ("decimal.text_without_leading_zero", "off_by_one"),
    ("decimal.allocate_smallest_remainder_first", "order"),
    ("decimal.allocate_takes_negative_weights", "guard"),
    ("decimal.even_power_is_negative", "sign"),
    ("decimal.zero_has_an_inverse", "guard"),
    ("float.whole_takes_the_bound", "off_by_one"),
    ("float.not_finite_has_another_code", "error_code"),
    ("float.less_by_total_order", "comparison"),
    ("float.ceil_rounds", "rounding"),
    ("float.trunc_floors", "rounding"),
    ("float.avg_of_nothing_is_nan", "guard"),
    ("float.text_is_plain_too_far", "off_by_one"),
    ("float.text_takes_larger_of_two", "rounding"),
    ("input.integer_is_rounded_to_float", "boundary"),
    ("boolean.equal_only_if_true", "comparison"),
    ("text.length_in_bytes", "unicode"),
    ("text.at_one_before", "off_by_one"),
    ("text.slice_takes_negative_end", "guard"),
    ("text.split_at_nothing", "guard"),
    ("text.words_keeps_empty_ones", "guard"),
    ("text.trim_only_spaces", "unicode"),
    ("text.trim_end_only_ascii", "unicode"),
    ("text.index_in_bytes", "unicode"),
    ("text.replace_only_first", "lost_item"),
    ("text.lower_only_ascii", "unicode"),
    ("text.pad_takes_two_fills", "guard"),
    ("text.pad_width_in_bytes", "unicode"),
    ("text.join_without_separator", "lost_item"),
    ("text.nothing_is_digits", "guard"),
    ("text.percent_encodes_tilde", "unicode"),
    ("text.percent_in_lower_case", "unicode"),
    ("text.longest_refused", "off_by_one"),
    ("bytes.at_has_another_code", "error_code"),
    ("bytes.slice_takes_negative_start", "guard"),
    ("bytes.concat_turned_round", "order"),
    ("bytes.hex_digits_turned_round", "order"),
    ("bytes.parse_hex_drops_half_a_byte", "lost_item"),
    ("bytes.base64_has_two_spellings", "guard"),
    ("array.take_takes_negative", "guard"),
    ("array.max_gives_last_of_equals", "comparison"),
    ("array.at_ignores_sign", "sign"),
    ("array.sort_down_turns_equals_round", "order"),
    ("array.zip_ends_with_shorter", "guard"),
    ("array.enumerate_from_one", "off_by_one"),
    ("array.range_with_its_end", "off_by_one"),
    ("array.range_by_zero_has_another_code", "error_code"),
    ("array.chunks_one_longer", "off_by_one"),
    ("array.flatten_takes_first_only", "lost_item"),
    ("array.most_items_refused", "off_by_one"),
    ("array.distinct_takes_nans_for_equal", "comparison"),
    ("set.subset_is_strict", "comparison"),
    ("set.difference_turned_round", "order"),
    ("set.disjoint_means_subset", "comparison"),
    ("map.merge_left_wins", "order"),
    ("map.put_keeps_the_old_value", "lost_item"),
    ("map.at_has_another_code", "error_code"),
    ("map.from_entries_has_another_code", "error_code"),
    ("date.months_are_not_clamped", "time"),
    ("date.months_between_forgets_short_months", "time"),
    ("date.weekday_before_1970", "time"),
    ("date.day_of_year_from_zero", "off_by_one"),
    ("date.years_between_floors", "sign"),
    ("date.from_parts_has_another_code", "error_code"),
    ("date.business_days_back_one_more", "comparison"),
    ("date.holidays_on_weekends_count_twice", "time"),
    ("date.holiday_of_the_day_counts", "off_by_one"),
    ("date.no_century_is_leap", "time"),
    ("date.last_day_refused", "off_by_one"),
    ("timestamp.last_moment_refused", "off_by_one"),
    ("duration.negative_ones_without_limit", "sign"),
    ("timestamp.epoch_seconds_truncate", "sign"),
    ("timestamp.truncate_before_1970", "sign"),
    ("timestamp.since_turned_round", "order"),
    ("duration.divide_half_up", "rounding"),
    ("duration.total_seconds_in_milliseconds", "scale"),
    ("duration.parse_too_long_has_another_code", "error_code"),
    ("timestamp.parse_drops_nanoseconds", "guard"),
    ("timestamp.parse_takes_leap_seconds", "off_by_one"),
    ("timestamp.offset_has_no_sign", "sign"),
    ("timestamp.text_drops_zeros_of_fraction", "time"),
    ("duration.parse_units_in_any_order", "order"),
    ("duration.text_keeps_zeros", "time"),
    ("optional.null_is_not_null", "comparison"),
    ("optional.require_has_another_code", "error_code"),
    ("value.max_gives_right_of_equals", "comparison"),
    ("value.clamp_takes_crossed_bounds", "guard"),
    ("array.prefix_is_equal", "comparison"),
    ("enum.equal_takes_earlier_members", "comparison"),
    ("regex.group_that_took_no_part_is_empty", "lost_item"),
    ("regex.split_loses_last_empty_part", "lost_item"),
    ("regex.anchors_turned_round", "order"),
    ("regex.second_way_is_lost", "lost_item"),
    ("json.item_has_another_code", "error_code"),
    ("json.pointer_tilde_is_slash", "unicode"),
    ("json.pointer_takes_leading_zeros", "guard"),
    ("json.cast_drops_fraction", "guard"),
    ("json.cast_takes_element_twice", "guard"),
    ("json.decimal_is_a_number", "scale"),
    ("json.equal_by_text", "comparison"),
    ("json.text_keeps_zeros", "scale"),
    ("json.escapes_in_upper_case", "unicode"),
    ("json.one_level_too_many", "off_by_one"),
    ("json.half_a_pair_is_read", "unicode"),
    ("contracts.clauses_count_from_one", "contract"),
    ("contracts.output_does_not_replace_input", "contract"),
    ("compile.kept_register_is_freed", "lost_item"),
    ("marks.condition_is_not_marked", "lost_item"),
    ("paths.sides_of_a_choice_turned_round", "control_flow"),
    ("paths.end_of_a_while_is_not_noted", "lost_item"),
    ("paths.handlers_are_not_noted", "lost_item"),
    ("paths.two_rounds_are_one", "off_by_one"),
    ("paths.last_input_is_not_read", "lost_item"),
    ("paths.what_is_not_run_is_read", "control_flow"),
    ("paths.what_comes_after_the_end_is_read", "off_by_one"),
    ("paths.another_ending_has_read_the_same", "guard"),
    ("paths.records_are_read_whole", "guard"),
    ("paths.responses_do_not_count", "lost_item"),
    ("compile.and_is_or", "control_flow"),
    ("contracts.validations_all_are_the_first", "contract"),
    ("contracts.invariants_see_outputs_after_an_error", "contract"),
    ("loops.limit_is_blamed_on_the_items", "error_code"),
    ("loops.next_sees_new_values", "order"),
    ("handlers.message_one_place_before", "off_by_one"),
    ("loops.all_of_nothing_is_false", "control_flow"),
    ("loops.min_of_nothing_has_another_code", "error_code"),
    ("loops.max_by_gives_smallest", "comparison"),
    ("calls.inputs_by_place", "order"),
    ("request.path_has_one_round_only", "request"),
    ("run.decimal_less_or_equal_misses_equal", "comparison"),
    ("loops.min_gives_last_of_equals", "comparison"),
    ("loops.one_round_too_many", "off_by_one"),
    ("run.entries_of_maps_cost_nothing", "fuel"),
    ("run.rounds_without_items_cost_nothing", "fuel"),
    ("handlers.failure_is_of_the_next_instruction", "off_by_one"),
    ("run.raised_error_is_a_return", "control_flow"),
    ("handlers.failure_of_a_contract_becomes_an_error", "guard"),
    ("handlers.message_goes_to_other_fields", "lost_item"),
    ("handlers.5xx_is_4xx", "control_flow"),
    ("handlers.http_error_takes_nothing", "guard"),
    ("handlers.any_comes_first", "order"),
    ("loops.duplicate_key_has_another_code", "error_code"),
    ("loops.count_by_from_zero", "off_by_one"),
    ("loops.first_of_a_group_is_lost", "lost_item"),
    ("loops.sort_down_turns_equals_round", "order"),
    ("loops.items_of_a_failed_round_stay", "lost_item"),
    ("run.a_look_at_the_clock_costs_nothing", "fuel"),
    ("run.fuel_at_hand_counts_twice", "fuel"),
    ("calls.a_call_costs_nothing", "fuel"),
    ("calls.defaults_are_null", "lost_item"),
    ("calls.broken_contract_has_another_code", "error_code"),
    ("request.path_of_a_call_has_a_dot", "request"),
    ("request.rounds_count_from_one", "request"),
    ("request.failure_is_of_the_expression_before", "request"),
    ("input.wide_integer_is_of_wrong_type", "boundary"),
    ("input.broken_text_is_malformed_member", "boundary"),
    ("input.long_decimal_is_malformed", "boundary"),
    ("input.far_time_is_malformed", "boundary"),
    ("input.long_text_by_bytes", "unicode"),
    ("input.set_takes_member_twice", "boundary"),
    ("input.default_is_null", "lost_item"),
    ("input.most_entries_refused", "off_by_one"),
    ("input.wide_integer_without_sign_bit", "overflow"),
    ("input.offset_of_zone_added", "time"),
    ("input.scale_without_limit", "scale"),
    ("problems.unknown_names_backwards", "order"),
    ("problems.last_kind_of_json_counts", "order"),
    ("problems.items_count_from_one", "off_by_one"),
    ("problems.unknown_field_without_its_record", "lost_item"),
    ("problems.backwards", "order"),
    ("output.timestamp_in_milliseconds", "time"),
    ("output.negative_duration_turned_round", "sign"),
    ("contracts.mentions_show_inner_names", "contract"),
    ("output.json_number_loses_places", "scale"),
    ("express.default_of_a_boolean_is_true", "boundary"),
    ("express.scale_of_an_output_lost", "scale"),
    ("express.scale_of_an_input_lost", "scale"),
    ("express.sign_lost", "sign"),
    ("express.integers_are_booleans", "boundary"),
    ("express.last_row_left_out", "off_by_one"),
    ("express.fields_turned_round", "order"),
    ("express.text_before", "off_by_one"),
    ("express.own_text_is_the_next_one", "off_by_one"),
    ("express.member_shifted", "off_by_one"),
    ("express.scale_of_json_lost", "scale"),
    ("express.json_zeros_lost", "scale"),
    ("request.bad_response_has_another_code", "error_code"),
    ("json_text.exponent_is_an_integer", "boundary"),
    ("json_text.key_twice", "guard"),
    ("json_text.unknown_names_backwards", "order"),
    ("json_text.large_float_is_infinite", "overflow"),
    ("json_text.zero_loses_its_minus", "guard"),
    ("json_text.fields_backwards", "order"),
    ("json_text.infinity_without_quotes", "guard"),
    ("float.sum_from_minus_zero", "sign"),
    ("float.nan_sorts_first", "order"),
    ("regex.match_further_right_wins", "order"),
    ("handlers.outer_ones_come_first", "order"),
    ("handlers.last_instruction_is_outside", "off_by_one"),
    ("loops.stop_when_turned_round", "control_flow"),
    ("request.key_is_lost", "request"),
    ("request.fixed_parts_are_lost", "request"),
    ("express.constant_text_of_the_neighbour", "order"),
    ("express.first_key_is_missing", "comparison"),
    ("express.last_row_is_left_out", "lost_item"),
    ("express.length_of_no_text", "off_by_one"),
    ("express.outputs_change_places", "order"),
    ("express.value_of_the_first_key", "order"),
    ("jit.alignment_wraps", "overflow"),
    ("jit.called_constant_is_whole", "scale"),
    ("jit.called_difference_turned_round", "order"),
    ("jit.called_difference_wraps", "overflow"),
    ("jit.called_long_left_is_equal", "comparison"),
    ("jit.called_long_right_is_less", "comparison"),
    ("jit.called_product_has_the_scale_of_the_left", "scale"),
    ("jit.called_product_without_limit", "scale"),
    ("jit.called_product_wraps", "overflow"),
    ("jit.called_sum_has_the_smaller_scale", "scale"),
    ("jit.called_sum_wraps", "overflow"),
    ("jit.choice_of_constants_begins_at_zero", "control_flow"),
    ("jit.contract_is_not_looked_at", "contract"),
    ("jit.counted_choice_went_both_ways", "control_flow"),
    ("jit.plain_rounds_before_all_was_seen", "control_flow"),
    ("jit.decimal_difference_turned_round", "order"),
    ("jit.decimals_compared_without_scale", "scale"),
    ("jit.difference_wraps", "overflow"),
    ("jit.division_rounds_toward_zero", "rounding"),
    ("jit.divisor_is_taken_for_a_power_of_two", "rounding"),
    ("jit.every_call_is_proven", "overflow"),
    ("jit.exit_forgets_a_register", "lost_item"),
    ("jit.first_round_in_step_costs_nothing", "fuel"),
    ("jit.float_difference_turned_round", "order"),
    ("jit.float_greater_takes_equal", "comparison"),
    ("jit.fuel_of_compiled_code_is_free", "fuel"),
    ("jit.functions_see_old_values", "lost_item"),
    ("jit.goes_on_behind_the_guard", "off_by_one"),
    ("jit.greater_or_equal_misses_equal", "comparison"),
    ("jit.greater_turned_round", "comparison"),
    ("jit.item_is_the_next_one", "off_by_one"),
    ("jit.items_cost_nothing", "fuel"),
    ("jit.items_cost_two_units", "fuel"),
    ("jit.items_of_arrays_cost_nothing", "fuel"),
    ("jit.items_of_ranges_cost_nothing", "fuel"),
    ("jit.items_outlast_the_fuel", "fuel"),
    ("jit.jump_if_false_turned_round", "control_flow"),
    ("jit.least_integer_has_an_opposite", "overflow"),
    ("jit.less_or_equal_is_unsigned", "sign"),
    ("jit.less_takes_equal", "comparison"),
    ("jit.long_coefficient_is_cut_off", "overflow"),
    ("jit.loop_gives_old_values", "lost_item"),
    ("jit.loop_stands_one_item_before", "off_by_one"),
    ("jit.mask_chooses_the_other_side", "control_flow"),
    ("jit.nan_differs_from_nothing", "comparison"),
    ("jit.nan_equals_everything", "comparison"),
    ("jit.nan_is_less", "comparison"),
    ("jit.next_point_is_noted", "off_by_one"),
    ("jit.one_round_too_many", "off_by_one"),
    ("jit.other_side_is_taken", "control_flow"),
    ("jit.product_has_the_scale_of_the_left", "scale"),
    ("jit.product_of_coefficients_wraps", "overflow"),
    ("jit.product_overflows_as_unsigned", "sign"),
    ("jit.product_wraps", "overflow"),
    ("jit.ranges_go_by_one", "order"),
    ("jit.refused_is_taken_for_done", "control_flow"),
    ("jit.rounds_in_step_have_no_limit", "off_by_one"),
    ("jit.rounds_without_items_cost_nothing", "fuel"),
    ("jit.scale_of_a_product_without_limit", "scale"),
    ("jit.second_power_is_forgotten", "scale"),
    ("jit.side_that_is_not_taken_overflows", "guard"),
    ("jit.smaller_scale_counts", "scale"),
    ("jit.sum_has_the_scale_of_the_left", "scale"),
    ("jit.sum_of_coefficients_wraps", "overflow"),
    ("jit.sum_wraps", "overflow"),
    ("jit.zero_on_the_left_is_on_the_right", "comparison"),
    ("batch.null_leaves_the_next_row", "off_by_one"),
    ("batch.unsigned_integers_wrap", "overflow"),
    ("batch.long_coefficient_saturates", "overflow"),
    ("batch.members_by_their_first_byte", "comparison"),
    ("batch.members_by_their_first_bytes", "comparison"),
    ("batch.misfit_is_zero", "guard"),
    ("batch.one_zero_too_few", "scale"),
    ("batch.rows_that_gave_up_are_run_one_later", "off_by_one"),
    ("batch.time_is_without_limit", "fuel"),
    ("batch.fuel_is_without_limit", "fuel"),
    ("scaled.alignment_wraps", "overflow"),
    ("scaled.first_value_of_a_map_decides", "scale"),
    ("scaled.first_way_decides", "scale"),
    ("scaled.one_zero_too_few", "scale"),
    ("scaled.product_has_the_scale_of_the_left", "scale"),
    ("scaled.product_wraps", "overflow"),
    ("scaled.sum_has_the_scale_of_the_left", "scale"),
    ("express.every_short_text_is_ascii", "unicode"),
    ("express.texts_without_their_length", "comparison"),
    ("express.last_number_is_missing", "lost_item"),
    ("express.numbered_texts_are_ascii", "unicode"),
    ("express.numbers_of_other_texts", "off_by_one"),
    ("express.results_stand_one_row_later", "off_by_one"),
    ("express.rows_that_are_left_out_are_run", "guard"),
    ("express.field_before", "off_by_one"),
    ("express.range_with_its_end", "off_by_one"),
    ("express.ranges_have_no_limit", "boundary"),
    ("express.rounds_in_step_have_no_limit", "boundary"),
    ("jit.loops_are_left_by_jumps_alone", "fuel"),
    ("opt.what_fails_is_safe", "guard"),
    ("opt.right_side_is_always_safe", "guard"),
    ("opt.body_is_always_straight", "control_flow"),
    ("opt.folding_that_fails_is_zero", "error_code"),
    ("opt.side_that_decides_hides_a_failure", "guard"),
    ("opt.side_that_decides_is_turned_round", "control_flow"),
    ("opt.fields_are_all_the_first", "lost_item"),
    ("opt.scales_are_all_the_same", "scale"),
    ("opt.stop_when_sees_the_old_state", "order"),
    ("opt.opposite_of_less_is_greater", "off_by_one"),
    ("opt.opposite_of_at_most_is_less", "off_by_one"),
    ("opt.settled_guards_hold", "control_flow"),
    ("opt.guards_outlive_their_scope", "control_flow"),
    ("opt.or_that_holds_tells_of_both", "control_flow"),
    ("opt.shared_values_outlive_their_scope", "lost_item"),
    ("opt.a_value_differs_from_itself", "contract"),
    ("opt.compared_with_itself_cannot_fail", "guard"),
    ("opt.guesses_are_not_confirmed", "overflow"),
    ("opt.overflow_by_one_fits", "overflow"),
    ("opt.hull_forgets_the_other_side", "overflow"),
    ("opt.difference_adds_the_bounds", "sign"),
    ("opt.product_of_the_ends_only", "sign"),
    ("opt.less_is_at_most", "off_by_one"),
    ("opt.touching_ranges_are_below", "off_by_one"),
    ("opt.not_less_is_greater", "off_by_one"),
    ("opt.ranges_outlive_their_scope", "contract"),
    ("opt.a_loop_has_one_round", "overflow"),
    ("opt.only_the_last_return_counts", "contract"),
    ("opt.dead_steps_cannot_fail", "guard"),
    ("opt.what_a_clause_mentions_is_dead", "contract"),
    ("opt.state_of_a_loop_never_changes", "lost_item"),
    ("opt.steps_of_a_loop_never_change", "lost_item"),
    ("opt.item_of_a_loop_never_changes", "lost_item"),
    ("opt.other_values_skip_an_arm", "control_flow"),
    ("opt.the_rest_of_a_test_is_forgotten", "control_flow"),
    ("opt.the_last_test_of_a_value_wins", "order"),
    ("opt.the_other_half_of_a_test_is_lost", "control_flow"),
    ("opt.select_turned_round", "control_flow"),
    ("opt.other_values_take_the_first_arm", "control_flow"),
];
