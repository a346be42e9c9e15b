//! Gathering: what a turn collects, and the prompt made from it.

use std::sync::Arc;

use tokio::time::Instant;

use super::Turn;
use super::record::TurnRecord;
use super::remember::Background;
use crate::llm;
use clew_context::collect::prepare::{Prepared, Surroundings, halved, prepare};
use clew_context::collect::{Collected, Occasion, collect};
use clew_context::discord::Live;
use clew_context::engine::eligible::Us;
use clew_context::engine::window::View;
use clew_context::model::{Access, ChannelId, Message, Profiles, ReplyTarget};

/// What was collected, and what was made of it.
pub(super) struct Material {
    pub(super) collected: Collected,
    pub(super) record: TurnRecord,
    /// Who we are in this place.
    pub(super) us: Us,
    /// The agent and what it remembers; none if no agent answers here.
    pub(super) background: Option<Background>,
    /// The agent's model; none without `LLM_BASE_URL`, or if no agent answers here.
    pub(super) model: Option<llm::Client>,
    pub(super) prepared: Prepared,
    /// How often the context was halved to fit the model.
    pub(super) halvings: u32,
}

/// How often a turn's context may be halved: an eighth is left then.
pub(super) const MAX_HALVINGS: u32 = 3;

impl Turn<'_> {
    /// Collects, and prepares the prompt.
    pub(super) async fn gather(&self) -> Material {
        let services = self.services;
        let trigger = &self.request.trigger;
        let channel = services.guild_state.channel(trigger.channel);
        let us = services.us(self.ids.guild);
        let (view, starter) = self.window_view(channel.as_ref().and_then(|one| one.parent));
        let limits = &services.settings.limits;
        let occasion = Occasion {
            request: self.request,
            channel: channel.as_ref(),
            us: &us,
            our_access: self.our_access(),
            asker_access: self.asker_access(),
            view: &view,
            starter: starter.as_ref(),
            waited: self.waited,
            other_triggers: self.other_triggers,
            reply_target: self.reply_target(),
            limits,
        };
        let began = Instant::now();
        let parents = |id| services.guild_state.parent(id);
        let source = Live::new(services.rest.reader()).with_parents(&parents);
        let kind = self.request.channel_kind;
        let kind = kind.or(channel.as_ref().map(|one| one.kind));
        let parent = channel.as_ref().and_then(|one| one.parent);
        let collecting = async {
            let collected = collect(&source, &services.recall, &occasion).await;
            (collected, began.elapsed())
        };
        let ((collected, collected_in), mut background) =
            tokio::join!(collecting, self.background(kind, parent));
        self.hear();
        if let Some(background) = &mut background
            && !collected.asker.may_read()
        {
            background.leave_out_shared();
        }
        let learnt = &collected.learnt;
        learnt.teach(&mut services.window(), &view);
        let deadline = began + limits.fetch_timeout;
        self.confirm(background.as_mut(), learnt, &view, deadline)
            .await;
        if let Some(background) = &mut background {
            self.add_profiles(background, &collected).await;
        }
        let model = background.as_ref().and_then(|background| {
            let model = services.model.as_ref()?;
            Some(model.with_model(background.agent.model.as_deref()))
        });
        let room = model.as_ref().and_then(llm::Client::prompt_room);
        let whole = (self.prepare(&us, &collected, background.as_ref(), 0), 0);
        let (prepared, halvings) = self.fitted(&us, &collected, background.as_ref(), whole, room);
        let record = TurnRecord::new(
            self.request,
            self.queued,
            &collected,
            collected_in,
            &view,
            &prepared,
            limits,
        );
        Material {
            collected,
            record,
            us,
            background,
            model,
            prepared,
            halvings,
        }
    }

    /// The server's own setting takes precedence over the operator's.
    fn reply_target(&self) -> ReplyTarget {
        let services = self.services;
        let of_guild = self.ids.guild.and_then(|guild| {
            let settings = services.memory.guild_settings(guild);
            settings.reply_target
        });
        of_guild.unwrap_or(services.settings.reply_target)
    }

    /// Halves a prompt until it fits the room, or as often as allowed. Takes and
    /// returns the prompt and how often it has been halved.
    pub(super) fn fitted(
        &self,
        us: &Us,
        collected: &Collected,
        background: Option<&Background>,
        (mut prepared, mut halvings): (Prepared, u32),
        room: Option<usize>,
    ) -> (Prepared, u32) {
        let room = room.unwrap_or(usize::MAX);
        while halvings < MAX_HALVINGS && llm::tokens(&prepared.prompt.messages) > room {
            halvings += 1;
            prepared = self.prepare(us, collected, background, halvings);
        }
        (prepared, halvings)
    }

    /// The prompt with its context halved this often: the caps of the block,
    /// and the history, of which the newer half stays.
    pub(super) fn prepare(
        &self,
        us: &Us,
        collected: &Collected,
        background: Option<&Background>,
        halvings: u32,
    ) -> Prepared {
        let limits = (0..halvings).fold(self.services.settings.limits, |limits, _| halved(&limits));
        let directory = self.names(collected.channel.as_ref());
        let scope = background.map(|background| background.place.scope.to_string());
        let agent = background.map(|background| &background.agent);
        let history = background.map(|one| {
            let rows = one.newest_rows(halvings);
            self.services.memory.messages(rows)
        });
        prepare(
            collected,
            &Surroundings {
                us,
                directory: &directory,
                system: agent.map_or("", |agent| agent.system.as_str()),
                docs: agent.map_or(&[], |agent| agent.docs.as_slice()),
                status: background.map_or("", |background| background.status.as_str()),
                secret: &self.services.settings.secret,
                scope: scope.as_deref().unwrap_or_default(),
                limits: &limits,
                profiles: background.map_or(&Profiles::default(), |one| &one.profiles),
                history: &history.unwrap_or_default(),
            },
        )
    }

    /// The channel's window, and the thread's starter if the parent's window has it.
    fn window_view(&self, parent: Option<ChannelId>) -> (View, Option<Arc<Message>>) {
        let window = self.services.window();
        let channel = self.request.trigger.channel;
        let starter = parent.and_then(|parent| window.message(parent, channel.starter()));
        let mut view = window.view(channel);
        view.newest = view.newest.min(self.newest);
        if let Some(carried) = self.request.trigger.carried() {
            view.complete(carried);
        }
        (view, starter)
    }

    /// Remembers the names of users whom the trigger mentions, since its
    /// stored words may mention them later.
    fn hear(&self) {
        let Some(guild) = self.ids.guild else {
            return;
        };
        let trigger = &self.request.trigger;
        let author = (trigger.author.id, &*trigger.author.name);
        let mentions = trigger.mentions.iter();
        let mentioned = mentions.map(|mention| (mention.id, &*mention.name));
        self.services
            .guild_state
            .hear(guild, mentioned.chain([author]));
    }

    pub(super) fn our_access(&self) -> Access {
        self.services
            .guild_state
            .our_access(self.request.trigger.channel)
    }

    /// As far as known; collecting finds out the rest. Whoever writes in a private
    /// thread is a member of it.
    fn asker_access(&self) -> Access {
        let access = self.access_to(self.request.trigger.channel);
        if self.request.cause.interaction().is_none() {
            access.as_member()
        } else {
            access
        }
    }

    /// What the asker may do in a channel, given the roles in the trigger.
    pub(super) fn access_to(&self, channel: ChannelId) -> Access {
        let roles = self.request.asker_roles.as_deref();
        let guild_state = &self.services.guild_state;
        guild_state.access(self.request.asker(), roles, channel)
    }
}
