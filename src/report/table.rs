//! The one look of our tables: a line below the head, numbers to the right, nothing else.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// An empty table with `head`; the first `texts` columns hold text, all others numbers.
pub(super) fn table<const N: usize>(head: [&str; N], texts: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(head);
    for column in table.column_iter_mut().skip(texts) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_padding((1, 0));
    }
    table
}

/// The table as lines without blanks at their ends, the last with a line break.
pub(super) fn text(table: &Table) -> String {
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
