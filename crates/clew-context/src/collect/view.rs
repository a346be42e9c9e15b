//! What a turn knows when it starts, before anything is fetched.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::eligible::Us;
use crate::engine::target::{self, Target, TargetFacts};
use crate::engine::window::View;
use crate::model::{
    Access, Cause, Channel, ChannelId, ChannelKind, Limits, Message, MessageId, Missing,
    ReplyTarget, TurnRequest,
};

/// One trigger when its turn starts.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The trigger and why it is one.
    pub request: &'a TurnRequest,
    /// Its channel, if the caller knows it.
    pub channel: Option<&'a Channel>,
    /// Our identity in this server.
    pub us: &'a Us,
    /// What we may do here. If unknown, we try and see what Discord answers.
    pub our_access: Access,
    /// What the asker may do here; everything in a direct message. If unknown, it
    /// is looked up, which costs some calls.
    pub asker_access: Access,
    /// The channel's window.
    pub view: &'a View,
    /// The message with the thread's id, from the parent's window.
    pub starter: Option<&'a Arc<Message>>,
    /// Whether the trigger had to wait for other turns.
    pub waited: bool,
    /// Triggers of other turns that are waiting or running, or were refused.
    pub other_triggers: &'a BTreeSet<MessageId>,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// The caps.
    pub limits: &'a Limits,
}

/// Used if there are no other turns.
const ALONE: &BTreeSet<MessageId> = &BTreeSet::new();

impl<'a> Occasion<'a> {
    /// A trigger about which only its window is known. Set the other fields if you
    /// know them: permissions, channel, other turns. An unknown channel costs a
    /// call.
    pub const fn new(
        request: &'a TurnRequest,
        us: &'a Us,
        view: &'a View,
        limits: &'a Limits,
    ) -> Self {
        Self {
            request,
            channel: None,
            us,
            our_access: Access::Unknown(Missing::Facts),
            asker_access: Access::Unknown(Missing::Facts),
            view,
            starter: None,
            waited: false,
            other_triggers: ALONE,
            reply_target: ReplyTarget::Newest,
            limits,
        }
    }
}

impl Occasion<'_> {
    pub(super) fn trigger(&self) -> &Arc<Message> {
        &self.request.trigger
    }

    pub(super) fn channel_id(&self) -> ChannelId {
        self.request.trigger.channel
    }

    /// Whether the trigger is a message in the channel, not a command's question.
    pub(super) fn trigger_is_message(&self) -> bool {
        self.request.cause.interaction().is_none()
    }

    /// The newest message seen when the turn started; nothing newer is looked at.
    pub(super) fn horizon(&self) -> MessageId {
        let trigger = self.request.trigger.id;
        self.view
            .newest
            .map_or(trigger, |newest| newest.max(trigger))
    }

    /// Whether the trigger has no words of its own.
    pub(super) fn is_bare(&self) -> bool {
        let kind = self.request.channel_kind;
        let kind = kind.or(self.channel.map(|channel| channel.kind));
        let is_direct = kind.is_some_and(ChannelKind::is_direct);
        self.us.is_bare(self.trigger(), is_direct)
    }

    /// What is answered, given what we know of the pointed-at message and, in a
    /// thread, of the thread's messages.
    pub(super) fn target(
        &self,
        pointed_at: Option<&Arc<Message>>,
        thread: Option<&[Arc<Message>]>,
    ) -> Target {
        let facts = TargetFacts {
            trigger: self.trigger(),
            is_message: self.trigger_is_message(),
            bare: self.is_bare(),
            waited: self.waited,
            pointed_at,
            thread,
            other_triggers: self.other_triggers,
            rule: self.reply_target,
        };
        target::resolve(self.us, &facts)
    }

    /// Whether the thread's whole history is wanted, not only its tail.
    pub(super) fn wants_history(&self) -> bool {
        !matches!(self.request.cause, Cause::AutoReply)
    }

    /// Whether we computed that we may read this channel.
    pub(super) fn may_surely_read(&self) -> bool {
        self.our_access.may_read()
    }

    /// Whether we computed that we may not read this channel.
    pub(super) fn may_surely_not_read(&self) -> bool {
        self.our_access.forbids(|rights| rights.read_history)
    }

    /// The starter, if a window holds it.
    pub(super) fn known_starter(&self, home: ChannelId) -> Option<Arc<Message>> {
        let id = self.channel_id().starter();
        let here = || self.view.get(id).filter(|_| home == self.channel_id());
        self.starter.or_else(here).cloned()
    }
}
