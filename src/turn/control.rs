//! How a running turn is told to stop or to begin anew.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

use clew_context::model::Message;

/// What a turn is told.
#[derive(Debug, Clone, Default)]
pub enum Order {
    /// Go on.
    #[default]
    Go,
    /// The trigger was edited: begin anew with this.
    Restart(Arc<Message>),
    /// The trigger was deleted: take back what is posted.
    Cancel,
    /// The process ends: take back what is posted, the next process answers.
    Abandon,
}

/// The end that gives orders.
pub type Orders = watch::Sender<Order>;

/// The end that a turn listens on.
#[derive(Debug, Clone)]
pub struct Control(watch::Receiver<Order>);

impl Control {
    /// Both ends.
    pub fn new() -> (Orders, Self) {
        let (orders, receiver) = watch::channel(Order::Go);
        (orders, Self(receiver))
    }

    /// Waits for an order to stop or to begin anew.
    pub(super) async fn ordered(&mut self) -> Order {
        match self.0.changed().await {
            Ok(()) => self.0.borrow_and_update().clone(),
            Err(_) => std::future::pending().await,
        }
    }

    /// An edit or a deletion that came while nobody listened. The end of the
    /// process is none: what is done by then stays.
    pub(super) fn revoked(&mut self) -> Option<Order> {
        if !self.0.has_changed().unwrap_or(false) {
            return None;
        }
        let order = self.0.borrow_and_update().clone();
        matches!(order, Order::Restart(_) | Order::Cancel).then_some(order)
    }

    /// Runs `work`, which may be dropped at any point, until an order comes.
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
