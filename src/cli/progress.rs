//! Progress bars on standard error; invisible if that is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) fn bar() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
}

/// Moves a bar, drawn by a template such as `reading {bar:30} {pos}/{len}`. It begins anew
/// where there is another total, or less is done than before.
pub(super) fn show(bar: &ProgressBar, template: &str, done: u64, total: u64) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if bar.length() != Some(total) || done < bar.position() {
        bar.set_length(total);
        bar.reset();
    }
    bar.set_position(done);
}
