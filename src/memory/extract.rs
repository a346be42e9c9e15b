//! Extracting facts about the asker from their messages: the model names facts, the
//! rules of [`crate::engine::extract`] judge them. Facts about a server are never
//! learnt: only those who manage it may set them.

mod json;

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Memory, Place, Result, facts::new_id};
use crate::engine::extract::{self, Judged};
use crate::llm;
use crate::telemetry::event::{Learnt, StoreOperation};
use crate::telemetry::{Ids, with_sources};
use clew_context::model::{ChatMessage, MessageId, Role, UnixMillis};
use clew_store::model::{Fact, Origin, Subject};
use clew_store::outputs::Keywords;

/// How many extractions may wait while one runs; further ones are dropped, since
/// answers come first and people repeat what lasts.
const MAX_WAITING: usize = 8;

/// What facts are extracted from after a turn.
#[derive(Debug, Clone)]
pub struct ExtractionInput {
    pub ids: Ids,
    /// Where it was said, and by whom.
    pub place: Place,
    /// The asker's name there.
    pub asker: String,
    /// The asker's own words of this turn alone, as
    /// [`own`](crate::engine::extract::own) gives them.
    pub words: String,
    /// The names of others who are mentioned or speak in the conversation: facts
    /// that name them are refused.
    pub others: Vec<String>,
    /// The message that it is learnt from; none if the trigger is not a message,
    /// as with a command.
    pub message: Option<MessageId>,
    /// When the turn began, by our clock.
    pub asked: UnixMillis,
    /// When the message got the words that it has, by Discord's clock.
    pub worded: UnixMillis,
}

/// What came of a fact that was to be noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteOutcome {
    /// It is new.
    Noted,
    Known,
    /// The rules refuse it, or it has no word in common with what the asker wrote.
    Refused,
    /// There is no room beside the facts that the asker set.
    Full,
    /// Nothing may be noted about the asker there.
    Off,
}

/// Lets one extraction run at a time.
#[derive(Debug)]
pub(super) struct Extractions {
    turn: Semaphore,
    waiting: Semaphore,
    /// An extraction under way may hold what was to be purged or forgotten: it is discarded.
    purges: AtomicU64,
}

impl Default for Extractions {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            waiting: Semaphore::new(MAX_WAITING),
            purges: AtomicU64::new(0),
        }
    }
}

impl Extractions {
    /// Waits for the extractions before; none if too many are waiting.
    async fn begin(&self) -> Option<SemaphorePermit<'_>> {
        let waiting = self.waiting.try_acquire().ok()?;
        let permit = self.turn.acquire().await;
        drop(waiting);
        permit.ok()
    }

    /// Discards what is being learnt.
    pub(super) fn discard(&self) {
        self.purges.fetch_add(1, Ordering::SeqCst);
    }

    fn purges(&self) -> u64 {
        self.purges.load(Ordering::SeqCst)
    }
}

impl Memory {
    /// Asks the model for facts about the asker and keeps those that may be kept;
    /// they are written with the next save. Returns the new ones. Nothing is learnt
    /// where learning is switched off, about users who opted out, or if the model
    /// or the store fails.
    pub async fn extract_facts(
        &self,
        model: &llm::ModelServers,
        extraction: ExtractionInput,
    ) -> Vec<Fact> {
        if !self.may_extract(&extraction) {
            return Vec::new();
        }
        let purges = self.extractions.purges();
        let Some(_alone) = self.extractions.begin().await else {
            tracing::debug!("too many extractions wait: one is dropped");
            return Vec::new();
        };
        let wanted = || self.may_extract(&extraction) && self.extractions.purges() == purges;
        if !wanted() {
            return Vec::new();
        }
        match self.extract(model, &extraction, wanted).await {
            Ok(new) => new,
            Err(error) => {
                self.failed(&extraction.ids, StoreOperation::Learn, &error);
                Vec::new()
            }
        }
    }

    /// Keeps a fact about the asker that the model names because the asker wants it
    /// remembered: it must share a word with what the asker wrote, and the rules for
    /// learnt facts hold. It is dropped with the message that it was said in.
    ///
    /// # Errors
    /// The store's error.
    pub async fn note(&self, said: &ExtractionInput, text: &str) -> Result<NoteOutcome> {
        let of_guild = said.place.guild.map(|guild| self.guild_settings(guild));
        let is_off = of_guild.is_some_and(|settings| settings.learning == Some(false));
        if is_off || !self.may_note(said) {
            return Ok(NoteOutcome::Off);
        }
        let judged = extract::judge(&[text.to_owned()], &said.others);
        let Some(text) = judged.kept.into_iter().next() else {
            return Ok(NoteOutcome::Refused);
        };
        if Keywords::of(&said.words).shared_with(&text) == 0 {
            return Ok(NoteOutcome::Refused);
        }
        let subject = Subject::User(said.place.asker);
        let is_full = self.is_full(subject, &self.facts_of(subject).await?);
        let purges = self.extractions.purges();
        let wanted = || self.may_note(said) && self.extractions.purges() == purges;
        let new = self
            .learnt_while(vec![self.fact(said, text)], wanted)
            .await?;
        self.flush().await;
        Ok(match (new.is_empty(), is_full) {
            (false, _) => NoteOutcome::Noted,
            (true, false) => NoteOutcome::Known,
            (true, true) => NoteOutcome::Full,
        })
    }

    /// Forgets the asker's facts that hold these words and may be used there, if they
    /// share a word with what the asker wrote. Returns how many went.
    ///
    /// # Errors
    /// The store's error; what was forgotten before it stays forgotten.
    pub async fn unnote(&self, said: &ExtractionInput, text: &str) -> Result<usize> {
        let subject = Subject::User(said.place.asker);
        let (wanted, words) = (text.trim().to_lowercase(), Keywords::of(&said.words));
        let mut gone = 0;
        for fact in self.facts_of(subject).await? {
            let is_meant = !wanted.is_empty()
                && fact.text.to_lowercase().contains(&wanted)
                && fact.origin.serves(said.place.guild)
                && words.shared_with(&fact.text) > 0;
            if is_meant && self.forget(subject, fact.id).await?.is_some() {
                gone += 1;
            }
        }
        Ok(gone)
    }

    fn may_extract(&self, extraction: &ExtractionInput) -> bool {
        self.learns(extraction.place.guild) && self.may_note(extraction)
    }

    fn may_note(&self, extraction: &ExtractionInput) -> bool {
        let (place, noted) = (&extraction.place, &self.changes.noted);
        let message = extraction.message.map(|id| (place.channel, id));
        let is_withdrawn = |key| noted.is_withdrawn(key, extraction.worded);
        self.settings.max_user_facts > 0
            && !self.opted_out(place.asker)
            && !message.is_some_and(is_withdrawn)
            && !noted.is_gone(place, extraction.asked)
    }

    async fn extract(
        &self,
        model: &llm::ModelServers,
        extraction: &ExtractionInput,
        wanted: impl Fn() -> bool,
    ) -> Result<Vec<Fact>> {
        let _noted = self.changes.noted.begins(None);
        let known = self.known(extraction).await?;
        let stand = || wanted() && !known.iter().any(|fact| self.is_doubtful(fact));
        let Some(judged) = ask(model, extraction, &known, stand).await else {
            return Ok(Vec::new());
        };
        let Judged { kept, refused } = judged;
        let facts = kept.into_iter().map(|text| self.fact(extraction, text));
        let new = self.learnt_while(facts.collect(), wanted).await?;
        let learnt = Learnt {
            facts: new.len(),
            refused,
        };
        self.telemetry.emit(&extraction.ids, learnt);
        Ok(new)
    }

    /// What is known already and may be used there, so that facts from elsewhere
    /// do not get in reworded.
    async fn known(&self, extraction: &ExtractionInput) -> Result<Vec<Fact>> {
        let mut facts = self.facts_of(Subject::User(extraction.place.asker)).await?;
        let serves = |fact: &Fact| fact.origin.serves(extraction.place.guild);
        facts.retain(|fact| serves(fact) && !self.is_doubtful(fact));
        Ok(facts)
    }

    fn fact(&self, extraction: &ExtractionInput, text: String) -> Fact {
        let Place {
            guild,
            channel,
            asker,
            ..
        } = extraction.place;
        let now = self.now();
        // Edits have Discord's time: one that came after the words withdraws the fact, however
        // far ahead our clock is.
        let at = extraction.worded.min(now);
        Fact {
            id: new_id(),
            subject: Subject::User(asker),
            text,
            origin: guild.map_or(Origin::Direct, Origin::Guild),
            by: asker,
            at,
            link: extraction.message.map(|message| (channel, message)),
            pinned: false,
            seen: 1,
            last_used: now,
        }
    }
}

/// The facts that the model names, judged; none if it gave no answer. An answer in
/// another format counts as one refused fact.
async fn ask(
    model: &llm::ModelServers,
    extraction: &ExtractionInput,
    known: &[Fact],
    wanted: impl Fn() -> bool,
) -> Option<Judged> {
    let known = known.iter().map(|fact| &*fact.text).collect();
    let data = json::question(&extraction.asker, known, &extraction.words)?;
    let prompt = [
        ChatMessage::new(Role::System, extract::PROMPT),
        ChatMessage::new(Role::User, data),
    ];
    let answer = match model.complete(&prompt, wanted).await {
        Ok(answer) => answer?,
        Err(error) => {
            tracing::info!(error = %with_sources(&error), "nothing was learnt from a turn");
            return None;
        }
    };
    let texts = json::texts(&answer.text).filter(|_| !answer.end.refused);
    Some(texts.map_or_else(
        || Judged {
            kept: Vec::new(),
            refused: 1,
        },
        |texts| extract::judge(&texts, &extraction.others),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{ADA, GUILD, HERE, place, scene};
    use clew_discord::session::Missed;

    /// Whatever our clock says, a later edit withdraws it.
    #[tokio::test]
    async fn a_fact_is_as_old_as_the_words_that_it_was_learnt_from() {
        let s = scene().await;
        let worded = |worded| {
            let said = ExtractionInput {
                ids: Ids::default(),
                place: place(GUILD, HERE, ADA),
                asker: "Ada".to_owned(),
                words: "figs".to_owned(),
                others: Vec::new(),
                message: Some(MessageId::new(10)),
                asked: s.memory.now(),
                worded,
            };
            s.memory.fact(&said, "likes figs".to_owned()).at
        };
        let now = s.memory.now();
        assert_eq!(worded(UnixMillis(now.0 - 60_000)).0, now.0 - 60_000);
        assert_eq!(worded(UnixMillis(now.0 + 60_000)), now);
    }

    /// The model that learns is told no more than a prompt tells.
    #[tokio::test]
    async fn a_fact_from_before_a_gap_is_not_known_before_it_is_confirmed() {
        let s = scene().await;
        let said = |message| ExtractionInput {
            ids: Ids::default(),
            place: place(GUILD, HERE, ADA),
            asker: "Ada".to_owned(),
            words: "figs".to_owned(),
            others: Vec::new(),
            message,
            asked: s.memory.now(),
            worded: s.memory.now(),
        };
        let message = MessageId::new(10);
        let fact = |message, text: &str| s.memory.fact(&said(message), text.to_owned());
        let facts = [fact(Some(message), "likes figs"), fact(None, "likes plums")];
        s.memory.stores.lasting.put_facts(&facts).await.unwrap();
        let known = async || {
            let known = s.memory.known(&said(None)).await.unwrap();
            let mut known: Vec<_> = known.into_iter().map(|fact| fact.text).collect();
            known.sort();
            known
        };
        assert_eq!(known().await, ["likes figs", "likes plums"]);
        s.pass(1_000);
        s.memory.missed(Missed::Everything);
        assert_eq!(known().await, ["likes plums"]);
        s.memory.doubts.settle(HERE, [message], s.memory.now());
        assert_eq!(known().await, ["likes figs", "likes plums"]);
    }

    #[tokio::test]
    async fn no_more_than_a_few_wait() {
        use std::future::poll_fn;
        use std::task::Poll;

        let extractions = Extractions::default();
        let first = extractions.begin().await;
        let mut waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| Box::pin(extractions.begin()))
            .collect();
        poll_fn(|context| {
            for one in &mut waiting {
                assert!(one.as_mut().poll(context).is_pending());
            }
            Poll::Ready(())
        })
        .await;
        assert!(extractions.begin().await.is_none(), "one too many");
        // An extraction that stops waiting makes room.
        waiting.pop();
        let mut next = Box::pin(extractions.begin());
        poll_fn(|context| {
            assert!(next.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        drop((first, waiting));
        assert!(next.await.is_some());
    }
}
