//! Functions of a small language with braces. Spaces stand inside brackets, and there are no
//! numbers, since both are split differently from one tokenizer to the next. Comments begin with
//! `#`, since some tokenizers join slashes with the line breaks before them.

use std::collections::VecDeque;

use super::super::draws::Draws;
use super::{Unit, prose};

/// What values are called.
const VALUES: [&str; 64] = [
    "value", "count", "total", "index", "item", "key", "name", "result", "data", "line", "text",
    "size", "start", "end", "left", "right", "first", "last", "point", "node", "list", "map",
    "queue", "table", "row", "column", "width", "height", "limit", "offset", "length", "number",
    "path", "user", "order", "price", "score", "level", "rate", "sum", "input", "output", "source",
    "target", "buffer", "block", "token", "batch", "step", "time", "delay", "state", "status",
    "event", "message", "request", "response", "error", "code", "flag", "mode", "cache", "min",
    "max",
];
/// What functions are called.
const VERBS: [&str; 34] = [
    "find", "load", "save", "read", "write", "parse", "build", "check", "merge", "split", "sort",
    "filter", "move", "update", "remove", "insert", "add", "get", "set", "send", "open", "close",
    "stop", "run", "scan", "test", "make", "draw", "print", "copy", "clear", "reset", "store",
    "format",
];
/// Between two values.
const SUMS: [&str; 4] = ["+", "-", "*", "/"];
/// Between two values that are compared.
const ORDERS: [&str; 4] = ["<", ">", "==", "!="];
/// Statements of a function.
const STATEMENTS: (u32, u32) = (3, 8);

/// What one level of blocks is set in by, less the space before the word that follows.
const ONE_LEVEL: &str = "   ";
const TWO_LEVELS: &str = "       ";

/// A function, the comment before it and the empty line after it.
pub(super) fn function(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    words(out, &["#"]);
    prose::sentence(draws, out);
    out.extend([Unit::mark(".\n"), Unit::mark("function")]);
    let (one, other) = (draws.pick(&VALUES), draws.pick(&VALUES));
    words(out, &[draws.pick(&VERBS)]);
    out.push_back(Unit::mark("("));
    words(out, &[one]);
    out.push_back(Unit::mark(","));
    words(out, &[other, ")", "{\n"]);
    for _ in 0..draws.within(STATEMENTS.0, STATEMENTS.1) {
        statement(draws, out, one);
    }
    out.push_back(Unit::mark(ONE_LEVEL));
    words(out, &["return", draws.pick(&[one, other])]);
    out.extend([Unit::mark(";\n"), Unit::mark("}\n\n")]);
}

fn statement(draws: &mut Draws, out: &mut VecDeque<Unit>, known: &'static str) {
    out.push_back(Unit::mark(ONE_LEVEL));
    let (value, other) = (draws.pick(&VALUES), draws.pick(&VALUES));
    match draws.below(4) {
        0 => {
            words(out, &["let", value, "=", draws.pick(&VERBS)]);
            out.push_back(Unit::mark("("));
            words(out, &[known, ")"]);
            out.push_back(Unit::mark(";\n"));
        }
        1 => {
            let order = draws.pick(&ORDERS);
            let keyword = draws.pick(&["if", "while"]);
            words(out, &[keyword, "(", known, order, value, ")", "{\n"]);
            out.push_back(Unit::mark(TWO_LEVELS));
            words(out, &[known, "=", other]);
            out.extend([Unit::mark(";\n"), Unit::mark(ONE_LEVEL)]);
            words(out, &["}\n"]);
        }
        2 => {
            words(out, &["let", value, "=", other, draws.pick(&SUMS), known]);
            out.push_back(Unit::mark(";\n"));
        }
        _ => {
            words(out, &[known, "=", value, draws.pick(&SUMS), other]);
            out.push_back(Unit::mark(";\n"));
        }
    }
}

fn words(out: &mut VecDeque<Unit>, texts: &[&'static str]) {
    out.extend(texts.iter().map(|text| Unit::word(text)));
}
