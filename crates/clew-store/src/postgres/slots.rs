//! Slots for connections, as many as the pool may have. If the server has no
//! more to give, calls share the connections we have.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connect::CONNECTIONS;
use super::session::{Failure, Outcome, is_full};

/// How often to ask a full server while we have no connection.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How long until a full server is asked for more connections.
const FULL_FOR: Duration = Duration::from_secs(30);

pub(super) struct Slots {
    free: Arc<Semaphore>,
    given_up: Mutex<GivenUpSlots>,
}

/// Slots that the server has no connection for.
#[derive(Default)]
struct GivenUpSlots {
    places: usize,
    last: Option<Instant>,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CONNECTIONS)),
            given_up: Mutex::default(),
        }
    }
}

impl Slots {
    /// A connection, and its slot.
    pub(super) async fn connection(&self, pool: &Pool) -> Outcome<(Object, OwnedSemaphorePermit)> {
        loop {
            self.open_again();
            let place = Arc::clone(&self.free).acquire_owned().await;
            let place = place.map_err(|_| Failure::Refused("the store is closed"))?;
            match pool.get().await {
                Ok(client) => return Ok((client, place)),
                Err(error) if is_full(&error) => self.wait(pool, place).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Handles a full server. If we have connections, their slots suffice.
    async fn wait(&self, pool: &Pool, place: OwnedSemaphorePermit) {
        if pool.status().size > 0 && self.give_up() {
            place.forget();
        } else {
            drop(place);
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Gives up a slot, unless it is the last. Returns whether it did.
    fn give_up(&self) -> bool {
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        given_up.last = Some(Instant::now());
        let is_last = given_up.places + 1 >= CONNECTIONS;
        given_up.places += usize::from(!is_last);
        !is_last
    }

    fn open_again(&self) {
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        if given_up.last.is_some_and(|last| last.elapsed() >= FULL_FOR) {
            self.free.add_permits(given_up.places);
            *given_up = GivenUpSlots::default();
        }
    }
}
