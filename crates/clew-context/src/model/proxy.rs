//! People who write through apps: a proxy or a bridge posts their words through a
//! webhook, under a name of their choice.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Author, ProxyId, UserId};

/// `PROXY_APPS`: the apps whose webhook messages are people's words. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies(Arc<BTreeSet<ProxyId>>);

/// Who speaks, as far as a message tells, among the messages of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speaker<'a> {
    /// A user or a bot.
    User(UserId),
    /// Whoever bears this name in an app through which people write.
    Proxied(ProxyId, &'a str),
    /// Another webhook, which can post under many names.
    Webhook(UserId, &'a str),
}

impl Speaker<'_> {
    /// The same under any name: what ids alone tell.
    pub const fn under_any_name(self) -> Speaker<'static> {
        match self {
            Self::User(id) => Speaker::User(id),
            Self::Proxied(app, _) => Speaker::Proxied(app, ""),
            Self::Webhook(id, _) => Speaker::Webhook(id, ""),
        }
    }
}

impl Proxies {
    /// Whether none are listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Them, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = ProxyId> {
        self.0.iter().copied()
    }

    /// The listed app that posted a message with this author, if one did: the
    /// application that owns the webhook, else the webhook itself. Discord's ids decide
    /// alone, since anybody can choose any name.
    pub fn posted(&self, author: &Author) -> Option<ProxyId> {
        if !author.webhook {
            return None;
        }
        let application = author.application.map(|id| ProxyId::new(id.get()));
        let ids = [application, Some(ProxyId::new(author.id.get()))];
        ids.into_iter().flatten().find(|id| self.0.contains(id))
    }
}

impl FromIterator<ProxyId> for Proxies {
    fn from_iter<I: IntoIterator<Item = ProxyId>>(ids: I) -> Self {
        Self(Arc::new(ids.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ApplicationId;

    #[track_caller]
    fn check(webhook: bool, id: u64, application: Option<u64>, expected: Option<u64>) {
        let proxies: Proxies = [50, 60].map(ProxyId::new).into_iter().collect();
        let author = Author {
            id: UserId::new(id),
            name: "PluralKit".into(),
            bot: true,
            webhook,
            application: application.map(ApplicationId::new),
        };
        assert_eq!(proxies.posted(&author), expected.map(ProxyId::new));
        assert_eq!(Proxies::default().posted(&author), None);
    }

    #[test]
    fn an_app_is_known_by_its_id_and_a_bridge_by_its_webhooks() {
        check(true, 7, Some(50), Some(50));
        check(true, 60, None, Some(60));
        check(true, 60, Some(50), Some(50));
        check(true, 60, Some(51), Some(60));
        check(true, 7, Some(51), None);
        check(true, 7, None, None);
        // The account of the app itself, and what it answers to commands.
        check(false, 50, None, None);
        check(false, 7, Some(50), None);
    }
}
