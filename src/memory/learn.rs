//! Learning facts about the asker from their messages: the model names facts, the
//! rules of [`crate::engine::learn`] judge them. Facts about a server are never
//! learnt: only those who manage it may set them.

mod json;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Memory, Place, facts::new_id};
use crate::engine::learn::{self, Judged};
use crate::llm;
use crate::telemetry::event::{Learnt, StoreOperation};
use crate::telemetry::{Ids, with_sources};
use clew_context::model::{ChatMessage, MessageId, Role, UnixMillis};
use clew_store::model::{Fact, Origin, Subject};

/// How many lessons may wait while one is learnt; further ones are dropped, since
/// answers come first and people repeat what lasts.
const MAX_WAITING: usize = 8;

/// What a turn leaves to learn from.
#[derive(Debug, Clone)]
pub struct Lesson {
    /// The turn's ids.
    pub ids: Ids,
    /// Where it was said, and by whom.
    pub place: Place,
    /// The asker's name there.
    pub asker: String,
    /// The asker's own words of this turn alone, as
    /// [`own`](crate::engine::learn::own) gives them.
    pub words: String,
    /// The names of others who are mentioned or speak in the conversation: facts
    /// that name them are refused.
    pub others: Vec<String>,
    /// The message that it is learnt from; none if the trigger is not a message,
    /// as with a command.
    pub message: Option<MessageId>,
    /// When the turn began, by our clock.
    pub asked: UnixMillis,
}

/// Learns one lesson at a time.
#[derive(Debug)]
pub(super) struct Lessons {
    turn: Semaphore,
    waiting: AtomicUsize,
    purges: AtomicU64,
}

impl Default for Lessons {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            purges: AtomicU64::new(0),
        }
    }
}

impl Lessons {
    /// Waits for the lessons before; none if too many are waiting.
    async fn begin(&self) -> Option<SemaphorePermit<'_>> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return None;
        }
        let permit = self.turn.acquire().await;
        drop(waiting);
        permit.ok()
    }

    /// A lesson under way may hold what a purge was to remove: it is discarded.
    pub(super) fn purged(&self) {
        self.purges.fetch_add(1, Ordering::SeqCst);
    }

    fn purges(&self) -> u64 {
        self.purges.load(Ordering::SeqCst)
    }
}

/// Counts a lesson as waiting until dropped, even if it stops waiting early.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Memory {
    /// Asks the model for facts about the asker and keeps those that may be kept;
    /// they are written with the next save. Returns the new ones. Nothing is learnt
    /// where learning is switched off, about users who opted out, or if the model
    /// or the store fails.
    pub async fn learn(&self, model: &llm::Client, lesson: Lesson) -> Vec<Fact> {
        if !self.may_learn(&lesson) {
            return Vec::new();
        }
        let Some(_alone) = self.lessons.begin().await else {
            tracing::debug!("too many lessons wait: one is dropped");
            return Vec::new();
        };
        let purges = self.lessons.purges();
        let wanted = || self.may_learn(&lesson) && self.lessons.purges() == purges;
        if !wanted() {
            return Vec::new();
        }
        match self.study(model, &lesson, wanted).await {
            Ok(new) => new,
            Err(error) => {
                self.failed(&lesson.ids, StoreOperation::Learn, &error);
                Vec::new()
            }
        }
    }

    fn may_learn(&self, lesson: &Lesson) -> bool {
        let place = &lesson.place;
        self.learns(place.guild)
            && self.settings.max_user_facts > 0
            && !self.opted_out(place.asker)
            && self.mends.deleted_of(lesson.message).is_empty()
            && !self.mends.is_gone(place, lesson.asked)
    }

    async fn study(
        &self,
        model: &llm::Client,
        lesson: &Lesson,
        wanted: impl Fn() -> bool,
    ) -> Result<Vec<Fact>, clew_store::Error> {
        let known = self.known(lesson).await?;
        let Some(judged) = ask(model, lesson, &known).await else {
            return Ok(Vec::new());
        };
        let Judged { kept, refused } = judged;
        let facts = kept.into_iter().map(|text| self.fact(lesson, text));
        let new = self.learnt_while(facts.collect(), wanted).await?;
        let learnt = Learnt {
            facts: new.len(),
            refused,
        };
        self.telemetry.emit(&lesson.ids, learnt);
        Ok(new)
    }

    /// What is known already and may be used there, so that facts from elsewhere
    /// do not get in reworded.
    async fn known(&self, lesson: &Lesson) -> Result<Vec<String>, clew_store::Error> {
        let facts = self.facts_of(Subject::User(lesson.place.asker)).await?;
        let serving = facts
            .into_iter()
            .filter(|fact| fact.origin.serves(lesson.place.guild));
        Ok(serving.map(|fact| fact.text).collect())
    }

    fn fact(&self, lesson: &Lesson, text: String) -> Fact {
        let Place {
            guild,
            channel,
            asker,
            ..
        } = lesson.place;
        let now = self.now();
        Fact {
            id: new_id(),
            subject: Subject::User(asker),
            text,
            origin: guild.map_or(Origin::Direct, Origin::Guild),
            by: asker,
            at: now,
            link: lesson.message.map(|message| (channel, message)),
            pinned: false,
            seen: 1,
            last_used: now,
        }
    }
}

/// The facts that the model names, judged; none if it gave no answer. An answer in
/// another format counts as one refused fact.
async fn ask(model: &llm::Client, lesson: &Lesson, known: &[String]) -> Option<Judged> {
    let data = json::question(&lesson.asker, known, &lesson.words)?;
    let prompt = [
        ChatMessage::new(Role::System, learn::PROMPT),
        ChatMessage::new(Role::User, data),
    ];
    let answer = match model.complete(&prompt).await {
        Ok(answer) => answer,
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
        |texts| learn::judge(&texts, &lesson.others),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_than_a_few_wait() {
        use std::future::poll_fn;
        use std::task::Poll;

        let lessons = Lessons::default();
        let first = lessons.begin().await;
        let mut waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| Box::pin(lessons.begin()))
            .collect();
        poll_fn(|context| {
            for one in &mut waiting {
                assert!(one.as_mut().poll(context).is_pending());
            }
            Poll::Ready(())
        })
        .await;
        assert!(lessons.begin().await.is_none(), "one too many");
        // A lesson that stops waiting makes room.
        waiting.pop();
        let mut next = Box::pin(lessons.begin());
        poll_fn(|context| {
            assert!(next.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        drop((first, waiting));
        assert!(next.await.is_some());
    }
}
