//! Gathering: what a turn collects, and the prompt made from it.

use std::sync::Arc;

use tokio::time::Instant;

use super::Turn;
use super::record::TurnRecord;
use super::remember::Background;
use crate::llm;
use clew_context::collect::collect;
use clew_context::discord::Live;
use clew_context::engine::prepare::{Prepared, PromptInput, prepare};
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::engine::window::View;
use clew_context::model::{Access, ChannelId, Message, ReplyTarget};

/// What was collected, and what was made of it.
pub(super) struct Material {
    pub(super) collected: Collected,
    pub(super) record: TurnRecord,
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
        let input = self.input();
        let kind = input.channel_kind();
        let parent = input.channel.as_ref().and_then(|one| one.parent);
        let began = Instant::now();
        let parents = |id| services.guild_state.parent(id);
        let source = Live::new(services.rest.reader()).with_parents(&parents);
        let collecting = async {
            let collected = collect(&source, &services.recall, input).await;
            (collected, began.elapsed())
        };
        let ((collected, collected_in), mut background) =
            tokio::join!(collecting, self.background(kind, parent));
        self.hear();
        if let Some(background) = &mut background
            && !collected.turn.asker_access.may_read()
        {
            background.leave_out_shared();
        }
        collected.update(&mut services.window());
        let deadline = began + collected.turn.limits.fetch_timeout;
        self.confirm(background.as_mut(), &collected, deadline)
            .await;
        if let Some(background) = &mut background {
            self.add_profiles(background, &collected).await;
        }
        let model = background.as_ref().and_then(|background| {
            let model = services.model.as_ref()?;
            Some(model.with_model(background.agent.model.as_deref()))
        });
        let room = model.as_ref().and_then(llm::Client::prompt_room);
        let whole = (self.prepare(&collected, background.as_ref(), 0), 0);
        let (prepared, halvings) = self.fitted(&collected, background.as_ref(), whole, room);
        let record = TurnRecord::new(
            self.request,
            self.queued,
            &collected,
            collected_in,
            &prepared,
        );
        Material {
            collected,
            record,
            background,
            model,
            prepared,
            halvings,
        }
    }

    /// What is known before anything is fetched.
    fn input(&self) -> TurnInput {
        let services = self.services;
        let channel = services.guild_state.channel(self.request.trigger.channel);
        let (view, starter) = self.window_view(channel.as_ref().and_then(|one| one.parent));
        let (us, limits) = (services.us(self.ids.guild), services.settings.limits);
        TurnInput {
            channel,
            our_access: self.our_access(),
            asker_access: self.asker_access(),
            starter,
            waited: self.waited,
            other_triggers: self.other_triggers.clone(),
            reply_target: self.reply_target(),
            ..TurnInput::new(self.request.clone(), us, view, limits)
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
        collected: &Collected,
        background: Option<&Background>,
        (mut prepared, mut halvings): (Prepared, u32),
        room: Option<usize>,
    ) -> (Prepared, u32) {
        let room = room.unwrap_or(usize::MAX);
        while halvings < MAX_HALVINGS && llm::tokens(&prepared.prompt.messages) > room {
            halvings += 1;
            prepared = self.prepare(collected, background, halvings);
        }
        (prepared, halvings)
    }

    /// The prompt with its context halved this often: the caps of the block,
    /// and the history, of which the newer half stays.
    pub(super) fn prepare(
        &self,
        collected: &Collected,
        background: Option<&Background>,
        halvings: u32,
    ) -> Prepared {
        let directory = self.names(collected.turn.channel.as_ref());
        let secret = &self.services.settings.secret;
        let Some(background) = background else {
            let input = PromptInput {
                directory: &directory,
                halvings,
                ..PromptInput::new("", secret, "")
            };
            return prepare(collected, &input);
        };
        let scope = background.place.scope.to_string();
        let rows = background.newest_rows(halvings);
        let input = PromptInput {
            directory: &directory,
            docs: &background.agent.docs,
            status: &background.status,
            profiles: &background.profiles,
            history: &self.services.memory.messages(rows),
            halvings,
            ..PromptInput::new(&background.agent.system, secret, &scope)
        };
        prepare(collected, &input)
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
