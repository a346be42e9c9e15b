//! Puts the commit into `clew --version`, in optimised builds: in others each commit
//! would build the bot anew.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script by its environment"
)]

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=CLEW_COMMIT");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let profile = env::var("PROFILE").unwrap_or_default();
    let commit = match env::var("CLEW_COMMIT") {
        Ok(commit) if !commit.is_empty() => Some(commit),
        _ if profile == "release" => of_git(),
        _ => None,
    };
    let known = commit.as_deref().unwrap_or_default();
    println!("cargo:rustc-env=CLEW_COMMIT={known}");
    let version = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => format!("{version} ({profile} build)"),
    };
    println!("cargo:rustc-env=CLEW_VERSION={version}");
}

/// The commit of the tree; none outside of git.
fn of_git() -> Option<String> {
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo:rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
