//! What all parts of a page are written with.

use clew_context::engine::sanitise;

/// A text as HTML and SVG show it, in elements and in quoted attributes; what is invisible
/// as [`visible`] has it.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for next in text.chars() {
        match next {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            next => escaped.push(visible(next)),
        }
    }
    escaped
}

/// The character as it is shown, which obeys nothing that a file says: control and other
/// invisible characters, which may turn a line around, become U+FFFD.
pub fn visible(next: char) -> char {
    match next {
        '\n' | '\t' => '\u{FFFD}',
        hidden if sanitise::is_invisible(hidden) => '\u{FFFD}',
        next => next,
    }
}

/// The start of a figure's SVG: its size, and its title and description for those
/// who cannot see it. `number` makes the ids unique on a page.
pub(super) fn svg_head(number: usize, size: (f64, f64), title: &str, description: &str) -> String {
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
