//! What the bot has around it.

use std::sync::Arc;

use super::Observer;
use clew_context::model::Clock;
use clew_context::outside::{Lease, Sending, Transport};
use clew_discord::gateway::Dial;
use clew_store::{Cluster, Store};

/// What the bot has around it: the system's, unless a simulation puts in its own.
pub struct Outside {
    /// The time of day.
    pub clock: Clock,
    /// Sends requests to Discord and to model servers.
    pub transport: Option<Arc<dyn Transport>>,
    /// Connects to Discord's gateway.
    pub dial: Option<Arc<dyn Dial>>,
    /// How the processes of this bot agree.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Goes between the bot and the store that it has opened.
    pub store: Option<Arc<dyn Fn(Store) -> Store + Send + Sync>>,
    /// Watches.
    pub observer: Option<Observer>,
}

impl Outside {
    /// What requests go through; with a lease only as long as that holds.
    pub(super) fn sending(&self, lease: Option<Lease>) -> Sending {
        Sending {
            transport: self.transport.clone(),
            lease,
        }
    }

    pub fn of_system(clock: Clock) -> Self {
        Self {
            clock,
            transport: None,
            dial: None,
            cluster: None,
            store: None,
            observer: None,
        }
    }
}
