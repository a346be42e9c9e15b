//! What makes a message a trigger, and what its answer replies to.

use std::time::Duration;

use super::check::Checker;
use super::variable as var;
use clew_context::model::{Proxies, ProxyId, ReplyTarget, TriggerRules};

/// The words of `THREAD_REPLY_TARGET`.
pub(super) const REPLY_TARGETS: [(&str, ReplyTarget); 2] = [
    ("newest", ReplyTarget::Newest),
    ("trigger", ReplyTarget::Trigger),
];

/// The apps that `PROXY_APPS` knows by name, by the application id of their public bot,
/// as their own sources for adding it give it: `docs/content/.vuepress/config.js` in
/// <https://github.com/PluralKit/PluralKit>, and `BOT_INVITE` of `.env.example` in
/// <https://github.com/Tupperbox/TupperboxLegacy>.
const PROXIES: [(&str, ProxyId); 2] = [
    ("pluralkit", ProxyId::new(466_378_653_216_014_359)),
    ("tupperbox", ProxyId::new(431_544_605_209_788_416)),
];
/// How long a question waits for the copy that an app may post: most come within a second.
const PROXY_HOLD: Duration = Duration::from_millis(1_500);
/// Turns in a row for other bots.
const MAX_BOT_TURNS: usize = 3;

pub(super) fn read(check: &mut Checker) -> TriggerRules {
    let triggers = TriggerRules {
        mention_only: check.switch(&var::MENTION_ONLY),
        auto_reply_channels: check.ids(&var::AUTO_REPLY_CHANNELS),
        reply_to_bots: check.switch(&var::REPLY_TO_BOTS),
        max_bot_turns: MAX_BOT_TURNS,
        proxies: proxies(check),
        proxy_hold: PROXY_HOLD,
    };
    if triggers.mention_only && !triggers.auto_reply_channels.is_empty() {
        check.warn_of_no_effect(&var::AUTO_REPLY_CHANNELS, "with MENTION_ONLY=true");
    }
    triggers
}

fn proxies(check: &mut Checker) -> Proxies {
    let names: Vec<&str> = PROXIES.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let accepted = format!("{names}, or ids of applications or webhooks, each 1 to 20 digits");
    let read = |item: &str| {
        let known = PROXIES.iter();
        let mut known = known.filter(|(name, _)| item.eq_ignore_ascii_case(name));
        known
            .next()
            .map(|(_, id)| *id)
            .or_else(|| item.parse().ok())
    };
    let listed = check.optional(&var::PROXY_APPS, &accepted, |text| {
        let items = text.split([',', ' ']).filter(|item| !item.is_empty());
        items.map(read).collect()
    });
    listed.unwrap_or_default()
}
