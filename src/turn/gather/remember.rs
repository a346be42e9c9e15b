//! Picks the agent that answers and reads what it knows from before.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::names::{TurnNames, access_to};
use super::recheck::Judged;
use super::words;
use crate::engine::sources::{Inherited, elsewhere, place_of, retain_readable};
use crate::memory::{Memory, PromptFacts, Words};
use crate::model::{Agent, BuiltIn};
use crate::runs::RunSlot;
use crate::tools;
use crate::turn::background::Background;
use crate::turn::{Elsewhere, Services, Turn};
use clew_context::engine::render::Directory;
use clew_context::engine::status::{RunningTurn, status};
use clew_context::engine::turn::Collected;
use clew_context::model::{ChannelId, ChannelKind, ContentSource, TurnId};
use clew_store::model::StoredMessage;

/// How many results of earlier turns that match the question a prompt names, a line each.
const MAX_OFFERS: usize = 8;

impl Background {
    /// Leaves out what was said before and may not be shown any more, whole turns. Returns
    /// whether there was any, or a fact.
    pub(super) fn leave_out_changed(
        &mut self,
        turn: &Turn<'_>,
        since: &Judged,
        now: &Judged,
    ) -> bool {
        let memory = &turn.services.memory;
        let before = (self.rows.len(), self.shown_facts.stated.len());
        let opted_out = &now.opted_out;
        let asker = turn.job.request.asker();
        if opted_out.contains(asker) || memory.noted().is_gone(&self.place, turn.job.asked) {
            self.rows.clear();
            self.facts = None;
            self.shown_facts = PromptFacts::default();
        }
        let noted = memory.noted().after(self.noted);
        self.shown_facts.stated.retain(|(by, source)| {
            let is_changed = source.as_ref().is_some_and(|one| noted.changed(one));
            !is_changed && !opted_out.contains(*by)
        });
        self.leave_out_turns(|row| {
            let mut authors = row.sources.iter().filter_map(|source| source.author);
            opted_out.contains(row.owner)
                || authors.any(|author| opted_out.contains(author))
                || noted.changed_row(row, &Words::new())
        });
        drop(noted);
        self.noted = now.noted;
        if since.rights != now.rights {
            leave_out_unreadable(&mut self.rows, turn);
        }
        (self.rows.len(), self.shown_facts.stated.len()) != before
    }

    /// Leaves the rows that everybody who will read the answer may read, and what they were
    /// made from.
    /// Makes what follows from the rows and from what was collected, also anew.
    pub(super) async fn complete(&mut self, turn: &Turn<'_>, collected: &Collected) {
        self.inherited = Inherited::new(self.place.channel);
        self.inherited.take_rows(&mut self.rows);
        if turn.proxy().is_none() {
            self.status = status_elsewhere(turn, &self.agent);
        }
        // An agent run starts clean: what it needs it asks for.
        if turn.job.run.is_none() {
            add_profiles(turn, self, collected).await;
            add_offers(turn, self).await;
        }
    }
}

/// The agent that answers here and what was said before; none if no agent answers
/// here.
pub(super) async fn remembered(
    turn: &Turn<'_>,
    kind: Option<ChannelKind>,
    parent: Option<ChannelId>,
) -> Option<Background> {
    let Services { agents, memory, .. } = turn.services;
    agents.refresh(turn.started).await;
    let request = &turn.job.request;
    let channel = request.trigger.channel;
    let run = turn.job.run.as_ref().map(RunSlot::run);
    let agent = match run {
        Some(run) => Arc::clone(&run.agent),
        None => agents.pick(channel, parent)?,
    };
    let is_thread = kind.is_some_and(ChannelKind::is_thread);
    let place = memory.place(&agent, turn.ids.guild, channel, is_thread, request.asker());
    if run.is_some() || turn.proxy().is_some() {
        return Some(Background::new(agent, place));
    }
    let question = words::question(turn);
    let noted = memory.noted().stored_revision();
    let said = async {
        let turn_id = request.turn();
        let earlier = memory.earlier(&turn.ids, &place, turn_id, &question).await;
        let best: Vec<TurnId> = earlier.recalled.iter().map(|rows| rows[0].turn).collect();
        let mut rows = earlier.recalled.concat();
        rows.sort_by_key(|row| row.ordinal);
        rows.extend(earlier.history);
        (rows, best)
    };
    // Boxed to keep the future of a turn small.
    let remembered = Box::pin(async { tokio::join!(said, memory.read_facts(&turn.ids, &place)) });
    let ((mut rows, best), facts) = remembered.await;
    // Everybody who will read the answer must still be able to read them, and what they were
    // made from.
    leave_out_unreadable(&mut rows, turn);
    let is_left = |turn: &&TurnId| rows.iter().any(|row| row.turn == **turn);
    let left = best.iter().filter(is_left);
    let recalled: BTreeSet<TurnId> = left.take(memory.settings().recall).copied().collect();
    rows.retain(|row| recalled.contains(&row.turn) || !best.contains(&row.turn));
    Some(Background {
        facts: Some(facts),
        rows,
        noted,
        recalled,
        ..Background::new(agent, place)
    })
}

/// Leaves out rows from where not everybody who reads the answer may read.
fn leave_out_unreadable(rows: &mut Vec<StoredMessage>, turn: &Turn<'_>) {
    retain_readable(
        rows,
        |row| place_of(row, turn.ids.guild),
        |row| &row.sources,
        |channel| turn.readers(channel),
    );
}

/// Adds the facts that match what was asked and collected.
async fn add_profiles(turn: &Turn<'_>, background: &mut Background, collected: &Collected) {
    let Some(facts) = background.facts else {
        return;
    };
    let (question, around) = (words::question(turn), words::around(collected));
    let words = (question.as_str(), around.as_str());
    let memory = &turn.services.memory;
    let place = &background.place;
    background.shown_facts = memory.profiles(&turn.ids, place, facts, words).await;
}

/// Names the results of tools that match what was asked, if the agent can read them and
/// everybody who reads the answer may. An agent run starts without any, and so does who
/// asks through an app.
async fn add_offers(turn: &Turn<'_>, background: &mut Background) {
    let offered = tools::offered(&background.agent, turn.services.settings.tools.search);
    let can_read = offered
        .iter()
        .any(|tool| tool.name.built_in() == Some(BuiltIn::ReadOutput));
    background.offers.clear();
    let owns_none = turn.proxy().is_some() || background.facts.is_none();
    if owns_none || !turn.services.settings.tools.is_on() || !can_read {
        return;
    }
    let memory = &turn.services.memory;
    let mut pointers = memory.outputs_of(&turn.ids, &background.place).await;
    let readers = |channel| turn.readers(channel);
    retain_readable(&mut pointers, |_| None, |pointer| &pointer.sources, readers);
    let words = turn.services.own_words(turn.ids.guild, turn.trigger());
    let mut chosen = Memory::offers(&words, &pointers, MAX_OFFERS);
    let (here, inherited) = (background.place.channel, &mut background.inherited);
    chosen.retain(|pointer| {
        let sources = elsewhere(pointer.sources.iter().copied(), here);
        inherited.take(sources.map(ContentSource::without_message))
    });
    background.offers = chosen.into_iter().map(tools::line).collect();
}

/// The agent's other turns in this server, in channels that the asker may read.
fn status_elsewhere(turn: &Turn<'_>, agent: &Agent) -> String {
    let services = turn.services;
    let is_ours = |other: &Elsewhere| {
        if let Some(run) = &other.run {
            return run.agent.name == agent.name;
        }
        let known = services.guild_state.kind_and_parent(other.channel);
        let parent = known.and_then(|(_, parent)| parent);
        let picked = services.agents.pick(other.channel, parent);
        picked.is_some_and(|other| other.name == agent.name)
    };
    let names = TurnNames::new(turn, None);
    let elsewhere = turn.job.elsewhere.iter();
    let turns: Vec<RunningTurn> = elsewhere
        .filter(|other| is_ours(other) && access_to(turn, other.channel).may_read())
        .filter_map(|other| {
            Some(RunningTurn {
                channel: names.channel(other.channel)?,
                asker: None,
                since: other.since,
                is_run: other.run.is_some(),
                tools: other.tools.iter().map(ToString::to_string).collect(),
            })
        })
        .collect();
    status(&turns)
}
