//! What we are to a server: a client that offers it nothing. It may not ask the model, see
//! files or question people.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ErrorData, Implementation, ListRootsRequestMethod, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{Notify, watch};

use crate::words;

/// The client of one connection.
#[derive(Clone, Default)]
pub(crate) struct Client {
    /// Set when the server says that its tools changed.
    pub(crate) changed: Arc<Notify>,
    /// Questions to people that were declined.
    pub(crate) declined: Arc<AtomicUsize>,
    /// What the server last said of how far a call is.
    pub(crate) progress: watch::Sender<String>,
    /// What is hidden in a server's words.
    pub(crate) secrets: Arc<[String]>,
}

#[expect(
    deprecated,
    reason = "servers of older versions of the protocol ask for roots"
)]
impl ClientHandler for Client {
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.declined.fetch_add(1, Ordering::Relaxed);
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let far = match told.total {
            Some(total) => format!("{} of {total}", told.progress),
            None => told.progress.to_string(),
        };
        let said = words::line(&told.message.unwrap_or(far), &self.secrets);
        self.progress.send_replace(said);
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("clew", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }
}
