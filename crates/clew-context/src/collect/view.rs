//! What a turn knows at its start, before anything is fetched.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::eligible::Us;
use crate::engine::target::{self, Target, TargetFacts};
use crate::engine::window::View;
use crate::model::{
    Access, Cause, Channel, ChannelId, ChannelKind, Limits, Message, MessageId, Missing,
    ReplyTarget, TurnRequest,
};

/// One trigger at its turn's start.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The trigger and why it is one.
    pub request: &'a TurnRequest,
    /// Its channel, as far as the shell knows it.
    pub channel: Option<&'a Channel>,
    /// Who we are here.
    pub us: &'a Us,
    /// What we may do here. Where that is unknown Discord's answers tell.
    pub our_access: Access,
    /// What the asker may do here, everything in a direct message. What is
    /// unknown is asked for, which costs some calls.
    pub asker_access: Access,
    /// The channel's window.
    pub view: &'a View,
    /// The message with the thread's id in the parent's window.
    pub starter: Option<&'a Arc<Message>>,
    /// The trigger had to wait for other turns.
    pub waited: bool,
    /// Triggers of other turns that wait or run, or were refused.
    pub other_triggers: &'a BTreeSet<MessageId>,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// The caps.
    pub limits: &'a Limits,
}

/// No other turns.
const ALONE: &BTreeSet<MessageId> = &BTreeSet::new();

impl<'a> Occasion<'a> {
    /// A trigger of which nothing is known beyond its window: permissions,
    /// channel and other turns are fields to be set where they are known. A
    /// channel that is not known costs a call.
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

    /// A message of the channel, not a command's question.
    pub(super) fn trigger_is_message(&self) -> bool {
        self.request.cause.interaction().is_none()
    }

    /// Nothing newer than this is looked at: the newest message seen when the
    /// turn started.
    pub(super) fn horizon(&self) -> MessageId {
        let trigger = self.request.trigger.id;
        self.view
            .newest
            .map_or(trigger, |newest| newest.max(trigger))
    }

    /// The trigger has no words of its own.
    pub(super) fn is_bare(&self) -> bool {
        let kind = self.request.channel_kind;
        let kind = kind.or(self.channel.map(|channel| channel.kind));
        let is_direct = kind.is_some_and(ChannelKind::is_direct);
        self.us.is_bare(self.trigger(), is_direct)
    }

    /// What is answered, by what is known of the message pointed at and, in a
    /// thread, of its messages.
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

    /// The whole history of a thread is wanted, not only its tail.
    pub(super) fn wants_history(&self) -> bool {
        !matches!(self.request.cause, Cause::AutoReply)
    }

    /// We computed that we may read this channel.
    pub(super) fn may_surely_read(&self) -> bool {
        self.our_access.may_read()
    }

    /// We computed that we may not.
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
