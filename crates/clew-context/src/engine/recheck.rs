//! What was collected, judged once more: between collecting and asking the model, messages
//! are edited and deleted, people opt out, and channels close.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Message, MessageId, OptedOut, Referenced};

use super::chain::ChainLink;
use super::links::GatheredLink;
use super::place::GatheredPlace;
use super::select::{Gathered, NamedMessage};
use super::turn::Collected;

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageNow {
    /// Nothing.
    Unchanged,
    /// It reads like this now.
    Edited(Arc<Message>),
    /// It was deleted, or may not be shown any more.
    Gone,
}

impl Collected {
    /// Takes over what became of each message; the trigger's own words stay. Returns
    /// whether anything did.
    pub fn take_changes(&mut self, now: impl Fn(&Message) -> MessageNow) -> bool {
        let trigger = self.trigger().id;
        let mut is_changed = false;
        let mut gone = BTreeSet::new();
        for message in self.every_message() {
            match now(message) {
                _ if message.id == trigger => {}
                MessageNow::Unchanged => {}
                MessageNow::Edited(newer) => {
                    is_changed = true;
                    *message = newer;
                }
                MessageNow::Gone => {
                    gone.insert(message.id);
                }
            }
            is_changed |= take_referenced(message, &now);
        }
        is_changed |= !gone.is_empty();
        self.leave_out(&gone);
        is_changed
    }

    /// Removes the words of people who opted out, and titles of threads that they opened;
    /// the trigger keeps its author's own words. Returns whether there were any.
    pub fn withhold(&mut self, opted_out: &OptedOut) -> bool {
        let trigger = self.trigger().id;
        let mut is_changed = false;
        for message in self.every_message() {
            let is_trigger = message.id == trigger;
            if is_trigger && opted_out.concerns_others(message) {
                opted_out.withhold_others(Arc::make_mut(message));
                is_changed = true;
            } else if !is_trigger && opted_out.concerns(message) {
                opted_out.withhold(Arc::make_mut(message));
                is_changed = true;
            }
        }
        if let Some(adopted) = self.target.adopted.take_if(|one| one.withheld) {
            self.target.withheld |= self.turn.trigger().replies_to() == Some(adopted.id);
        }
        let linked = self.links.targets.iter_mut();
        let linked = linked.filter_map(|link| link.channel.as_mut());
        for channel in self.turn.channel.iter_mut().chain(linked) {
            let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
            if owner.is_some_and(|owner| opted_out.contains(owner)) {
                is_changed |= !channel.name.is_empty();
                channel.name.clear();
            }
        }
        is_changed
    }

    /// Leaves out what links led to and may not be shown any more. Returns whether there
    /// was any.
    pub fn close_links(&mut self, is_open: impl Fn(&GatheredLink) -> bool) -> bool {
        let links = &mut self.links;
        let before = links.targets.len();
        links.targets.retain(is_open);
        let is_changed = links.targets.len() < before;
        links.closed |= is_changed;
        is_changed
    }

    /// Leaves out everything around the trigger: its asker may not read it any more.
    pub fn close(&mut self) {
        self.gathered = Gathered::Nothing;
        self.place = GatheredPlace::default();
        self.target.adopted = None;
        self.turn.channel = None;
    }

    /// The messages that may be shown or looked at; some occur twice.
    fn every_message(&mut self) -> impl Iterator<Item = &mut Arc<Message>> {
        let Self {
            turn,
            gathered,
            links,
            place,
            target,
            window_update,
            scene: _,
            fetches: _,
            stages: _,
            fallbacks: _,
            asker_opted_out: _,
        } = self;
        let linked = links.targets.iter_mut();
        let linked = linked.flat_map(GatheredLink::messages_mut);
        let targets = [&mut target.reply_to, &mut target.adopted];
        let targets = targets.into_iter().flatten();
        let pages = window_update.pages.iter_mut();
        let pages = pages.flat_map(|one| &mut one.messages);
        let single = window_update.single.iter_mut();
        let single = single.map(|(_, message)| message);
        gathered
            .messages_mut()
            .into_iter()
            .chain(linked)
            .chain(&mut place.pins)
            .chain(targets)
            .chain(pages)
            .chain(single)
            .chain([&mut turn.request.trigger])
    }

    fn leave_out(&mut self, gone: &BTreeSet<MessageId>) {
        if gone.is_empty() {
            return;
        }
        let is_gone = |message: &Arc<Message>| gone.contains(&message.id);
        match &mut self.gathered {
            Gathered::Thread(thread) => {
                let (messages, named, target) = thread.parts_mut();
                messages.retain(|one| !is_gone(one));
                target.take_if(|one| is_gone(one));
                for one in named {
                    forget(one, gone);
                }
            }
            Gathered::Chain { links, around, .. } => {
                around.retain(|one| !is_gone(one));
                let is_gone = |link: &ChainLink| link.message().is_some_and(is_gone);
                if let Some(at) = links.iter().position(is_gone) {
                    let id = links[at].message().map(|message| message.id);
                    links.truncate(at);
                    links.extend(id.map(ChainLink::Deleted));
                }
            }
            Gathered::Tail(messages)
            | Gathered::Recent(messages)
            | Gathered::Conversation(messages) => messages.retain(|one| !is_gone(one)),
            Gathered::Nothing => {}
        }
        for link in &mut self.links.targets {
            forget(&mut link.main, gone);
            link.others.retain(|one| !is_gone(one));
        }
        self.place.pins.retain(|one| !is_gone(one));
        self.target.reply_to.take_if(|one| is_gone(one));
        self.target.adopted.take_if(|one| is_gone(one));
    }
}

fn forget(named: &mut NamedMessage, gone: &BTreeSet<MessageId>) {
    let id = named.message().map(|message| message.id);
    if let Some(id) = id.filter(|id| gone.contains(id)) {
        *named = NamedMessage::Deleted(id);
    }
}

/// Takes over what became of the message that another one includes.
fn take_referenced(message: &mut Arc<Message>, now: impl Fn(&Message) -> MessageNow) -> bool {
    let Some(referenced) = message.referenced_message() else {
        return false;
    };
    let referenced = match now(referenced) {
        MessageNow::Unchanged => return false,
        MessageNow::Edited(newer) => Referenced::Known(Box::new(Message {
            referenced: Referenced::Absent,
            ..Message::clone(&newer)
        })),
        MessageNow::Gone => Referenced::Deleted,
    };
    Arc::make_mut(message).referenced = referenced;
    true
}
