//! What was learnt about a server: which parameters it accepts, and how long a prompt
//! to each model may be. Shared by the clients of all its models.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::dialect::Dialect;

/// How long a learnt limit applies, since the model behind a name may change.
const ROOM_LASTS: Duration = Duration::from_hours(1);

/// Everything learnt since the process started.
#[derive(Debug, Default)]
pub(super) struct Capabilities(Mutex<KnownCapabilities>);

#[derive(Debug, Default)]
struct KnownCapabilities {
    server: Dialect,
    /// By name: the operator's model, and those of agents.
    models: BTreeMap<String, ModelCapabilities>,
}

#[derive(Debug, Default)]
struct ModelCapabilities {
    dialect: Dialect,
    /// The most tokens of a prompt, and until when that applies.
    room: Option<(usize, Instant)>,
}

impl Capabilities {
    /// The parameters for a model.
    pub(super) fn dialect(&self, model: &str) -> Dialect {
        self.with(|known| {
            let own = known.models.get(model).map(|model| model.dialect);
            known.server.and(own.unwrap_or_default())
        })
    }

    pub(super) fn learn_dialect(&self, model: &str, dialect: Dialect) {
        self.with(|known| {
            known.server = known.server.and(dialect.of_server());
            let own = known.models.entry(model.to_owned()).or_default();
            own.dialect = own.dialect.and(dialect);
        });
    }

    /// The most tokens that a prompt to a model may have.
    pub(super) fn prompt_room(&self, model: &str, now: Instant) -> Option<usize> {
        self.with(|known| {
            let (tokens, until) = known.models.get(model)?.room?;
            (now < until).then_some(tokens)
        })
    }

    pub(super) fn learn_room(&self, model: &str, tokens: usize, now: Instant) {
        self.with(|known| {
            let own = known.models.entry(model.to_owned()).or_default();
            own.room = Some((tokens, now + ROOM_LASTS));
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut KnownCapabilities) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_learnt_by_model_and_for_an_hour() {
        let learnt = Capabilities::default();
        let now = Instant::now();
        learnt.learn_room("small", 1_000, now);
        let later = now + ROOM_LASTS - Duration::from_millis(1);
        assert_eq!(learnt.prompt_room("small", later), Some(1_000));
        assert_eq!(learnt.prompt_room("large", later), None);
        assert_eq!(learnt.prompt_room("small", now + ROOM_LASTS), None);
        learnt.learn_room("small", 500, later);
        assert_eq!(learnt.prompt_room("small", now + ROOM_LASTS), Some(500));
    }
}
