//! What a turn knows: [`TurnInput`] before anything is fetched, [`Collected`]
//! afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{
    Access, Cause, Channel, ChannelId, ChannelKind, Fallback, GuildId, Limits, Message, MessageId,
    Missing, ReplyTarget, Scene, Stage, TurnRequest,
};

use super::eligible::Us;
use super::links::GatheredLinks;
use super::place::GatheredPlace;
use super::select::{Gathered, Selector};
use super::target::{self, Target, TargetFacts};
use super::window::{View, Window};

/// One trigger when its turn starts. Only the arguments of [`TurnInput::new`] are
/// necessary; set the other fields if you know them.
#[derive(Debug, Clone)]
pub struct TurnInput {
    /// The trigger and why it is one.
    pub request: TurnRequest,
    /// Our identity in this server.
    pub us: Us,
    /// The channel's window.
    pub view: View,
    /// The caps.
    pub limits: Limits,
    /// The trigger's channel. If unknown, it is fetched where something depends on it:
    /// in threads, and where the event did not tell its type.
    pub channel: Option<Channel>,
    /// What we may do here. If unknown, we try and see what Discord answers.
    pub our_access: Access,
    /// What the asker may do here; everything in a direct message. If unknown, it
    /// is looked up, which costs some calls.
    pub asker_access: Access,
    /// The message with the thread's id, from the parent's window.
    pub starter: Option<Arc<Message>>,
    /// Whether the trigger had to wait for other turns.
    pub waited: bool,
    /// Triggers of other turns that are waiting or running, or were refused.
    pub other_triggers: BTreeSet<MessageId>,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
}

/// What was collected for one trigger.
#[derive(Debug, Clone)]
pub struct Collected {
    /// What the turn knew and what was found out since: the channel (`None` if the
    /// asker may not view it), what the asker may do (never unknown), and the texts
    /// of the trigger's files. The trigger holds no words of others who opted out.
    pub turn: TurnInput,
    /// What the trigger is.
    pub scene: Scene,
    /// The messages.
    pub gathered: Gathered,
    /// What links in the trigger or the pointed-at message led to.
    pub links: GatheredLinks,
    /// What belongs to the channel, whatever is said there.
    pub place: GatheredPlace,
    /// The message the answer replies to, and the adopted text.
    pub target: Target,
    /// REST calls made.
    pub fetches: usize,
    /// The same calls, by what they were for.
    pub stages: Vec<StageFetches>,
    /// What failed, and where.
    pub fallbacks: Vec<(Stage, Fallback)>,
    /// The asker opted out: the answer is based on the trigger and on what others
    /// said, without profile and history.
    pub asker_opted_out: bool,
    /// Fetched messages for the window to keep.
    pub window_update: WindowUpdate,
}

/// The REST calls of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageFetches {
    /// What they were for.
    pub stage: Stage,
    /// How many there were, second tries included.
    pub fetches: usize,
    /// From the first call to the last answer; other stages may run beside it.
    pub took: Duration,
}

/// Fetched messages for the window to keep.
#[derive(Debug, Clone, Default)]
pub struct WindowUpdate {
    /// Complete pages of the trigger's channel.
    pub pages: Option<MessageRange>,
    /// Single messages that were pointed at, by channel.
    pub single: Vec<(ChannelId, Arc<Message>)>,
}

/// Messages of a channel without a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRange {
    /// The channel.
    pub channel: ChannelId,
    /// The messages are complete from here...
    pub from: MessageId,
    /// ...to here, both included: a message in between that is missing here was not
    /// on the page.
    pub to: MessageId,
    /// Oldest first.
    pub messages: Vec<Arc<Message>>,
}

impl Collected {
    /// Adds what was fetched to the window from which the turn's view was taken.
    pub fn update(&self, window: &mut Window) {
        let (view, update) = (&self.turn.view, &self.window_update);
        if let Some(pages) = &update.pages {
            window.backfill(pages.channel, view, pages.from, &pages.messages);
        }
        for (channel, message) in &update.single {
            window.keep(*channel, view, std::slice::from_ref(message));
        }
        if self.place.fetched {
            let (channel, guild) = (self.turn.channel_id(), self.turn.guild());
            window.keep_pins(channel, guild, view, &self.place.pins);
        }
    }

    /// The messages that we have beside the trigger; some may occur twice.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        let gathered = self.gathered.messages().into_iter();
        gathered
            .chain(self.links.messages())
            .chain(&self.place.pins)
    }

    /// The trigger, with the texts of its files.
    pub fn trigger(&self) -> &Arc<Message> {
        self.turn.trigger()
    }
}

impl TurnInput {
    /// A trigger about which only its window is known.
    pub const fn new(request: TurnRequest, us: Us, view: View, limits: Limits) -> Self {
        Self {
            request,
            us,
            view,
            limits,
            channel: None,
            our_access: Access::Unknown(Missing::Facts),
            asker_access: Access::Unknown(Missing::Facts),
            starter: None,
            waited: false,
            other_triggers: BTreeSet::new(),
            reply_target: ReplyTarget::Newest,
        }
    }

    /// The trigger.
    pub const fn trigger(&self) -> &Arc<Message> {
        &self.request.trigger
    }

    pub(crate) fn selector(&self) -> Selector<'_> {
        Selector {
            us: &self.us,
            trigger: self.trigger(),
            limits: &self.limits,
        }
    }

    pub(crate) fn channel_id(&self) -> ChannelId {
        self.request.trigger.channel
    }

    /// The server, if any.
    pub(crate) fn guild(&self) -> Option<GuildId> {
        let channel = self.channel.as_ref();
        channel.and_then(|one| one.guild).or(self.trigger().guild)
    }

    /// The channel's type, if the event, the caller or a fetch said so.
    pub fn channel_kind(&self) -> Option<ChannelKind> {
        let kind = self.request.channel_kind;
        kind.or(self.channel.as_ref().map(|channel| channel.kind))
    }

    /// Whether the trigger is a message in the channel, not a command's question.
    pub(crate) fn trigger_is_message(&self) -> bool {
        self.request.cause.is_posted()
    }

    /// Whether the asker is taken for a member of the thread, since they wrote in it. A
    /// webhook writes in private threads that nobody has added anybody to.
    pub(crate) fn asker_wrote_here(&self) -> bool {
        self.trigger_is_message() && self.us.proxy_of(self.trigger()).is_none()
    }

    /// Whether anything is collected around the trigger.
    pub(crate) fn wants_context(&self) -> bool {
        !matches!(self.request.cause, Cause::AgentRun)
    }

    /// The newest message seen when the turn started; nothing newer is looked at.
    pub(crate) fn horizon(&self) -> MessageId {
        let trigger = self.request.trigger.id;
        self.view
            .newest
            .map_or(trigger, |newest| newest.max(trigger))
    }

    /// Whether the trigger has no words of its own.
    pub(crate) fn is_bare(&self) -> bool {
        let is_direct = self.channel_kind().is_some_and(ChannelKind::is_direct);
        self.us.is_bare(self.trigger(), is_direct)
    }

    /// What is answered, given what we know of the pointed-at message and, in a
    /// thread, of the thread's messages.
    pub(crate) fn target(
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
            other_triggers: &self.other_triggers,
            rule: self.reply_target,
        };
        target::resolve(&self.us, &facts)
    }

    /// Whether the thread's whole history is wanted, not only its tail.
    pub(crate) fn wants_history(&self) -> bool {
        !matches!(self.request.cause, Cause::AutoReply)
    }

    /// Whether we computed that we may read this channel.
    pub(crate) fn may_surely_read(&self) -> bool {
        self.our_access.may_read()
    }

    /// Whether we computed that we may not read this channel.
    pub(crate) fn may_surely_not_read(&self) -> bool {
        self.our_access.forbids(|rights| rights.read_history)
    }

    /// The starter, if a window holds it.
    pub(crate) fn known_starter(&self, home: ChannelId) -> Option<Arc<Message>> {
        let id = self.channel_id().starter();
        let here = || self.view.get(id).filter(|_| home == self.channel_id());
        self.starter.as_ref().or_else(here).cloned()
    }
}
