//! What a text of lengths means, what it is written as, and what is refused; means by hand.

use super::*;

fn parsed(text: &str) -> Lengths {
    Lengths::parse(text).expect("it is right")
}

fn refused(text: &str) -> String {
    Lengths::parse(text).expect_err("it is wrong")
}

#[test]
fn every_form_is_read_and_written_again() {
    let mix = Lengths::Mix(Arc::new([
        (
            70.0,
            Lengths::Normal {
                mean: 128.0,
                sd: 16.0,
            },
        ),
        (30.0, Lengths::Fixed(2_048)),
    ]));
    let nested = Lengths::Mix(Arc::new([
        (1.0, Lengths::Fixed(5)),
        (
            0.5,
            Lengths::Mix(Arc::new([(2.0, Lengths::OneOf(Arc::new([(3.0, 7)])))])),
        ),
    ]));
    let one_of = Lengths::OneOf(Arc::new([(1.0, 128), (3.0, 256), (1.0, 512)]));
    for (text, expected, written) in [
        ("128", Lengths::Fixed(128), "128"),
        (
            "normal(512, 64)",
            Lengths::Normal {
                mean: 512.0,
                sd: 64.0,
            },
            "normal(512, 64)",
        ),
        (
            " log_normal ( 512.5 ,256) ",
            Lengths::LogNormal {
                mean: 512.5,
                sd: 256.0,
            },
            "log_normal(512.5, 256)",
        ),
        (
            "uniform(64,256)",
            Lengths::Uniform {
                least: 64,
                most: 256,
            },
            "uniform(64, 256)",
        ),
        (
            "one_of(128, 256:3, 512:1)",
            one_of,
            "one_of(128, 256:3, 512)",
        ),
        (
            "mix(70: normal(128, 16), 30: 2048)",
            mix,
            "mix(70: normal(128, 16), 30: 2048)",
        ),
        (
            "mix(5, .5:mix(2:one_of(7:3)))",
            nested,
            "mix(5, 0.5: mix(2: one_of(7:3)))",
        ),
    ] {
        let found = parsed(text);
        assert_eq!(found, expected, "{text}");
        assert_eq!(found.to_string(), written);
        assert_eq!(parsed(written), expected, "{written}");
    }
}

#[test]
fn what_is_wrong_is_named_with_what_was_wanted() {
    let forms = "wanted a length as in `128`, `normal(512, 64)`, `log_normal(512, 256)`, \
                 `uniform(64, 256)`, `one_of(128, 256:3)` or `mix(70: 128, 30: 2048)`";
    let whole = "wanted whole tokens from 1 to 1000000";
    for (text, message) in [
        ("", format!("``, {forms}")),
        ("many", format!("`many`, {forms}")),
        ("gamma(1, 2)", format!("`gamma(1, 2)`, {forms}")),
        ("0", format!("`0`, {whole}")),
        ("1.5", format!("`1.5`, {whole}")),
        ("1000001", format!("`1000001`, {whole}")),
        ("normal(5, 1", "`normal(5, 1`, wanted `)` at the end".into()),
        (
            "normal(5)",
            "`normal(5)`, wanted a mean and a standard deviation".into(),
        ),
        (
            "normal(NaN, 1)",
            "`NaN` as a mean, wanted 1 to 1000000".into(),
        ),
        (
            "normal(5, -1)",
            "`-1` as a standard deviation, wanted 0 to 1000000".into(),
        ),
        (
            "log_normal(0, 1)",
            "`0` as a mean, wanted 1 to 1000000".into(),
        ),
        (
            "log_normal(5, 501)",
            "`501` as a standard deviation, wanted 0 to 500".into(),
        ),
        (
            "uniform(9)",
            "`uniform(9)`, wanted the least and the most".into(),
        ),
        (
            "uniform(9, 8)",
            "`8` as the most, wanted at least 9, the least".into(),
        ),
        ("one_of()", format!("``, {whole}")),
        (
            "one_of(5:-1)",
            "`-1` as a weight, wanted 0 to 1000000000".into(),
        ),
        (
            "one_of(5:0)",
            "all weights are `0`, wanted a positive one".into(),
        ),
        (
            "mix(x: 5)",
            "`x` as a weight, wanted 0 to 1000000000".into(),
        ),
        (
            "mix(mix(mix(5)))",
            "`mix(5)` inside 2 mixes, wanted at most 2 inside each other".into(),
        ),
        ("one_of(5))", "`5)`, wanted a `)` for each `(`".into()),
    ] {
        assert_eq!(refused(text), message, "{text}");
    }
    let long = format!("one_of({})", vec!["1"; 1_001].join(","));
    assert_eq!(refused(&long), "more than 1000 parts, wanted fewer");
}

#[test]
fn range_ratios_are_those_of_vllm_and_sglang() {
    let uniform = |least, most| Lengths::Uniform { least, most };
    assert_eq!(Lengths::around(100, 0.25), uniform(75, 125));
    assert_eq!(
        Lengths::around(101, 0.25),
        uniform(75, 127),
        "75.75 and 126.25"
    );
    assert_eq!(Lengths::around(1, 0.9), uniform(1, 2), "0.1 and 1.9");
    assert_eq!(Lengths::around(7, 0.0), uniform(7, 7));
    assert_eq!(Lengths::up_to(100, 0.5), uniform(50, 100));
    assert_eq!(Lengths::up_to(101, 0.5), uniform(50, 101));
    assert_eq!(Lengths::up_to(100, 0.0), uniform(1, 100));
    assert_eq!(Lengths::up_to(100, 1.0), uniform(100, 100));
}

#[test]
fn bounds_are_those_of_the_parts_that_occur() {
    for (text, least, most) in [
        ("7", 7, 7),
        ("uniform(3, 9)", 3, 9),
        ("one_of(4, 2, 8:0)", 2, 4),
        ("mix(1: uniform(3, 9), 2: 40)", 3, 40),
        ("normal(512, 64)", 1, 1_000_000),
        ("log_normal(512, 64)", 1, 1_000_000),
    ] {
        let lengths = parsed(text);
        assert_eq!((lengths.least(), lengths.most()), (least, most), "{text}");
    }
}

#[test]
fn means_are_those_of_what_is_drawn() {
    for (text, expected, error) in [
        ("7", 7.0, 0.0),
        ("uniform(3, 10)", 6.5, 0.0),
        ("one_of(10, 20:3)", 17.5, 1e-9),
        ("mix(3: 10, 1: uniform(10, 30))", 12.5, 1e-9),
        ("normal(512, 64)", 512.0, 0.001),
        // Almost always rounded to 100.
        ("normal(100.3, 0.05)", 100.0, 0.001),
        // Half are rounded up.
        ("normal(100.5, 0.2)", 100.5, 0.001),
        ("normal(7.6, 0)", 8.0, 0.0),
        // What lies above ½: 1 + 1000·φ(−0.0005)/Φ(0.0005).
        ("normal(1, 1000)", 798.566, 0.01),
        ("log_normal(512, 256)", 512.0, 0.001),
        ("log_normal(90000, 30000)", 90_000.0, 1.0),
        ("log_normal(512, 0)", 512.0, 0.0),
    ] {
        let found = parsed(text).mean();
        assert!((found - expected).abs() <= error, "{text}: {found}");
    }
}

#[test]
fn pairs_come_in_three_forms_and_by_name() {
    let normal = |mean, sd| Lengths::Normal { mean, sd };
    let expected = [
        SizePair {
            input: normal(128.0, 16.0),
            output: Lengths::Fixed(64),
            percent: 70.0,
        },
        SizePair {
            input: Lengths::Fixed(4_096),
            output: normal(1_024.0, 100.5),
            percent: 30.0,
        },
    ];
    for text in [
        "128|16,64:70;4096,1024|100.5:30",
        " 128|16 , 64 : 70 ; 4096 , 1024|100.5 : 30 ;",
        "[(128|16,64):70,(4096,1024|100.5):30]",
        "[ (128|16, 64): 70, (4096, 1024|100.5): 30 ]",
        r#"{"pairs":[{"isl":128,"isl_stddev":16,"osl":64,"prob":70},
            {"isl":4096,"osl":1024,"osl_stddev":100.5,"prob":30.0}]}"#,
    ] {
        let pairs = SizePairs::parse(text).expect("it is right");
        assert_eq!(pairs.pairs(), expected, "{text}");
        assert_eq!(pairs.to_string(), "128|16,64:70;4096,1024|100.5:30");
    }
    for (name, written) in [
        ("short-short", "128,64:100"),
        ("short-long", "128,1024:100"),
        ("long-short", "4096,64:100"),
        ("long-long", "4096,1024:100"),
        ("512x512", "512,512:100"),
        ("1024x1024", "1024,1024:100"),
        ("4096x1024", "4096,1024:100"),
    ] {
        let pairs = SizePairs::parse(name).expect("it has this name");
        assert_eq!(pairs.to_string(), written);
    }
    let thirds = SizePairs::parse("1,1:33.3333333;2,2:33.3333333;3,3:33.3333334");
    assert_eq!(thirds.expect("they sum to 100").pairs().len(), 3);
}

#[test]
fn pairs_have_means() {
    let pairs = SizePairs::parse("100,10:75;300|5,50:25").expect("it is right");
    let (input, output) = pairs.mean();
    assert!((input - 150.0).abs() < 0.001, "{input}");
    assert!((output - 20.0).abs() < 1e-9, "{output}");
}

#[test]
fn wrong_pairs_are_named_with_what_was_wanted() {
    let pairs = "wanted pairs as in `128|16,64:70;4096,1024:30` (percent), or one of \
                 `short-short`, `short-long`, `long-short`, `long-long`, `512x512`, `1024x1024`, \
                 `4096x1024`";
    for (text, message) in [
        ("", format!("``, {pairs}")),
        ("medium", format!("`medium`, {pairs}")),
        ("128:100", format!("`128`, {pairs}")),
        ("128,64", format!("`128,64`, {pairs}")),
        ("[128,64:100]", format!("`128,64:100`, {pairs}")),
        (
            "[(128,64):100",
            "`[(128,64):100`, wanted `]` at the end".into(),
        ),
        (
            "128,64:60;1,1:30",
            "percentages that sum to `90`, wanted 100".into(),
        ),
        ("0,64:100", "`0` as tokens, wanted 1 to 1000000".into()),
        ("1,NaN:100", "`NaN` as tokens, wanted 1 to 1000000".into()),
        ("1.5,1:100", "`1.5` as tokens, wanted a whole number".into()),
        (
            "1|-2,1:100",
            "`-2` as a standard deviation, wanted 0 to 1000000".into(),
        ),
        ("1,1:101", "`101` as a percentage, wanted 0 to 100".into()),
        (
            r#"{"pairs":[{"isl":0,"osl":1,"prob":100}]}"#,
            "`0` as `isl`, wanted 1 to 1000000".into(),
        ),
        (
            r#"{"pairs":[]}"#,
            "percentages that sum to `0`, wanted 100".into(),
        ),
    ] {
        let found = SizePairs::parse(text).expect_err("it is wrong");
        assert_eq!(found, message, "{text}");
    }
    let unknown = SizePairs::parse(r#"{"pairs":[{"isl":1,"osl":1,"probability":1}]}"#);
    let unknown = unknown.expect_err("it is wrong");
    assert!(
        unknown.starts_with("unknown field `probability`"),
        "{unknown}"
    );
}
