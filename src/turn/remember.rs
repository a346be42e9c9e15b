//! Remembering: what a turn takes from memory, and what it leaves there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::gather::Material;
use super::outlet::Posted;
use super::{Services, Turn};
use crate::memory::{Edit, Exchange, Fetched, Mend, Place, Readable};
use crate::model::Agent;
use clew_context::collect::{Adopted, Collected};
use clew_context::engine::access::may_read;
use clew_context::engine::status::{RunningTurn, status};
use clew_context::model::{ChannelId, ChannelKind, HistoryMessage, Message, Profiles};
use clew_discord::facts::Verdict;
use clew_store::model::Scope;

/// Under whose name a turn answers, and with what in mind.
#[derive(Debug, Clone)]
pub(super) struct Background {
    pub(super) agent: Arc<Agent>,
    pub(super) place: Place,
    /// Which facts could be read.
    facts: Readable,
    /// Of the asker and of the server.
    pub(super) profiles: Profiles,
    /// Oldest first.
    pub(super) history: Vec<HistoryMessage>,
    /// What the agent does elsewhere.
    pub(super) status: String,
}

impl Background {
    /// What these pages lack may be deleted. It is asked for behind this turn
    /// ([`Mend::Fetched`]); the turn itself goes without it, the answer to a
    /// question that is left out too.
    pub(super) fn leave_out_missing(&mut self, pages: &Adopted) {
        let Some(last) = pages.messages.last() else {
            return;
        };
        // Rows of one person everywhere are of other channels as well.
        if matches!(self.place.scope, Scope::User(_)) {
            return;
        }
        let range = pages.from..=last.id;
        let present = |id| {
            let found = pages.messages.binary_search_by_key(&id, |one| one.id);
            found.is_ok()
        };
        let mut question_is_missing = false;
        self.history.retain(|row| {
            let id = row.message.filter(|id| range.contains(id));
            let is_missing = id.is_some_and(|id| !present(id));
            if !row.ours {
                question_is_missing = is_missing;
            }
            !is_missing && !question_is_missing
        });
    }

    /// With the newer half of the history, for a model that said the prompt
    /// was too long.
    pub(super) fn halved(&self) -> Self {
        let mut smaller = self.clone();
        smaller.history.drain(..self.history.len().div_ceil(2));
        smaller
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
        // Boxed: every turn would be as large.
        let recalled = Box::pin(async {
            tokio::join!(
                memory.history(&self.ids, &place, turn),
                memory.read_facts(&self.ids, &place)
            )
        });
        let (history, facts) = recalled.await;
        Some(Background {
            status: self.status_elsewhere(&agent),
            facts,
            profiles: Profiles::default(),
            agent,
            place,
            history,
        })
    }

    /// The facts that fit what was asked and what was collected.
    pub(super) async fn add_profiles(&self, background: &mut Background, collected: &Collected) {
        let mut words = self.request.trigger.content.to_string();
        for message in collected.gathered.messages() {
            words.push('\n');
            words.push_str(&message.content);
        }
        let memory = &self.services.memory;
        let Background { place, facts, .. } = background;
        background.profiles = memory.profiles(&self.ids, place, *facts, &words).await;
    }

    /// The agent's other turns in this server, in channels that the asker may
    /// read.
    fn status_elsewhere(&self, agent: &Agent) -> String {
        let Services { facts, agents, .. } = self.services;
        let is_ours = |channel: ChannelId| {
            let parent = facts
                .kind_and_parent(channel)
                .and_then(|(_, parent)| parent);
            agents
                .pick(channel, parent)
                .is_some_and(|other| other.name == agent.name)
        };
        let may_know = |channel: ChannelId| {
            let roles = &self.request.asker_roles;
            let access = facts.access(self.request.asker(), roles, channel);
            matches!(access, Some(Verdict::Known(access)) if may_read(&access))
        };
        let turns = self.elsewhere.iter().filter(|other| {
            let guild = facts.guild_of(other.channel);
            guild.is_some() && guild == self.ids.guild && is_ours(other.channel)
        });
        let turns: Vec<RunningTurn> = turns
            .filter(|other| may_know(other.channel))
            .filter_map(|other| {
                Some(RunningTurn {
                    channel: facts.channel_name(other.channel)?,
                    asker: None,
                    seconds: (self.started - other.since).as_secs(),
                })
            })
            .collect();
        status(&turns)
    }

    /// A page tells what was edited while we were away, and what may have been
    /// deleted.
    pub(super) fn note_fetched(&self, pages: &Adopted) {
        let Some(last) = pages.messages.last() else {
            return;
        };
        let edited = pages.messages.iter().filter(|one| may_be_stored(one));
        let fetched = Fetched {
            channel: pages.channel,
            from: pages.from,
            to: last.id,
            present: pages
                .messages
                .iter()
                .map(|one| one.id)
                .collect::<BTreeSet<_>>(),
            edited: edited
                .map(|one| Edit {
                    message: one.id,
                    author: one.author.id,
                    words: self.services.own_words(self.ids.guild, one),
                    at: one.edited,
                })
                .collect(),
        };
        self.services.memory.mend(Mend::Fetched(fetched));
    }

    /// Keeps the turn: the asker's own words and the answer, after success.
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

/// An edited message that somebody's turn may be made of.
fn may_be_stored(message: &Message) -> bool {
    message.edited.is_some() && message.is_human() && !message.withheld
}
