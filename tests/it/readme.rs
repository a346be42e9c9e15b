//! The README keeps up with the settings.

use clew::config::VARIABLES;

#[test]
fn the_readme_lists_every_setting_with_its_default() {
    let readme = include_str!("../../README.md");
    for variable in VARIABLES {
        let row = format!("| `{}` | ", variable.name);
        let line = readme.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("README.md lacks a row for {}", variable.name));
        let default = match variable.default {
            "" => format!("{row} | "),
            default => format!("{row}`{default}` | "),
        };
        assert!(
            line.starts_with(&default),
            "README.md has another default: {line}"
        );
    }
}
