//! What a test's own script gets wrong.

/// An action on an id that does not exist, or a call that no client would
/// send. The action changed nothing; a wrong script is an error of
/// [`Simulator::start`](crate::Simulator::start) and of every wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script is wrong: {0}")]
pub struct ScriptError(pub(crate) String);
