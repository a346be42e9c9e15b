//! Judges what was collected and remembered once more, right before each request: by then
//! messages may be deleted or edited, people may have opted out, and channels may be closed.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{TurnChannels, TurnMaterial, asker_access, prompt};
use crate::llm;
use crate::memory::Became;
use crate::turn::background::Background;
use crate::turn::{Services, Turn};
use clew_context::collect::OtherChannels;
use clew_context::engine::links::GatheredLink;
use clew_context::engine::recheck::MessageNow;
use clew_context::engine::turn::Collected;
use clew_context::model::{Access, ChannelId, ContentSource, OptedOut, Readers};

/// How often a prompt is made anew in a row: whoever edits on and on does not hold it up.
const MOST_ANEW: usize = 4;

/// By what a turn was judged.
#[derive(Debug, Clone, Default)]
pub(in crate::turn) struct Judged {
    /// Who had opted out.
    pub(in crate::turn) opted_out: OptedOut,
    /// The number of what was noted of deletions and edits.
    pub(in crate::turn) noted: u64,
    /// The number of what the gateway told of rights.
    pub(super) rights: u64,
}

impl Judged {
    pub(in crate::turn) fn now(services: &Services) -> Self {
        Self {
            opted_out: services.opt_outs.current(),
            noted: services.memory.noted().revision(),
            rights: services.guild_state.revision(),
        }
    }

    /// Whether what was read after these may still be shown, by what its text was made from.
    pub(in crate::turn) fn may_show<'a>(
        &self,
        turn: &'a Turn<'_>,
        now: &'a Self,
    ) -> impl Fn(&ContentSource) -> bool + 'a {
        let services = turn.services;
        let noted = (self.noted != now.noted).then(|| services.memory.noted().after(self.noted));
        let opted_out = (!self.opted_out.is_same(&now.opted_out)).then_some(&now.opted_out);
        let rights_changed = self.rights != now.rights;
        let readable = RefCell::new(HashMap::new());
        move |source| {
            let by = |author| opted_out.is_some_and(|all| all.contains(author));
            let may_read = |channel: ChannelId| {
                let mut readable = readable.borrow_mut();
                let readable = readable.entry(channel);
                *readable.or_insert_with(|| may_read(turn, channel))
            };
            !source.author.is_some_and(by)
                && !noted.as_ref().is_some_and(|noted| noted.changed(source))
                && (!rights_changed || may_read(source.channel))
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.opted_out.is_same(&other.opted_out)
            && (self.noted, self.rights) == (other.noted, other.rights)
    }
}

impl TurnMaterial {
    /// Judges once more, and makes the prompt anew if something may not be shown any more
    /// or reads differently, as often as something changes while it is made. Returns whether it was.
    pub(in crate::turn) async fn recheck(&mut self, turn: &Turn<'_>) -> bool {
        let mut is_anew = false;
        for _ in 0..MOST_ANEW {
            if !self.judge_again(turn).await {
                break;
            }
            is_anew = true;
        }
        is_anew
    }

    async fn judge_again(&mut self, turn: &Turn<'_>) -> bool {
        let now = Judged::now(turn.services);
        if now.is_same(&self.judged) {
            return false;
        }
        let since = std::mem::replace(&mut self.judged, now.clone());
        let background = self.background.as_mut();
        let is_changed = take_changes(turn, &mut self.collected, background, &since, &now);
        // Names in the prompt follow rights.
        if !is_changed && since.rights == now.rights {
            return false;
        }
        if let Some(background) = &mut self.background {
            background.complete(turn, &self.collected).await;
        }
        let client = self.model.as_ref().map(llm::ModelServers::first);
        self.prompt = prompt::first(turn, &self.collected, self.background.as_ref(), client);
        self.fallbacks = super::fallbacks(&self.collected);
        if is_changed {
            tracing::info!("what was collected changed before it was asked with");
        }
        true
    }

    /// Whether all of it may still be shown as it is.
    pub(in crate::turn) fn stands(&self, turn: &Turn<'_>) -> bool {
        let now = Judged::now(turn.services);
        if now.is_same(&self.judged) {
            return true;
        }
        let (mut collected, mut background) = (self.collected.clone(), self.background.clone());
        let background = background.as_mut();
        !take_changes(turn, &mut collected, background, &self.judged, &now)
    }
}

/// Whether everybody who reads the answer, its asker included, may read a channel.
fn may_read(turn: &Turn<'_>, channel: ChannelId) -> bool {
    if channel == turn.trigger().channel {
        !asker_access(turn).forbids(|rights| rights.read_history)
    } else {
        turn.readers(channel) == Readers::Everybody
    }
}

/// Returns whether anything changed.
fn take_changes(
    turn: &Turn<'_>,
    collected: &mut Collected,
    background: Option<&mut Background>,
    since: &Judged,
    now: &Judged,
) -> bool {
    let services = turn.services;
    let mut is_changed = false;
    if since.noted != now.noted {
        let noted = services.memory.noted().after(since.noted);
        let window = services.window();
        let guild = turn.ids.guild;
        is_changed |= collected.take_changes(|message| match noted.became(guild, message) {
            Became::Unchanged => MessageNow::Unchanged,
            Became::Gone => MessageNow::Gone,
            Became::Edited(at) => {
                let newer = window.message(message.channel, message.id);
                let newer = newer.filter(|newer| newer.edited >= Some(at));
                newer.map_or(MessageNow::Gone, MessageNow::Edited)
            }
        });
    }
    if !since.opted_out.is_same(&now.opted_out) {
        is_changed |= collected.withhold(&now.opted_out);
        let asker = turn.job.request.asker();
        let opts_out = now.opted_out.contains(asker) && !collected.asker_opted_out;
        collected.asker_opted_out |= opts_out;
        is_changed |= opts_out;
    }
    if since.rights != now.rights {
        is_changed |= close(turn, collected);
    }
    let left_out = background.is_some_and(|background| {
        if !collected.turn.asker_access.may_read() {
            background.leave_out_shared();
        }
        background.leave_out_changed(turn, since, now)
    });
    is_changed | left_out
}

/// Leaves out what the asker, or who else reads the answer, may not read any more. Returns
/// whether there was any.
fn close(turn: &Turn<'_>, collected: &mut Collected) -> bool {
    let services = turn.services;
    let others = TurnChannels {
        services,
        request: &turn.job.request,
    };
    let is_open = |link: &GatheredLink| {
        if link.id == turn.trigger().channel {
            return may_read(turn, link.id);
        }
        let known = services.guild_state.channel(link.id);
        let channel = known.as_ref().or(link.channel.as_ref());
        channel.is_none_or(|channel| others.readers(channel) == Readers::Everybody)
    };
    let mut is_changed = collected.close_links(is_open);
    if collected.turn.asker_access.may_read() && !may_read(turn, turn.trigger().channel) {
        collected.turn.asker_access = Access::Denied;
        collected.close();
        is_changed = true;
    }
    is_changed
}
