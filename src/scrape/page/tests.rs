//! Lines in all their spellings, good and bad.

use proptest::prelude::*;

use super::*;

type Expected<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

/// Reads `page`; each sample as its name, its labels and its value, and the bad lines.
fn check(page: &str, expected: &[Expected<'_>], bad: u64) {
    let mut lines = Lines::new(page);
    let read: Vec<Line<'_>> = lines.by_ref().collect();
    assert_eq!(lines.bad(), bad, "{page:?}");
    assert_eq!(read.len(), expected.len(), "{page:?}");
    for (line, (name, labels, value)) in read.iter().zip(expected) {
        let found: Vec<_> = line.labels.iter().collect();
        let labels: Vec<_> = labels
            .iter()
            .map(|(k, v)| (Cow::from(*k), Cow::from(*v)))
            .collect();
        assert_eq!((&*line.name, found), (*name, labels), "{page:?}");
        assert_eq!(line.value.to_bits(), value.to_bits(), "{page:?}");
    }
}

#[test]
fn samples_are_read_in_all_their_spellings() {
    check("a 1", &[("a", &[], 1.0)], 0);
    check(
        "# HELP a b\n\n  # x\na 1\r\nb 2\r\n",
        &[("a", &[], 1.0), ("b", &[], 2.0)],
        0,
    );
    check("vllm:x{} 1.5e3", &[("vllm:x", &[], 1500.0)], 0);
    check(
        "a{b=\"c\"} 1 1700000000000",
        &[("a", &[("b", "c")], 1.0)],
        0,
    );
    check(
        "a{ b = \"c\" , d=\"e\", }\t7",
        &[("a", &[("b", "c"), ("d", "e")], 7.0)],
        0,
    );
    check("a{b=\"}\"}1", &[("a", &[("b", "}")], 1.0)], 0);
    check(
        r#"a{b="q\"\\n\nz\t",c="{d=\"1\"}, # x"} -0"#,
        &[("a", &[("b", "q\"\\n\nz\\t"), ("c", "{d=\"1\"}, # x")], -0.0)],
        0,
    );
    check(
        "a +Inf\na -Inf",
        &[("a", &[], f64::INFINITY), ("a", &[], f64::NEG_INFINITY)],
        0,
    );
    check("a NaN", &[("a", &[], f64::NAN)], 0);
    check(
        "a_bucket{le=\"1\"} 3 # {t=\"x\"} 0.5",
        &[("a_bucket", &[("le", "1")], 3.0)],
        0,
    );
}

#[test]
fn quoted_names_are_names() {
    check("{\"my.name\"} 1", &[("my.name", &[], 1.0)], 0);
    check(
        "{\"my.name\", a=\"b\", \"c.d\"=\"e\",} 2",
        &[("my.name", &[("a", "b"), ("c.d", "e")], 2.0)],
        0,
    );
    check(
        r#"{a="b","wörd \"x\" \\ \n"}3"#,
        &[("wörd \"x\" \\ \n", &[("a", "b")], 3.0)],
        0,
    );
    check("m{\"ä ö\"=\"1\"} 4", &[("m", &[("ä ö", "1")], 4.0)], 0);
}

#[test]
fn times_and_exemplars_are_read() {
    let page = "a_bucket{le=\"1\"} 3 1.5e9 # {trace_id=\"x y\"} 0.5 1520879607.789\n\
                b 1 -3\nc_total 2 # {} 1";
    let lines: Vec<Line<'_>> = Lines::new(page).collect();
    assert_eq!(lines[0].timestamp, Some(1.5e9));
    let exemplar = lines[0].exemplar.expect("one");
    assert_eq!(exemplar.labels.get("trace_id").as_deref(), Some("x y"));
    assert_eq!(
        (exemplar.value, exemplar.timestamp),
        (0.5, Some(1_520_879_607.789))
    );
    assert_eq!((lines[1].timestamp, lines[1].exemplar), (Some(-3.0), None));
    let exemplar = lines[2].exemplar.expect("one");
    assert_eq!(exemplar.labels.iter().count(), 0);
    assert_eq!((exemplar.value, exemplar.timestamp), (1.0, None));
}

#[test]
fn numbers_are_read_in_all_their_spellings() {
    for (text, value) in [
        ("nan", f64::NAN),
        ("NaN", f64::NAN),
        ("+NaN", f64::NAN),
        ("Inf", f64::INFINITY),
        ("inf", f64::INFINITY),
        ("+Infinity", f64::INFINITY),
        ("-inf", f64::NEG_INFINITY),
        ("8.128902e+06", 8_128_902.0),
        ("1E-3", 0.001),
        (".5", 0.5),
        ("5.", 5.0),
        ("+7", 7.0),
        ("1.5e-4", 0.000_15),
    ] {
        let line = format!("a {text}");
        let found = Lines::new(&line).next().expect(text).value;
        assert!(
            found.to_bits() == value.to_bits() || (found.is_nan() && value.is_nan()),
            "{text}: {found}"
        );
    }
}

#[test]
fn what_is_said_of_families_is_read() {
    let page = "# HELP a Some \\n text\n# TYPE a counter\n# UNIT a seconds\n#TYPE b gauge\n\
                # TYPE \"my.name\" histogram\n# TYPE c_info info\n# HELP d\n# a remark\n#\n\
                # TYPE e untyped\n# EOF";
    let mut lines = Lines::new(page);
    let items: Vec<Item<'_>> = std::iter::from_fn(|| lines.item()).collect();
    let name = |name| Cow::Borrowed(name);
    assert_eq!(
        items,
        [
            Item::Help(name("a"), "Some \\n text"),
            Item::Type(name("a"), Type::Counter),
            Item::Unit(name("a"), "seconds"),
            Item::Type(name("b"), Type::Gauge),
            Item::Type(name("my.name"), Type::Histogram),
            Item::Type(name("c_info"), Type::Info),
            Item::Help(name("d"), ""),
            Item::Type(name("e"), Type::Unknown),
            Item::End,
        ]
    );
    assert_eq!(lines.bad(), 0);
    assert!(lines.has_ended());
    for bad in [
        "# TYPE a",
        "# TYPE a b",
        "# TYPE 1 gauge",
        "# TYPE \"a gauge",
        "# UNIT -",
    ] {
        let mut lines = Lines::new(bad);
        assert_eq!((lines.item(), lines.bad()), (None, 1), "{bad}");
    }
}

#[test]
fn a_page_has_ended_only_if_its_end_is_the_last_that_is_said() {
    for (page, ended) in [
        ("a 1\n# EOF", true),
        ("a 1\r\n# EOF\r\n\r\n", true),
        ("a 1\n# EOF\nb 2\n", false),
        ("a 1\n", false),
        ("", false),
    ] {
        let mut lines = Lines::new(page);
        assert_eq!(lines.by_ref().filter(|line| line.value < 1.0).count(), 0);
        assert_eq!(lines.has_ended(), ended, "{page:?}");
    }
}

#[test]
fn a_bad_line_is_counted_and_hurts_no_other() {
    for bad in [
        "<html>",
        "a",
        "a b",
        "1a 1",
        "a{b} 1",
        "a{b=c} 1",
        "a{b=\"c} 1",
        "a{b=\"c\"",
        "{} 1",
        "a{b=\"c\"d=\"e\"} 1",
        "a 1 2 3",
        "a 1 x",
        "a-b 1",
        "a{b=\"c\\",
        "a{\"b\"} 1",
        "{a=\"b\"} 1",
        "{\"\"} 1",
        "{\"a\",\"b\"} 1",
        "a{\"\"=\"c\"} 1",
        "a 1 NaN",
        "a 1 # x",
        "a 1 # {b=\"c\"}",
        "a 1 # {\"b\"} 1",
        "a 1 # {} 1 2 3",
        "ä 1",
    ] {
        let page = format!("x 1\n{bad}\ny 2\n");
        check(&page, &[("x", &[], 1.0), ("y", &[], 2.0)], 1);
    }
}

#[test]
fn a_page_cannot_keep_the_reader_busy_for_ever() {
    let long = format!("a{{b=\"{}\"}} 1\nb 2", "x".repeat(MAX_LINE));
    check(&long, &[("b", &[], 2.0)], 1);
    let page = "\n".repeat(MAX_LINES + 1);
    let mut lines = Lines::new(&page);
    assert_eq!(lines.by_ref().count(), 0);
    assert!(lines.is_cut());
}

#[test]
fn one_label_can_be_asked_for() {
    let line = Lines::new("a{engine=\"0\",model_name=\"m\"} 1")
        .next()
        .expect("a sample");
    assert_eq!(line.labels.get("model_name").as_deref(), Some("m"));
    assert_eq!(line.labels.get("model"), None);
}

proptest! {
    #[test]
    fn no_page_makes_it_panic(page in "[ -~\\n\\r\"\\\\{}äé=,#]{0,200}") {
        for line in Lines::new(&page) {
            prop_assert!(line.labels.iter().count() <= page.len());
        }
    }
}
