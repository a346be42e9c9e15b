//! What was learnt about a server: which parameters it accepts, how long a prompt to each
//! model may be, and whether that takes images. Shared by the clients of all its models.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::dialect::Dialect;

/// How long it applies what a model takes, since the model behind a name may change.
const LEARNT_LASTS: Duration = Duration::from_hours(1);

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
    /// Whether it takes images, and until when that applies; none before it was tried.
    images: Option<(bool, Instant)>,
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
            own.room = Some((tokens, now + LEARNT_LASTS));
        });
    }

    /// Whether images may be sent to a model: unless it refused some.
    pub(super) fn takes_images(&self, model: &str, now: Instant) -> bool {
        self.images(model, now) != Some(false)
    }

    /// A model refused images. That counts only if it has not taken any lately: then these
    /// ones are to blame, and whoever posted them takes them from nobody else.
    pub(super) fn refused_images(&self, model: &str, now: Instant) {
        if self.images(model, now).is_none() {
            self.learn_images(model, false, now);
        }
    }

    pub(super) fn took_images(&self, model: &str, now: Instant) {
        self.learn_images(model, true, now);
    }

    fn images(&self, model: &str, now: Instant) -> Option<bool> {
        self.with(|known| {
            let (takes, until) = known.models.get(model)?.images?;
            (now < until).then_some(takes)
        })
    }

    fn learn_images(&self, model: &str, takes: bool, now: Instant) {
        self.with(|known| {
            let own = known.models.entry(model.to_owned()).or_default();
            own.images = Some((takes, now + LEARNT_LASTS));
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut KnownCapabilities) -> T) -> T {
        look(&mut self.0.lock())
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
        let later = now + LEARNT_LASTS - Duration::from_millis(1);
        assert_eq!(learnt.prompt_room("small", later), Some(1_000));
        assert_eq!(learnt.prompt_room("large", later), None);
        assert_eq!(learnt.prompt_room("small", now + LEARNT_LASTS), None);
        learnt.learn_room("small", 500, later);
        assert_eq!(learnt.prompt_room("small", now + LEARNT_LASTS), Some(500));
    }

    #[test]
    fn images_are_learnt_by_model_and_for_an_hour() {
        let learnt = Capabilities::default();
        let now = Instant::now();
        assert!(learnt.takes_images("blind", now), "tried first");
        learnt.refused_images("blind", now);
        let later = now + LEARNT_LASTS - Duration::from_millis(1);
        assert!(!learnt.takes_images("blind", later));
        assert!(learnt.takes_images("other", later));
        assert!(learnt.takes_images("blind", now + LEARNT_LASTS));
    }

    /// Somebody posts what no model can read.
    #[test]
    fn a_model_that_took_images_is_not_blamed_for_one_that_it_refuses() {
        let learnt = Capabilities::default();
        let now = Instant::now();
        learnt.took_images("seeing", now);
        learnt.refused_images("seeing", now);
        assert!(learnt.takes_images("seeing", now));
        let later = now + LEARNT_LASTS;
        learnt.refused_images("seeing", later);
        assert!(!learnt.takes_images("seeing", later), "it may have changed");
    }
}
