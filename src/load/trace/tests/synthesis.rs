//! Traces made from others, with results worked out by hand.

use super::*;

const TEXT: &str = "{\"timestamp\":1000,\"input_length\":2100,\"output_length\":10,\"hash_ids\":[1,2,3,4,5]}\n\
    {\"timestamp\":2000,\"input_length\":2048,\"output_length\":20,\"hash_ids\":[1,2,6,7]}\n\
    {\"timestamp\":3000,\"input_length\":100,\"output_length\":30,\"hash_ids\":[8],\"delay\":50}\n";

fn made(how: Synthesis, text: &str) -> Vec<String> {
    let given = rows(Format::Mooncake, text.as_bytes());
    let mut shared = SharedBlocks::default();
    for row in &given {
        assert!(shared.add(row));
    }
    let mut synthesizer = Synthesizer::new(how, shared, Clock::Start);
    given
        .into_iter()
        .filter_map(|mut row| synthesizer.change(&mut row).then(|| told(&row)))
        .collect()
}

#[test]
fn nothing_asked_for_changes_nothing() {
    assert_eq!(made(Synthesis::default(), TEXT), lines(TEXT));
}

#[test]
fn times_and_pauses_are_shortened() {
    let how = Synthesis {
        speedup: 4.0,
        ..Synthesis::default()
    };
    let told = made(how, TEXT);
    assert!(told[1].starts_with("0.5 "), "{told:?}");
    assert!(
        told[2].starts_with("0.75 ") && told[2].ends_with(" +0.0125"),
        "{told:?}"
    );
}

#[test]
fn a_prefix_grows_block_by_block_the_same_for_all() {
    let how = Synthesis {
        prefix_len: 1.5,
        ..Synthesis::default()
    };
    // Of the prefix [1, 2] the first becomes one block, the second two: 1·2, then 2·2 and 2·2+1.
    assert_eq!(
        made(how, TEXT),
        [
            "1 2612/10 [2, 4, 5, 6, 8, 10]x512",
            "2 2560/20 [2, 4, 5, 12, 14]x512",
            "3 100/30 [16]x512 +0.05",
        ]
    );
    let how = Synthesis {
        prefix_len: 0.25,
        ..Synthesis::default()
    };
    // At least one block stays.
    assert_eq!(
        made(how, TEXT),
        [
            "1 1588/10 [1, 3, 4, 5]x512",
            "2 1536/20 [1, 6, 7]x512",
            "3 100/30 [8]x512 +0.05",
        ]
    );
}

#[test]
fn what_is_not_prefix_gets_blocks_of_its_own() {
    let how = Synthesis {
        prompt_len: 0.5,
        output_len: 1.5,
        ..Synthesis::default()
    };
    // 2100 − 1024 = 1076, half of it 538: two blocks; then 512: one; then 50: one.
    assert_eq!(
        made(how, TEXT),
        [
            "1 1562/15 [1, 2, 10, 11]x512",
            "2 1536/30 [1, 2, 12]x512",
            "3 50/45 [13]x512 +0.05",
        ]
    );
}

#[test]
fn trees_share_nothing_with_each_other() {
    let how = Synthesis {
        prefix_roots: 2,
        ..Synthesis::default()
    };
    let row = "{\"timestamp\":0,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[3,4]}\n";
    let told = made(how, &row.repeat(64));
    let of = |ids: &str| told.iter().filter(|row| row.contains(ids)).count();
    // Ids of the second tree begin behind the largest of the first.
    let (first, second) = (of("[3, 4]"), of("[8, 9]"));
    assert_eq!(first + second, 64);
    assert!((20..=44).contains(&first), "{first}");
    let session = row.replace('}', ",\"session_id\":\"a\"}").repeat(64);
    let told = made(how, &session);
    assert!(
        told.iter().all(|row| row == &told[0]),
        "a session stays in its tree"
    );
    let other = made(Synthesis { seed: 1, ..how }, &row.repeat(64));
    assert_ne!(made(how, &row.repeat(64)), other);
}

#[test]
fn caps_hold_for_the_result() {
    let how = Synthesis {
        prompt_len: 2.0,
        max_input: Some(2_600),
        max_output: Some(15),
        ..Synthesis::default()
    };
    // Nine new ids went to the rows that became too long.
    assert_eq!(made(how, TEXT), ["3 200/15 [19]x512 +0.05"]);
}

#[test]
fn rows_without_ids_are_all_their_own() {
    let how = Synthesis {
        prompt_len: 3.0,
        prefix_len: 5.0,
        ..Synthesis::default()
    };
    let text = "{\"timestamp\":1,\"input_length\":7,\"output_length\":2,\"session_id\":\"a\"}\n";
    assert_eq!(
        made(
            how,
            &text.replace("\"output_length\":2", "\"output_length\":2,\"hash_ids\":[]")
        ),
        ["0.001 21/2 a"]
    );
}

#[test]
fn multipliers_have_limits() {
    assert!(is_multiplier(0.0) && is_multiplier(1_000.0));
    for value in [-1.0, 1_000.1, f64::NAN, f64::INFINITY] {
        assert!(!is_multiplier(value), "{value}");
    }
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(!is_speedup(value), "{value}");
    }
}
