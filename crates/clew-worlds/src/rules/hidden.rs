//! What was said in a channel is not shown to who may not see it.

use std::collections::{BTreeMap, BTreeSet};

use clew_simulator::Id;

use super::{Verdict, verdict};
use crate::evidence::Evidence;
use crate::history::{Mark, Said, What, marks};

/// How long a request that was judged is made, in milliseconds: facts are read again meanwhile.
const JUDGED: i64 = 100;
/// How long before its end a process of a cluster, which may not reach the database any more, still notes
/// what it is told, in milliseconds: its lease lasts so long.
const KEPT_FOR_NEXT: i64 = 15_000;

/// Who sees which channel, and what the bot was told of it.
#[derive(Default)]
struct Sight {
    everyone: BTreeSet<Id>,
    /// Who reads a channel, and since when.
    readers: BTreeMap<Id, BTreeMap<Id, i64>>,
    /// Since when somebody has not seen a channel.
    unseen: BTreeMap<(Id, Id), i64>,
    /// Since when the bot knows of a channel, and if it is hidden, from whom it is not.
    told_of: BTreeMap<Id, (i64, Option<Vec<Id>>)>,
    /// When roles changed there.
    roles_at: BTreeMap<Id, i64>,
}

impl Sight {
    fn note(&mut self, at: i64, what: &What) {
        match what {
            What::Seen {
                channel,
                by,
                by_role,
            } => {
                self.roles_at.extend(by_role.then_some((*channel, at)));
                self.everyone.extend(by);
                let before = self.readers.remove(channel).unwrap_or_default();
                let since = |person| before.get(person).copied().unwrap_or(at);
                let now = by.iter().map(|person| (*person, since(person)));
                self.readers.insert(*channel, now.collect());
                for person in &self.everyone {
                    if by.contains(person) {
                        self.unseen.remove(&(*channel, *person));
                    } else {
                        self.unseen.entry((*channel, *person)).or_insert(at);
                    }
                }
            }
            What::ToldOfChannel {
                channel,
                hidden_but,
            } => drop(self.told_of.insert(*channel, (at, hidden_but.clone()))),
            // The next one is told again.
            What::Ended { .. } | What::Killed { .. } => {
                self.told_of
                    .retain(|_, (told, _)| *told + KEPT_FOR_NEXT < at);
            }
            _ => {}
        }
    }

    /// Who reads along where this was asked since before it was, and its asker, who may not see the answer
    /// either by now.
    fn readers(&self, asker: &Said, asked: Option<&i64>) -> Vec<Id> {
        let sees = |person| !self.unseen.contains_key(&(asker.channel, person));
        let readers = self.readers.get(&asker.channel).into_iter().flatten();
        let readers = readers.filter(|(_, since)| Some(*since) < asked);
        readers
            .map(|(person, _)| *person)
            .chain(Some(asker.author).filter(|asker| sees(*asker)))
            .collect()
    }

    /// One of the readers who may not see where something was said, and could not when it was
    /// asked for, or when the bot was told so.
    fn uninvited(&self, said: &Said, readers: &[Id], asked: Option<&i64>, at: i64) -> Option<Id> {
        let roles_stay = self.roles_at.get(&said.channel) < asked;
        let told = self.told_of.get(&said.channel);
        let told = told.filter(|(told, _)| roles_stay && told + JUDGED < at);
        let told = told.and_then(|(at, but)| Some((at, but.as_ref()?)));
        let is_uninvited = |person: &&Id| {
            let told = told.filter(|(_, but)| !but.contains(person));
            let known = asked.max(told.map(|(at, _)| at));
            let since = self.unseen.get(&(said.channel, **person));
            since.zip(known).is_some_and(|(since, known)| since < known)
        };
        readers.iter().find(is_uninvited).copied()
    }
}

/// What was said where somebody may not read who reads the answer is not shown, if they could not when it
/// was asked for, or when a process was told that the channel is hidden.
pub(crate) fn hidden_is_not_shown(evidence: &Evidence) -> Verdict {
    let (texts, asked_at) = (evidence.texts(), evidence.asked_at());
    // Who wrote what, also by an edit, and what an app has posted in their place since.
    let mut wrote: BTreeSet<(Mark, Id)> = BTreeSet::new();
    let mut authors: BTreeMap<Id, Id> = BTreeMap::new();
    for happened in &evidence.history {
        match &happened.what {
            What::Said(said) => {
                authors.insert(said.message, said.author);
                wrote.insert((said.mark, said.author));
            }
            What::Edited { message, is, .. } => {
                wrote.extend(authors.get(message).map(|author| (*is, *author)));
            }
            _ => {}
        }
    }
    let mut sight = Sight::default();
    let mut callers: BTreeMap<Id, (Id, i64)> = BTreeMap::new();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        sight.note(happened.at, &happened.what);
        let (shows, who, channel, readers, asked) = match &happened.what {
            What::Called {
                interaction, user, ..
            } => {
                callers.insert(*interaction, (*user, happened.at));
                continue;
            }
            What::CallAnswered { interaction, text } => {
                let Some((user, called)) = callers.get(interaction) else {
                    continue;
                };
                // Whoever called it may have written it.
                (marks(text), vec![*user], None, vec![*user], Some(called))
            }
            What::Prompted(prompted) => {
                let Some(question) = prompted.question else {
                    continue;
                };
                let Some(asker) = texts.get(&question) else {
                    continue;
                };
                let askers = wrote.iter().filter(|(of, _)| *of == question);
                let askers = askers.map(|(_, asker)| *asker).collect();
                let asked = asked_at.get(&question);
                let readers = sight.readers(asker, asked);
                (
                    prompted.shows.clone(),
                    askers,
                    Some(asker.channel),
                    readers,
                    asked,
                )
            }
            _ => continue,
        };
        for mark in &shows {
            let Some(said) = texts.get(mark) else {
                continue;
            };
            // Her own words are hers wherever she asks; what was said where the answer goes is
            // for those who read that.
            let is_by = |asker: &Id| said.author == *asker || wrote.contains(&(*mark, *asker));
            if who.iter().any(is_by) || Some(said.channel) == channel {
                continue;
            }
            judged += 1;
            if let Some(reader) = sight.uninvited(said, &readers, asked, happened.at) {
                found.get_or_insert(format!(
                    "{} ms: {mark} is shown, whose channel {reader} may not see: {:?}",
                    happened.at, happened.what
                ));
            }
        }
    }
    verdict(judged, found)
}
