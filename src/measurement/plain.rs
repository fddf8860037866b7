//! Texts of others, made harmless for a terminal and for a log.
//!
//! What a server, a file or a proxy says is shown on screens and written into logs. Control
//! characters could move a cursor, change colours or fake a line, and marks of writing direction
//! could turn a line around. This is the one place that takes them out: [`plain`] where a text of
//! others is kept, [`plain_lines`] and [`screen`] where whole messages leave for a terminal.

/// `text` on one line: control characters and marks of writing direction become spaces.
#[must_use]
pub fn plain(text: &str) -> String {
    text.replace(is_harmful, " ")
}

/// `text` with its lines and tabs, and otherwise as [`plain`].
#[must_use]
pub fn plain_lines(text: &str) -> String {
    text.replace(|c| is_harmful(c) && !is_layout(c), " ")
}

/// `text` with its lines, tabs and colours, and otherwise as [`plain`].
#[must_use]
pub fn screen(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let mut out = plain_lines(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.push(if is_colour(piece) { '\u{1b}' } else { ' ' });
        out.push_str(&plain_lines(piece));
    }
    out
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

const fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Whether what follows an escape character is a colour: `[`, digits and semicolons, `m`.
fn is_colour(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else {
        return false;
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.is_some_and(|end| rest[end..].starts_with('m'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_cannot_steer_a_terminal() {
        for (text, one_line, lines) in [
            (
                "no\u{1b}[31m\nmodel\u{9b}2Jé",
                "no [31m model 2Jé",
                "no [31m\nmodel 2Jé",
            ),
            ("a\r\u{7}\tb\u{7f}", "a   b ", "a  \tb "),
            ("\u{202e}txt\u{2066}.\u{200f}", " txt . ", " txt . "),
            ("plain · ✓ ü", "plain · ✓ ü", "plain · ✓ ü"),
        ] {
            assert_eq!(plain(text), one_line);
            assert_eq!(plain_lines(text), lines);
        }
    }

    #[test]
    fn of_all_sequences_a_screen_takes_colours_only() {
        for (text, expected) in [
            ("\u{1b}[32m✓ ok\u{1b}[0m\n", "\u{1b}[32m✓ ok\u{1b}[0m\n"),
            ("\u{1b}[1;31mx\u{1b}[m", "\u{1b}[1;31mx\u{1b}[m"),
            ("\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}", " [2J ]0;t  "),
            ("a\u{1b}[3", "a [3"),
        ] {
            assert_eq!(screen(text), expected);
        }
    }
}
