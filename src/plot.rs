//! Pages and plots for people: one self-contained HTML page with tables and static
//! SVG. No script, nothing fetched, every text escaped; light and dark by the
//! reader's preference.
//!
//! Invariant: `plot` imports no other module of the bot and does no IO: values in,
//! text out.

mod axis;
mod bars;
mod chart;
mod page;
mod table;

pub use axis::{Axis, Scale};
use clew_context::engine::sanitise;

pub use bars::Bars;
pub use chart::{Chart, Series};
pub use page::{Page, Part, Section};
pub use table::Table;

/// A text as HTML and SVG show it, in elements and in quoted attributes. Control
/// and other invisible characters, which may turn a line around, become U+FFFD.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for next in text.chars() {
        match next {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push('\u{FFFD}'),
            next if sanitise::is_invisible(next) => escaped.push('\u{FFFD}'),
            next => escaped.push(next),
        }
    }
    escaped
}

/// The start of a figure's SVG: its size, and its title and description for those
/// who cannot see it. `number` makes the ids unique on a page.
fn svg_head(number: usize, size: (f64, f64), title: &str, description: &str) -> String {
    let (width, height) = size;
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"t{number} d{number}\">\
         <title id=\"t{number}\">{}</title><desc id=\"d{number}\">{}</desc>\n",
        escape(title),
        escape(description)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let text = "a<b>&\"c\"'d'\u{1b}[1m\u{0}";
        let escaped = "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;\u{FFFD}[1m\u{FFFD}";
        assert_eq!(escape(text), escaped);
        assert_eq!(escape("Ä 漢 🙂"), "Ä 漢 🙂");
    }
}
