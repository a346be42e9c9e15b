//! Whether models are sent images.

/// `LLM_VISION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vision {
    /// Until the model refuses one.
    Auto,
    /// Always: a refusal is an error.
    On,
    Off,
}
