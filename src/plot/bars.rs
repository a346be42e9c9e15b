//! Horizontal bars: one value for each name, the value written at the bar's end.

use std::fmt::Write;

use super::axis::{Scale, Span};
use super::markup::{escape, svg_head};
use crate::model::shortened;

const WIDTH: f64 = 720.0;
/// Where bars begin: names stand before it.
const LEFT: f64 = 210.0;
/// The longest bar; the value stands after it.
const LONGEST: f64 = 420.0;
/// From one bar to the next.
const ROW: f64 = 24.0;
const HEIGHT: f64 = 14.0;
/// The most characters of a name that fit before the bars.
const NAME: usize = 28;

#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub title: String,
    /// What it shows, for those who cannot see it.
    pub description: String,
    /// Name, value, and the value as it is written.
    pub rows: Vec<(String, f64, String)>,
}

impl Bars {
    pub(super) fn svg(&self, number: usize) -> String {
        let span = Span::of(Scale::Linear, self.rows.iter().map(|(_, value, _)| *value));
        let rows = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let size = (WIDTH, ROW * f64::from(rows) + 8.0);
        let mut svg = svg_head(number, size, &self.title, &self.description);
        let mut top = 4.0;
        for (name, value, written) in &self.rows {
            let length = span.place(*value) * LONGEST;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"bar\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{HEIGHT}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                top + 12.0,
                escape(&shortened(name, NAME)),
                LEFT + length + 8.0,
                top + 12.0,
                escape(written)
            );
            top += ROW;
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} 0V{:.1}\"/></svg>",
            size.1
        );
        svg
    }
}
