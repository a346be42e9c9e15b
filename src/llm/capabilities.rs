//! What was learnt about a server: which parameters it accepts, how long a prompt to each
//! model may be, and whether that takes images and tools. Shared by the clients of all its models.

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
    /// Whether it takes each extra, and until when that applies; none before it was tried.
    extras: [Option<(bool, Instant)>; 2],
}

/// What a request may have and a model refuse.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extra {
    Images,
    Tools,
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

    /// Whether an extra may be sent to a model: unless it refused it.
    pub(super) fn takes(&self, extra: Extra, model: &str, now: Instant) -> bool {
        self.taken(extra, model, now) != Some(false)
    }

    /// A model refused an extra. That counts only if it has not taken any lately: then this one
    /// is to blame, and whoever posted or caused it takes them from nobody else.
    pub(super) fn refused(&self, extra: Extra, model: &str, now: Instant) {
        if self.taken(extra, model, now).is_none() {
            self.learn(extra, model, false, now);
        }
    }

    pub(super) fn took(&self, extra: Extra, model: &str, now: Instant) {
        self.learn(extra, model, true, now);
    }

    fn taken(&self, extra: Extra, model: &str, now: Instant) -> Option<bool> {
        self.with(|known| {
            let (takes, until) = known.models.get(model)?.extras[extra as usize]?;
            (now < until).then_some(takes)
        })
    }

    fn learn(&self, extra: Extra, model: &str, takes: bool, now: Instant) {
        self.with(|known| {
            let own = known.models.entry(model.to_owned()).or_default();
            own.extras[extra as usize] = Some((takes, now + LEARNT_LASTS));
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
    fn extras_are_learnt_by_model_and_for_an_hour() {
        for (extra, other) in [(Extra::Images, Extra::Tools), (Extra::Tools, Extra::Images)] {
            let learnt = Capabilities::default();
            let now = Instant::now();
            assert!(learnt.takes(extra, "small", now), "tried first");
            learnt.refused(extra, "small", now);
            let later = now + LEARNT_LASTS - Duration::from_millis(1);
            assert!(!learnt.takes(extra, "small", later));
            assert!(learnt.takes(other, "small", later));
            assert!(learnt.takes(extra, "large", later));
            assert!(learnt.takes(extra, "small", now + LEARNT_LASTS));
        }
    }

    /// Somebody posts what no model can read, or makes tools give it.
    #[test]
    fn a_model_that_took_an_extra_is_not_blamed_for_one_that_it_refuses() {
        for extra in [Extra::Images, Extra::Tools] {
            let learnt = Capabilities::default();
            let now = Instant::now();
            learnt.took(extra, "able", now);
            learnt.refused(extra, "able", now);
            assert!(learnt.takes(extra, "able", now));
            let later = now + LEARNT_LASTS;
            learnt.refused(extra, "able", later);
            assert!(!learnt.takes(extra, "able", later), "it may have changed");
        }
    }
}
