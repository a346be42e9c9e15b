//! Remembering: what a turn reads from memory, and what it leaves there.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::gather::Material;
use super::reply::Posted;
use super::{Services, Turn};
use crate::memory::{Exchange, Fetched, Mend, Place, Readable};
use crate::model::Agent;
use clew_context::engine::render::Directory;
use clew_context::engine::status::{RunningTurn, status};
use clew_context::engine::turn::{Collected, MessageRange};
use clew_context::model::{ChannelId, ChannelKind, MessageId, Profiles};
use clew_store::model::{Scope, StoredMessage};

/// How much of a question and of the newest messages around it is used to
/// match facts, in bytes. Matching looks at a few hundred words at most.
const MATCHED_BYTES: usize = 8_000;

/// The agent that answers, and what it knows.
#[derive(Debug, Clone)]
pub(super) struct Background {
    pub(super) agent: Arc<Agent>,
    pub(super) place: Place,
    /// Which facts could be read.
    facts: Readable,
    /// The asker's and the server's facts.
    pub(super) profiles: Profiles,
    /// What was said before, oldest first.
    pub(super) rows: Vec<StoredMessage>,
    /// What the agent does elsewhere.
    pub(super) status: String,
}

impl Background {
    /// Drops the history of a shared thread for an asker who may not read the thread.
    pub(super) fn leave_out_shared(&mut self) {
        if matches!(self.place.scope, Scope::Thread { .. }) {
            self.rows.clear();
        }
    }

    /// The history after its older half has been dropped this often.
    pub(super) fn newest_rows(&self, halvings: u32) -> &[StoredMessage] {
        (0..halvings).fold(&self.rows, |rows, _| &rows[rows.len().div_ceil(2)..])
    }
}

impl Turn<'_> {
    /// The agent that answers here and what was said before; none if no agent
    /// answers here.
    pub(super) async fn background(
        &self,
        kind: Option<ChannelKind>,
        parent: Option<ChannelId>,
    ) -> Option<Background> {
        let services = self.services;
        services.agents.refresh(self.started).await;
        let channel = self.request.trigger.channel;
        let agent = services.agents.pick(channel, parent)?;
        let is_thread = kind.is_some_and(ChannelKind::is_thread);
        let place = services.memory.place(
            &agent,
            self.ids.guild,
            channel,
            is_thread,
            self.request.asker(),
        );
        let turn = self.request.turn();
        let memory = &services.memory;
        // Boxed to keep the future of a turn small.
        let recalled = Box::pin(async {
            tokio::join!(
                memory.history(&self.ids, &place, turn),
                memory.read_facts(&self.ids, &place)
            )
        });
        let (rows, facts) = recalled.await;
        Some(Background {
            status: self.status_elsewhere(&agent),
            facts,
            profiles: Profiles::default(),
            agent,
            place,
            rows,
        })
    }

    /// Adds the facts that match what was asked and collected.
    pub(super) async fn add_profiles(&self, background: &mut Background, collected: &Collected) {
        let mut words = self.request.trigger.content.to_string();
        for message in collected.gathered.messages().into_iter().rev() {
            if words.len() >= MATCHED_BYTES {
                break;
            }
            words.push('\n');
            words.push_str(&message.content);
        }
        words.truncate(words.floor_char_boundary(MATCHED_BYTES));
        let memory = &self.services.memory;
        let Background { place, facts, .. } = background;
        background.profiles = memory.profiles(&self.ids, place, *facts, &words).await;
    }

    /// The agent's other turns in this server, in channels that the asker may
    /// read.
    fn status_elsewhere(&self, agent: &Agent) -> String {
        let Services {
            guild_state,
            agents,
            ..
        } = self.services;
        let is_ours = |channel: ChannelId| {
            let known = guild_state.kind_and_parent(channel);
            let parent = known.and_then(|(_, parent)| parent);
            agents
                .pick(channel, parent)
                .is_some_and(|other| other.name == agent.name)
        };
        let names = self.names(None);
        let turns = self.elsewhere.iter().filter(|other| is_ours(other.channel));
        let turns: Vec<RunningTurn> = turns
            .filter(|other| self.access_to(other.channel).may_read())
            .filter_map(|other| {
                Some(RunningTurn {
                    channel: names.channel(other.channel)?,
                    asker: None,
                    seconds: (self.started - other.since).as_secs(),
                })
            })
            .collect();
        status(&turns)
    }

    /// Confirms rows of the prompt by what the collectors saw; for those that lie
    /// before a gap, asks Discord until `deadline`.
    pub(super) async fn confirm(
        &self,
        mut background: Option<&mut Background>,
        collected: &Collected,
        deadline: Instant,
    ) {
        let Services { memory, rest, .. } = self.services;
        let fetched = &collected.window_update;
        if let Some(pages) = &fetched.pages {
            let page = self.fetched(pages);
            if let Some(background) = &mut background {
                memory.look_through(&page, &mut background.rows);
            }
            memory.mend(Mend::Fetched(page));
        }
        let Some(Background { rows, .. }) = background else {
            return;
        };
        let here = self.request.trigger.channel;
        let is_there = |channel: ChannelId, id: MessageId| {
            let mut single = fetched.single.iter();
            channel == here && collected.turn.view.get(id).is_some()
                || single.any(|(of, message)| (*of, message.id) == (channel, id))
        };
        memory.confirmed(rows, is_there);
        let edit_of = |message: &_| self.services.edit_of(message);
        // Boxed to keep the future of a turn small.
        Box::pin(memory.confirm(&self.ids, rows, rest, &edit_of, deadline)).await;
    }

    /// What a page shows to have been edited while we were away, and what may have
    /// been deleted.
    fn fetched(&self, pages: &MessageRange) -> Fetched {
        let edited = pages.messages.iter().filter(|one| one.edited.is_some());
        let ids = pages.messages.iter().map(|one| one.id);
        Fetched {
            at: self.asked,
            guild: self.ids.guild,
            channel: pages.channel,
            from: pages.from,
            to: pages.to,
            present: ids.collect::<BTreeSet<_>>(),
            edited: edited
                .filter_map(|one| self.services.edit_of(one))
                .collect(),
        }
    }

    /// Stores a successful turn: the asker's own words and the answer.
    pub(super) async fn record(&self, material: &Material, posted: &Posted<'_>, answer: &str) {
        let Some(background) = &material.background else {
            return;
        };
        let target = material.collected.target.reply_to.as_ref();
        let exchange = Exchange {
            turn: self.request.turn(),
            trigger: self.request.posted_trigger(),
            asker_name: material.prepared.asker.clone(),
            words: self
                .services
                .own_words(self.ids.guild, &self.request.trigger),
            target: target.map(|message| message.id),
            asked: self.asked,
            answer: answer.to_owned(),
            messages: posted.parts().map(|(id, _)| id).collect(),
        };
        let memory = &self.services.memory;
        memory.record(&self.ids, &background.place, &exchange).await;
    }
}
