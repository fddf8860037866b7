//! Where a value comes from (file format, environment, flags, secrets), and what the reference
//! page says of it.

use super::*;

#[test]
fn toml_says_the_same_with_its_own_lines() {
    let good = "[[targets]]\nname = \"a\"\nurl = \"http://h:1\"\n[[probes]]\nname = \"p\"\n\
                targets = [\"a\"]\narrivals = { process = \"constant\", rate = \"1/s\" }\n\
                [probes.workload]\nsynthetic = { input_tokens = 8, output_tokens = 4 }\n";
    let yaml = from_text(&with_probe(GOOD), Format::Yaml, "y").expect("good YAML");
    assert_eq!(from_text(good, Format::Toml, "t"), Ok(yaml));
    let bad = format!("{good}cache = \"hot\"\n[governor]\nin_flight = 1.5\n");
    let found = from_text(&bad, Format::Toml, "t").expect_err("it is refused");
    assert_eq!(
        found.to_string(),
        "t:10: `probes[0].workload.cache`: not understood
  given: `hot`
  wanted: `cold`, `warm` or `paired`
t:12: `governor.in_flight`: wrong type
  given: `1.5`
  wanted: a whole number from `1` to `100000`"
    );
}

#[test]
fn the_environment_overlays_the_file_and_flags_overlay_both() {
    let text = format!(
        "{}governor: {{ in_flight: 2 }}\nseed: 1\n",
        with_probe(GOOD)
    );
    let env = [
        ("TOKENCANARY__governor__in_flight", "3"),
        ("TOKENCANARY__GOVERNOR__TOKENS_PER_DAY", "2M"),
        ("TOKENCANARY__seed", "7"),
        ("TOKENCANARY_SERVICE_HOST", "10.0.0.1"),
        ("HOME", "/"),
    ];
    let flags = [FlagOverride {
        path: "seed".to_owned(),
        value: "9".to_owned(),
        flag: "--seed".to_owned(),
    }];
    let config = overlaid(&text, &env, &flags).expect("a good configuration");
    assert_eq!(config.governor.in_flight, 3);
    assert_eq!(config.governor.tokens_per_day, Some(2_000_000));
    assert_eq!(config.seed, Some(9));
}

#[test]
fn a_bad_overlay_is_told_by_its_variable_or_flag() {
    let env = [
        ("TOKENCANARY__governor__in_flight", "many"),
        ("TOKENCANARY__govenor__in_flight", "3"),
        ("TOKENCANARY__targets__0__url", "http://x"),
        ("TOKENCANARY__export__files__keep", "3"),
    ];
    let flags = [FlagOverride {
        path: "drain".to_owned(),
        value: "5".to_owned(),
        flag: "--drain".to_owned(),
    }];
    let found = overlaid(&with_probe(GOOD), &env, &flags).expect_err("it is refused");
    assert_eq!(
        found,
        "environment variable `TOKENCANARY__export__files__keep`: `export.files.dir`: missing
  wanted: the path of a directory
environment variable `TOKENCANARY__govenor__in_flight`: `govenor`: unknown key
  hint: did you mean `governor`
environment variable `TOKENCANARY__governor__in_flight`: `governor.in_flight`: not understood
  given: `many`
  wanted: a whole number from `1` to `100000`
environment variable `TOKENCANARY__targets__0__url`: `targets.0.url`: unknown key
  wanted: a key outside lists
  hint: `targets` can be set in the file only
flag `--drain`: `drain`: wrong unit
  given: `5`
  wanted: a duration, as in `4s`
  hint: write `5s`"
    );
}

#[test]
fn two_variables_for_one_key_are_refused() {
    let env = [
        ("TOKENCANARY__SEED", "1"),
        ("TOKENCANARY__seed", "2"),
        ("TOKENCANARY__governor", "x"),
        ("TOKENCANARY__governor__in_flight", "2"),
    ];
    let found = overlaid(&with_probe(GOOD), &env, &[]).expect_err("it is refused");
    assert_eq!(
        found,
        "environment variable `TOKENCANARY__governor`: `governor`: wrong type
  given: `x`
  wanted: the section `governor`
environment variable `TOKENCANARY__governor__in_flight`: `governor.in_flight`: given twice
  wanted: one variable for a key
  hint: `TOKENCANARY__governor` sets it already
environment variable `TOKENCANARY__seed`: `seed`: given twice
  wanted: one variable for a key
  hint: `TOKENCANARY__SEED` sets it already"
    );
}

#[test]
fn a_hostile_text_is_refused_in_bounded_space() {
    let deep = 200_000;
    let mut bomb = "a: &a [x, x]\n".to_owned();
    for letter in b'b'..=b'z' {
        let (name, of) = (char::from(letter), char::from(letter - 1));
        let line = format!("{name}: &{name} [{}]\n", format!("*{of}, ").repeat(10));
        bomb.push_str(&line);
    }
    for (text, format) in [
        ("[".repeat(deep), Format::Yaml),
        ("{a: ".repeat(deep), Format::Yaml),
        ("- ".repeat(deep), Format::Yaml),
        (bomb, Format::Yaml),
        ("a: 1\n---\na: 2\n".to_owned(), Format::Yaml),
        (format!("a = {}", "[".repeat(deep)), Format::Toml),
        (format!("{}a = 1", "a.".repeat(deep)), Format::Toml),
        (format!("[{}a]\nb = 1", "a.".repeat(deep)), Format::Toml),
    ] {
        let found = from_text(&text, format, "x").expect_err("it is refused");
        let found = found.to_string();
        assert!(found.contains("syntax error"), "{found:.300}");
    }
}

/// `lines` belong to the only target; they start at line 3.
fn with_target(lines: &str) -> String {
    with_probe(GOOD).replace("  url:", &format!("{lines}\n  url:"))
}

#[test]
fn secrets_come_from_the_environment_or_a_file() {
    let key_file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/minimal.yaml");
    let text = with_target("  api_key: { env: KEY }\n  headers: { X-A: plain, X-B: { env: KEY } }");
    let config = overlaid(&text, &[("KEY", " s3cret\n")], &[]).expect("a good configuration");
    let target = &config.targets[0];
    assert_eq!(target.api_key, Some(Secret::new("s3cret")));
    assert_eq!(target.headers[0], ("X-A".to_owned(), Secret::new("plain")));
    assert_eq!(target.headers[1], ("X-B".to_owned(), Secret::new("s3cret")));
    assert!(!format!("{config:?}").contains("s3cret"));
    let many_lines = with_target(&format!("  api_key: {{ file: {key_file} }}"));
    let found = overlaid(&many_lines, &[], &[]).expect_err("several lines are no key");
    assert_eq!(
        found,
        "c.yaml:3: `targets[0].api_key`: not understood\n  wanted: printable ASCII on one line"
    );
}

#[test]
fn a_secret_is_never_shown() {
    for (lines, expected) in [
        (
            "  api_key: sk-hush",
            "c.yaml:3: `targets[0].api_key`: a secret in clear
  wanted: `{ env: NAME }` or `{ file: PATH }`
  hint: set an environment variable and name it here",
        ),
        (
            "  api_key: { sk-hush: 1 }",
            "c.yaml:3: `targets[0].api_key`: wrong type\n  wanted: `{ env: NAME }` or `{ file: PATH }`",
        ),
        (
            "  api_key: { env: KEY }",
            "c.yaml:3: `targets[0].api_key`: cannot be read
  wanted: the environment variable `KEY` set, and not empty",
        ),
        (
            "  api_key: { file: /no/such/file }",
            "c.yaml:3: `targets[0].api_key`: cannot be read
  wanted: a text file at `/no/such/file`
  hint: there is no such file",
        ),
        (
            "  api_key: { file: / }",
            "c.yaml:3: `targets[0].api_key`: cannot be read
  wanted: a text file at `/`
  hint: it is a directory",
        ),
        (
            "  headers: { X-Key: 5, 'a b': hush, Host: hush, x-key: \"hu\\nsh\" }",
            "c.yaml:3: `targets[0].headers.Host`: does not go together
  wanted: a header that is not set for each request anyway
c.yaml:3: `targets[0].headers.X-Key`: wrong type
  wanted: a text
  hint: put it in quotes
c.yaml:3: `targets[0].headers.a b`: not understood
  wanted: the name of a header
c.yaml:3: `targets[0].headers.x-key`: not understood
  wanted: printable ASCII on one line",
        ),
        (
            "  server_metrics: http://user:hush@h/",
            "c.yaml:3: `targets[0].server_metrics`: not understood
  wanted: a URL, as in `http://127.0.0.1:8000/metrics`
  hint: only host, port and path may follow the scheme",
        ),
    ] {
        check(&with_target(lines), expected);
    }
}

#[test]
fn a_limit_that_is_left_out_stays_below_the_total() {
    let text = format!(
        "{}\n  limits: {{ total: 8s, connect: 1s }}\n",
        with_probe(GOOD)
    );
    let config = from_text(&text, Format::Yaml, "c.yaml").expect("a good configuration");
    let seconds = Duration::from_secs;
    let expected = Limits {
        connect: seconds(1),
        first_token: Some(seconds(8)),
        gap: Some(seconds(8)),
        total: seconds(8),
    };
    assert_eq!(config.probes[0].limits, expected);
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    for (path, hint) in [
        ("/no/such/file.yaml", "there is no such file"),
        (dir, "it is a directory"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"),
            "the extension tells the format",
        ),
        ("/dev/null", "it is not a regular file"),
    ] {
        let found = load(path.as_ref(), std::iter::empty(), &[]).expect_err(path);
        assert_eq!(
            found.to_string(),
            format!(
                "{path}: cannot be read
  wanted: a configuration file, `.yaml`, `.yml` or `.toml`
  hint: {hint}"
            )
        );
    }
    let minimal = format!("{dir}/minimal.yaml");
    assert!(load(minimal.as_ref(), std::iter::empty(), &[]).is_ok());
}

#[test]
fn the_reference_names_every_key() {
    let reference = include_str!("../../../docs/configuration.md");
    for table in super::keys::TABLES {
        for key in table.keys {
            let path = super::reader::join(table.at, key.name);
            assert!(
                reference.contains(&format!("`{path}`")),
                "`{path}` is not described"
            );
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(from_text(&text, Format::Yaml, "x").is_err());
        prop_assert!(from_text(&text, Format::Toml, "x").is_err());
    }

    #[test]
    fn no_half_sensible_text_makes_the_reader_panic(
        parts in proptest::collection::vec(0..FRAGMENTS.len(), 0..60)
    ) {
        let text: String = parts.iter().map(|part| FRAGMENTS[*part]).collect();
        let found = from_text(&text, Format::Yaml, "x").map_err(|found| found.to_string());
        prop_assert!(found != Err(String::new()));
        let found = from_text(&text, Format::Toml, "x").map_err(|found| found.to_string());
        prop_assert!(found != Err(String::new()));
    }

    #[test]
    fn a_cut_file_never_makes_it_panic(end in 0..CANARY.len()) {
        let text = String::from_utf8_lossy(&CANARY.as_bytes()[..end]);
        let found = from_text(&text, Format::Yaml, "x").map_err(|found| found.to_string());
        prop_assert!(found != Err(String::new()));
    }
}

const CANARY: &str = include_str!("../../../config/canary.yaml");

/// Pieces of configurations, good and bad, for random texts.
const FRAGMENTS: [&str; 24] = [
    "targets", "probes", "export", ": ", "\n", "\n- ", "\n  ", "{ ", " }", "[", "]", "name", "url",
    "'", "\"", "http://h", "9/s", "-1", ".inf", "&a ", "*a", "<<", " = ", "#",
];

/// The example in the reference is what the reader says.
#[test]
fn the_reference_shows_a_real_message() {
    let reference = include_str!("../../../docs/configuration.md");
    let block = |name: &str| {
        let (_, rest) = reference
            .split_once(&format!("```{name}\n"))
            .expect("the block is there");
        rest.split_once("```").expect("the block ends").0.to_owned()
    };
    let found = from_text(&block("yaml"), Format::Yaml, "canary.yaml").expect_err("it is refused");
    assert_eq!(format!("{found}\n"), block("text"));
}
