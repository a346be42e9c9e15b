//! Mistakes in a test's own script.

/// An action on an id that does not exist, or a call that no client would send.
/// The action changed nothing; [`Simulator::start`](crate::Simulator::start) and
/// every wait then fail with this error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script is wrong: {0}")]
pub struct ScriptError(pub(crate) String);

impl ScriptError {
    /// What is wrong.
    pub fn what(&self) -> &str {
        &self.0
    }
}
