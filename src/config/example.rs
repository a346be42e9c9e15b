//! The text of `.env.example`, generated from the table.

use super::{VARIABLES, Variable};

const HEAD: &str = "\
# Clew's settings. Copy this file to .env and uncomment what you change.
# Environment variables override this file; an empty value means the default.
# Put values with spaces in double quotes.
";

/// The text of `.env.example`: each variable with its description, unit and
/// default, commented out.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    let mut group = None;
    for variable in VARIABLES {
        if group != Some(variable.group) {
            group = Some(variable.group);
            text.push_str(&format!("\n# {}\n\n", variable.group.title()));
        }
        let Variable {
            name,
            default,
            unit,
            about,
            ..
        } = variable;
        text.push_str(&format!("# {about} ({unit})\n#{name}={default}\n"));
    }
    text
}
