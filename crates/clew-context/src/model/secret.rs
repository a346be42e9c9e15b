//! A value that must not be printed.

use std::fmt;

/// A key or token. `Debug` and `Display` hide it; only [`Secret::expose`] reveals
/// it, so that every use can be found by that name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Printed in place of every secret.
const REDACTED: &str = "[secret]";

impl Secret {
    /// Wraps a value as it is, without trimming.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn is_never_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "[secret] [secret]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
