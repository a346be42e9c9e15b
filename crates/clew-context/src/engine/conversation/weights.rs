//! The weights of the features, written by `CLEW_CHATS=folder cargo bench -- learn`.
//!
//! Learnt from annotated logs of #ubuntu: Kummerfeld et al., "A Large-Scale Corpus for
//! Conversation Disentanglement", ACL 2019, licensed CC BY 4.0; `docs/conversation.md` says more.

use super::features::{BEGIN, BELONG, PAIR};

/// A weight for each feature, in the order of [`features`](super::features).
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Of a message and one that it may answer.
    pub pair: [f32; PAIR],
    /// Of a message that may begin something new.
    pub begin: [f32; BEGIN],
    /// Of the newest message and one that may belong to its conversation.
    pub belong: [f32; BELONG],
}

/// What was learnt.
pub const LEARNT: Weights = Weights {
    pair: [
        -0.645, -0.673, -1.293, 0.986, 0.849, 4.63, 0.639, -1.251, 0.428, 0.387, -0.154, 0.345,
        0.359, 2.03, 1.179, 3.049, -1.39, 1.61, 0.086, 0.542, -0.349, 0.714,
    ],
    begin: [-0.549, 0.404, -0.968, 1.116, 1.016, 0.442],
    belong: [
        0.403, 0.051, 0.021, 0.011, -1.495, 0.806, 0.448, 0.798, -0.522, 10.783, 0.001, -0.011,
        -0.174, 0.164, 0.139, -0.024, 0.17, -3.189, 0.477, -6.36, 0.998, 0.464,
    ],
};
