//! Lines of a commented file: keys with their comments in one column, and comments that are
//! wrapped.

/// Where comments begin.
const COLUMN: usize = 44;
/// Comments above keys end here.
const WIDTH: usize = 98;

/// A file in the making.
#[derive(Debug, Default)]
pub(super) struct Page {
    out: String,
}

impl Page {
    /// `text`, of one line, as comments of as many lines as it takes; `mark` stands before the
    /// first.
    pub(super) fn say(&mut self, mark: &str, text: &str) {
        let mut line = format!("# {mark}");
        let indent = line.chars().count();
        let mut is_begun = false;
        for word in text.split_whitespace() {
            let length = line.chars().count() + word.chars().count() + 1;
            if is_begun && length > WIDTH {
                self.line(&line);
                line = format!("#{:1$}", "", indent - 1);
                is_begun = false;
            }
            if is_begun {
                line.push(' ');
            }
            line.push_str(word);
            is_begun = true;
        }
        self.line(&line);
    }

    /// `text` as one line of comment, `indent` columns in.
    pub(super) fn say_at(&mut self, indent: usize, text: &str) {
        self.line(&format!("{:indent$}# {text}", ""));
    }

    /// A line between two comments.
    pub(super) fn rule(&mut self) {
        self.line("#");
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.line("");
    }

    /// A key with its value, and what it is for.
    pub(super) fn key(&mut self, text: &str, why: &str) {
        // A value that is long has its comment right behind.
        self.line(&format!("{text:<COLUMN$}   # {why}"));
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// The file.
    pub(super) fn finish(self) -> String {
        self.out
    }
}
