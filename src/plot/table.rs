//! Tables: names first, then figures.

use std::fmt::Write;

use super::markup::escape;

/// A table. Its leading columns are names, the others figures, which stand to the
/// right of their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// How many of its columns are names; the first always is.
    pub names: usize,
    /// The heads of its columns.
    pub head: Vec<String>,
    /// Its rows, each with as many cells as there are heads.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads.
    pub fn new<R: Into<Vec<String>>>(
        caption: impl Into<String>,
        names: usize,
        head: &[&str],
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        Self {
            caption: caption.into(),
            names,
            head: head.iter().map(|head| (*head).to_owned()).collect(),
            rows: rows.into_iter().map(Into::into).collect(),
        }
    }

    /// In a region of its own that scrolls sideways where it is too wide.
    pub(super) fn html(&self) -> String {
        let caption = escape(&self.caption);
        let mut html = format!(
            "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\
             <table><caption>{caption}</caption>\n<thead><tr>"
        );
        for (column, head) in self.head.iter().enumerate() {
            let _ = write!(
                html,
                "<th scope=\"col\"{}>{}</th>",
                self.class(column),
                escape(head)
            );
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let cell = escape(cell);
                let _ = match column {
                    0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(html, "<td{}>{cell}</td>", self.class(column)),
                };
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }

    fn class(&self, column: usize) -> &'static str {
        if column < self.names.max(1) {
            ""
        } else {
            " class=\"figure\""
        }
    }
}
