//! The text of `.env.example`, generated from the table.

use std::fmt::Write;

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
            push(
                &mut text,
                format_args!("\n# {}\n\n", variable.group.title()),
            );
        }
        entry(&mut text, variable);
    }
    text
}

fn entry(text: &mut String, variable: &Variable) {
    let Variable {
        name,
        default,
        unit,
        about,
        ..
    } = variable;
    push(
        text,
        format_args!("# {about} ({unit})\n#{name}={default}\n"),
    );
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(line);
}
