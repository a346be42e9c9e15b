//! How a running turn is told to stop or to start over.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::patience::Tries;
use crate::turn::patience;
use clew_context::model::Message;

/// What a turn is told to do.
#[derive(Debug, Clone, Default)]
pub enum Order {
    /// Carry on.
    #[default]
    Go,
    /// The trigger was edited: start over, unless another order comes first.
    Restart {
        /// The trigger as it reads now.
        trigger: Arc<Message>,
        /// When to ask again.
        at: Instant,
    },
    /// The trigger was edited, beyond its asker's rate: end without an answer.
    Refuse,
    /// The trigger was deleted: take back what was posted.
    Cancel,
    /// The server's moderators blocked the asker: take back what was posted, and say nothing.
    Block,
    /// Somebody stopped the answer, or the agent run.
    Stop,
    /// The time of an agent run is over.
    TimeOver,
    /// The process is ending: take back what was posted, and let the next process answer.
    Abandon {
        /// Whether the trigger was edited, which nobody may have heard.
        edited: bool,
    },
}

impl Order {
    /// How often it is tried to take back what was posted.
    pub(super) const fn tries(&self) -> Tries {
        match self {
            Self::Abandon { .. } => Tries::One,
            _ => Tries::All,
        }
    }

    /// Why what was posted is taken back, for the log.
    pub(super) const fn why(&self) -> &'static str {
        match self {
            Self::Go => "",
            Self::Restart { .. } | Self::Refuse => "the question was edited",
            Self::Cancel => "the question was deleted, or where the run stood",
            Self::Block => "its asker was blocked",
            Self::Stop => "it was stopped",
            Self::TimeOver => "the run's time is over",
            Self::Abandon { .. } => "the process ends",
        }
    }

    /// Whether a turn ends with it, whatever comes after.
    pub const fn ends(&self) -> bool {
        !matches!(self, Self::Go | Self::Restart { .. })
    }

    /// Whether what an agent run has said by then is shown.
    pub(super) const fn shows_part_of_run(&self) -> bool {
        match self {
            Self::Stop | Self::TimeOver | Self::Abandon { .. } => true,
            Self::Go | Self::Restart { .. } | Self::Refuse | Self::Cancel | Self::Block => false,
        }
    }
}

/// The end that gives orders.
pub type Orders = watch::Sender<Order>;

/// The process is ending. A turn that ends already keeps its order: it may not have heard it, and it says
/// more.
pub fn abandon(orders: &Orders) {
    orders.send_if_modified(|order| {
        let goes_on = !order.ends();
        if goes_on {
            let edited = matches!(order, Order::Restart { .. });
            *order = Order::Abandon { edited };
        }
        goes_on
    });
}

/// The end that a turn listens on.
#[derive(Debug)]
pub struct Control {
    orders: watch::Receiver<Order>,
    /// Whether the answer is complete: then an edit comes too late, but not a deletion.
    answered: bool,
    /// When the time is over, if it is bounded.
    until: Option<Instant>,
}

impl Control {
    /// Creates both ends.
    pub fn new() -> (Orders, Self) {
        let (orders, receiver) = watch::channel(Order::Go);
        let control = Self {
            orders: receiver,
            answered: false,
            until: None,
        };
        (orders, control)
    }

    /// The same, with [`Order::TimeOver`] at that time.
    #[must_use]
    pub fn until(self, until: Instant) -> Self {
        Self {
            until: Some(until),
            ..self
        }
    }

    /// Waits for an order to stop or to start over.
    pub(super) async fn ordered(&mut self) -> Order {
        tokio::select! {
            biased;
            Ok(()) = self.orders.changed() => self.orders.borrow_and_update().clone(),
            () = patience::at(self.until) => Order::TimeOver,
        }
    }

    /// An edit or a deletion that came while nobody listened. A shutdown does
    /// not count: the answer is complete by then and stays.
    pub(super) fn revoked(&mut self) -> Option<Order> {
        if !self.orders.has_changed().unwrap_or(false) {
            return None;
        }
        let order = self.orders.borrow_and_update().clone();
        match order {
            Order::Cancel => Some(order),
            Order::Restart { .. } | Order::Refuse | Order::Abandon { edited: true } => {
                (!self.answered).then_some(order)
            }
            Order::Go
            | Order::Block
            | Order::Stop
            | Order::TimeOver
            | Order::Abandon { edited: false } => None,
        }
    }

    /// Notes that the answer is shown and about to be stored.
    pub(super) fn answered(&mut self) {
        self.answered = true;
    }

    /// After an edit: waits until it is time to ask again, and returns the trigger
    /// as it reads by then.
    pub(super) async fn edited(
        &mut self,
        mut trigger: Arc<Message>,
        mut at: Instant,
    ) -> Result<Arc<Message>, Order> {
        loop {
            match self.unless_ordered(sleep_until(at)).await {
                Ok(()) => return Ok(trigger),
                Err(Order::Restart {
                    trigger: newer,
                    at: later,
                }) => (trigger, at) = (newer, later),
                Err(order) => return Err(order),
            }
        }
    }

    /// Runs `work`, which must be safe to drop at any point, until an order comes.
    pub(super) async fn unless_ordered<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Order> {
        tokio::select! {
            biased;
            order = self.ordered() => Err(order),
            done = work => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use clew_context::discord::convert;
    use serde_json::json;

    use super::*;

    /// The answer is to what it said before.
    #[test]
    fn an_edit_that_nobody_heard_takes_back_an_answer_at_the_end_of_the_process() {
        let trigger = json!({
            "id": "7", "channel_id": "5", "content": "so", "type": 0,
            "author": {"id": "1", "username": "ada"},
        });
        let trigger = Arc::new(convert::message(&trigger.to_string()).unwrap());
        let at = Instant::now();
        let (orders, mut control) = Control::new();
        orders.send_replace(Order::Restart { trigger, at });
        abandon(&orders);
        let revoked = control.revoked();
        assert!(matches!(revoked, Some(Order::Abandon { edited: true })));
    }

    #[test]
    fn a_deletion_that_nobody_heard_outlasts_the_end_of_the_process() {
        for (order, is_told) in [(Order::Cancel, true), (Order::Go, false)] {
            let (orders, mut control) = Control::new();
            orders.send_replace(order);
            abandon(&orders);
            let revoked = control.revoked();
            assert_eq!(matches!(revoked, Some(Order::Cancel)), is_told);
            assert!(orders.borrow().ends());
        }
    }
}
