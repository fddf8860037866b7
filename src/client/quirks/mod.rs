//! What servers, proxies and gateways are known to do, each with the values that must come out.
//!
//! The quirks are numbered, and so are the faults that users of other tools reported; both lists
//! are complete, and the two tables below say so. A test states the bytes, the instants at which
//! they are read, and by hand what is right.

pub(in crate::client) mod case;
mod counts;
mod endings;
mod fixtures;
mod framing;
mod peer;
mod reports_metric;
mod reports_other;
mod reports_span;
mod reports_wire;
mod tokens;

/// The names of these tests; each must exist.
macro_rules! names {
    ($($test:path),* $(,)?) => {{
        let tests: Vec<(&str, fn())> = vec![$((stringify!($test), $test)),*];
        tests.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    }};
}

/// The number in `tokens::q07_usage_may_be…`, after `letter`.
fn number(name: &str, letter: char) -> u32 {
    let bare = name.rsplit(':').next().expect("a name").trim();
    let digits = bare.strip_prefix(letter).expect("the right letter");
    let end = digits.find('_').expect("a number, then words");
    digits[..end].parse().expect("a number")
}

#[test]
fn every_quirk_has_its_test() {
    let names = names![
        tokens::q01_role_only_first_chunk_is_no_token,
        tokens::q02_a_role_frame_after_the_first_prefill_chunk_starts_nothing,
        tokens::q03_empty_content_in_the_middle_is_no_gap,
        tokens::q04_the_last_delta_may_lack_content,
        tokens::q05_an_explicit_null_equals_absence,
        tokens::q06_usage_comes_after_the_finish_reason_without_choices,
        tokens::q07_usage_may_be_packed_into_the_finish_or_the_last_content_chunk,
        tokens::q08_null_usage_is_none_and_usage_unasked_is_noted,
        tokens::q09_usage_on_each_chunk_counts_the_tokens_of_each,
        tokens::q10_usage_that_is_not_cumulative_counts_no_chunk,
        tokens::q11_several_choices_are_timed_each_for_itself,
        tokens::q12_reasoning_is_found_under_all_its_names_and_counted_once,
        tokens::q13_reasoning_only_has_a_first_token_and_no_output,
        tokens::q14_reasoning_is_part_of_the_output_and_never_added,
        tokens::q15_several_tokens_per_chunk_are_divided_by_tokens_or_not_at_all,
        tokens::q16_the_tokens_of_the_first_chunk_are_not_divided_by,
        tokens::q17_any_part_of_a_tool_call_is_a_token,
        tokens::q18_a_refusal_is_made_of_tokens,
        framing::q19_comments_are_liveness_and_nothing_else,
        framing::q20_a_comment_and_a_blank_line_are_no_event,
        framing::q21_a_keep_alive_wrapped_into_data_is_counted_and_skipped,
        framing::q22_empty_data_lines_are_skipped,
        framing::q23_an_empty_object_says_nothing,
        framing::q24_lines_end_in_any_way_and_at_any_read,
        framing::q25_a_byte_order_mark_is_stripped_once,
        framing::q26_the_space_after_the_colon_is_optional,
        framing::q27_other_fields_and_several_data_lines_follow_the_specification,
        framing::q28_unicode_separators_end_no_line,
        framing::q29_without_done_only_a_finish_reason_is_success,
        framing::q30_done_may_be_ragged,
        framing::q31_what_follows_done_is_noted_and_not_counted,
        framing::q32_events_may_be_split_at_any_byte,
        framing::q33_events_of_one_read_share_their_instant,
        framing::q34_one_corrupt_event_among_good_ones_is_noted,
        endings::q35_an_error_in_a_200_is_a_failure_even_after_tokens,
        endings::q36_every_shape_of_error_is_understood,
        endings::q37_an_event_named_error_is_a_failure,
        endings::q38_json_where_a_stream_was_asked_has_no_first_token,
        endings::q39_a_page_where_a_stream_was_asked_is_kept_in_part,
        endings::q40_the_content_type_is_not_insisted_on,
        endings::q41_identity_is_asked_for_and_an_encoding_read_anyway,
        endings::q42_what_comes_at_once_at_the_end_was_buffered,
        endings::q43_the_end_of_the_connection_is_no_success_by_itself,
        endings::q44_a_connection_that_breaks_keeps_what_came,
        endings::q45_retry_after_is_reported_and_nothing_is_retried,
        endings::q46_a_status_of_a_proxy_has_its_true_time,
        endings::q47_the_azure_prelude_is_no_token,
        endings::q48_a_choice_without_delta_is_a_late_filter_result,
        endings::q49_a_content_filter_is_a_class_of_its_own,
        counts::q50_listed_log_probabilities_count_the_tokens_of_a_chunk,
        counts::q51_listed_token_ids_are_an_exact_count,
        counts::q52_held_back_text_makes_gaps_that_are_no_token_gaps,
        counts::q53_what_the_server_counted_comes_before_what_text_suggests,
        counts::q54_a_chunk_of_no_tokens_divides_nothing,
        counts::q55_usage_is_asked_for_unless_the_operator_says_no,
        counts::q56_the_name_of_the_length_is_a_setting,
        counts::q57_an_answer_without_text_has_no_first_token,
        counts::q58_a_single_chunk_has_a_first_token_and_no_time_between,
        counts::q59_a_role_in_every_chunk_is_ignored,
        counts::q60_clocks_in_the_body_are_nobodys,
        counts::q61_early_hints_redirects_and_trailers,
        counts::q62_every_2xx_is_a_success,
        counts::q63_json_over_several_data_lines_is_joined,
    ];
    let numbers: Vec<u32> = names.iter().map(|name| number(name, 'q')).collect();
    assert_eq!(numbers, (1..=63).collect::<Vec<_>>());
}

/// The rows of the classes wire, metric, timing, report, load and probe, and those about spans. Row
/// 51 is about when requests are sent, and tested with the load; the rows between are about metrics pages and GPUs, and row 48 is
/// tested where metrics leave.
const ROWS: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 33, 35, 36,
    38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 50, 52, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70,
    71, 72, 73, 74, 75, 76, 77, 78,
];

#[test]
fn every_report_has_its_test() {
    let names = names![
        reports_wire::b001_the_last_delta_is_an_empty_object,
        reports_wire::b002_an_error_in_a_200_is_no_success_with_zero_latency,
        reports_other::b003_a_missing_first_token_is_no_time_at_all,
        reports_wire::b004_null_tool_calls_equal_none,
        reports_metric::b005_reasoning_of_the_responses_api_comes_before_its_output,
        reports_wire::b006_reasoning_content_alone_is_a_first_token,
        reports_metric::b007_a_role_frame_is_neither_first_token_nor_start_of_a_gap,
        reports_metric::b008_a_hundred_tokens_in_forty_chunks,
        reports_metric::b009_four_tokens_every_forty_milliseconds,
        reports_wire::b018_a_stream_cut_by_the_server_keeps_its_times,
        reports_wire::b019_usage_on_every_chunk_and_on_the_role_frame,
        reports_wire::b020_usage_of_prefill_chunks_holds_no_tokens,
        reports_wire::b021_usage_that_counts_one_on_every_chunk_is_flagged,
        reports_wire::b022_usage_that_was_not_asked_for_is_taken,
        reports_wire::b023_done_after_each_chunk_ends_nothing_before_the_end,
        reports_wire::b024_an_incomplete_chunked_body_is_a_broken_connection,
        reports_wire::b025_the_renamed_reasoning_field_counts,
        reports_metric::b026_a_stream_without_content_is_no_sample,
        reports_wire::b027_a_chunk_without_choices_is_skipped,
        reports_wire::b028_usage_beside_an_empty_text_is_the_count,
        reports_metric::b029_a_chunk_that_retokenises_to_nothing_divides_nothing,
        reports_metric::b030_itl_agrees_with_the_rate_of_tokens,
        reports_metric::b032_reasoning_that_is_cut_off_or_followed_by_an_answer,
        reports_metric::b033_no_chunk_is_tokenised_by_itself,
        reports_metric::b035_only_events_with_tokens_are_timed,
        reports_other::b036_the_beginning_of_a_wrong_body_is_kept,
        reports_other::b038_an_error_after_two_minutes_took_two_minutes,
        reports_metric::b039_ten_tokens_per_chunk_of_reasoning_and_output_alike,
        reports_metric::b040_two_first_tokens_in_one_read_are_flagged,
        reports_other::b041_fewer_tokens_than_asked_for_are_noted,
        reports_wire::b042_usage_that_stays_null_leaves_chunks,
        reports_wire::b043_a_read_may_end_right_after_the_name_of_the_field,
        reports_metric::b044_tokens_of_a_reasoning_parser_are_output_tokens,
        reports_metric::b045_empty_chunks_in_the_middle_make_no_gaps,
        reports_metric::b046_no_beginning_of_text_is_added_to_an_answer,
        reports_metric::b047_itl_leaves_out_the_first_token_and_counts_tokens,
        reports_other::b050_a_kept_connection_is_used_again_and_the_record_says_so,
        reports_other::b052_a_target_that_never_answers_is_a_counted_failure,
        reports_span::b059_a_streamed_response_has_a_span_that_ends_with_it_and_its_usage,
        reports_span::b060_a_chunk_without_choices_at_the_end_costs_no_span,
        reports_wire::b061_a_prompt_that_is_too_long_is_a_failure_in_the_stream,
        reports_wire::b062_half_a_character_is_read_lossily,
        reports_wire::b063_comments_before_the_first_data_are_no_error,
        reports_wire::b064_a_comment_after_an_event_is_no_empty_event,
        reports_wire::b065_a_wrapped_keep_alive_aborts_nothing,
        reports_wire::b066_a_line_of_one_colon_is_ignored,
        reports_wire::b067_crlf_no_space_and_split_characters_together,
        reports_wire::b068_line_separators_in_the_text_split_nothing,
        reports_wire::b069_an_event_glued_into_another_is_one_corrupt_event,
        reports_wire::b070_an_empty_object_is_ignored,
        reports_wire::b071_the_first_chunk_of_azure_starts_nothing,
        reports_wire::b072_a_choice_without_delta_is_skipped,
        reports_metric::b073_the_first_token_of_any_channel_whatever_the_other_says,
        reports_wire::b074_a_guardrail_that_closes_the_stream_is_a_cut,
        reports_wire::b075_an_end_without_done_and_without_finish_is_no_success,
        reports_wire::b076_usage_beside_the_finish_reason_is_read,
        reports_metric::b077_spaces_are_counted_by_the_server,
        reports_metric::b078_speculative_chunks_are_not_tokens,
    ];
    let numbers: Vec<u32> = names.iter().map(|name| number(name, 'b')).collect();
    assert_eq!(numbers, ROWS);
}
