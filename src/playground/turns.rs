//! The turns that the page can ask for: the newest, with all that was told of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use super::context::{self, millis};
use crate::model::ModelReceipt;
use crate::telemetry::{TappedLine, TurnStage};
use crate::turn::TurnOver;
use crate::turn::{GatheredTurn, SentMessage, TurnNews};
use clew_context::model::{ChannelId, HistoryMessage, MessageId, UserId};

/// How many turns are kept.
const MOST_TURNS: usize = 200;
/// How much of prompts, blocks and telemetry is kept of all turns together, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// How many lines of telemetry are kept of one turn.
const MOST_LINES: usize = 300;
/// How long somebody who asks for a turn waits until its context is collected.
const COLLECTING: Duration = Duration::from_secs(8);

/// The newest turns.
#[derive(Debug, Default)]
pub(super) struct KeptTurns {
    turns: Mutex<BTreeMap<MessageId, KeptTurn>>,
    changed: watch::Sender<()>,
}

/// What is known of a turn.
#[derive(Debug)]
struct KeptTurn {
    channel: ChannelId,
    asker: UserId,
    gathered: Option<Arc<GatheredTurn>>,
    /// What the model was asked last.
    asked: Option<Vec<SentMessage>>,
    answers: Vec<MessageId>,
    ended: Option<TurnOver>,
    lines: Vec<String>,
}

impl KeptTurns {
    /// Notes the news of a turn. Returns its summary if the pages are to know.
    pub(super) fn take_news(&self, trigger: MessageId, news: TurnNews) -> Option<Value> {
        let mut turns = self.turns.lock();
        if let TurnNews::Started { channel, asker } = news {
            let new = KeptTurn {
                channel,
                asker,
                gathered: None,
                asked: None,
                answers: Vec::new(),
                ended: None,
                lines: Vec::new(),
            };
            turns.insert(trigger, new);
        } else {
            turns.get_mut(&trigger)?.take(news);
        }
        make_room(&mut turns);
        let summary = turns.get(&trigger).map(|turn| turn.summary(trigger));
        drop(turns);
        self.changed.send_replace(());
        summary
    }

    /// Notes a line of telemetry. Lines of turns that are not kept are left out.
    pub(super) fn take_line(&self, line: TappedLine) {
        let mut turns = self.turns.lock();
        let turn = line.message.and_then(|trigger| turns.get_mut(&trigger));
        if let Some(turn) = turn.filter(|turn| turn.lines.len() < MOST_LINES) {
            turn.lines.push(line.line);
        }
    }

    /// The summaries of all turns, oldest first.
    pub(super) fn summaries(&self) -> Vec<Value> {
        let turns = self.turns.lock();
        let all = turns.iter().map(|(trigger, turn)| turn.summary(*trigger));
        all.collect()
    }

    /// All that is known of a turn, once its context is collected.
    pub(super) async fn turn(&self, trigger: MessageId) -> Option<Value> {
        let mut changes = self.changed.subscribe();
        let collected =
            async { while self.is_collecting(trigger) && changes.changed().await.is_ok() {} };
        // If it takes longer, what is there is shown.
        let _ = timeout(COLLECTING, collected).await;
        let turns = self.turns.lock();
        turns.get(&trigger).map(|turn| turn.whole(trigger))
    }

    /// What a turn gathered, to collect it again.
    pub(super) fn gathered(&self, trigger: MessageId) -> Option<Arc<GatheredTurn>> {
        self.turns.lock().get(&trigger)?.gathered.clone()
    }

    fn is_collecting(&self, trigger: MessageId) -> bool {
        let turns = self.turns.lock();
        let turn = turns.get(&trigger);
        turn.is_some_and(|turn| turn.gathered.is_none() && turn.ended.is_none())
    }
}

/// Drops the oldest turns while there are too many, or too much of them.
fn make_room(turns: &mut BTreeMap<MessageId, KeptTurn>) {
    let mut bytes: usize = turns.values().map(KeptTurn::bytes).sum();
    while turns.len() > 1 && (turns.len() > MOST_TURNS || bytes > MOST_BYTES) {
        if let Some((_, oldest)) = turns.pop_first() {
            bytes -= oldest.bytes();
        }
    }
}

impl KeptTurn {
    fn take(&mut self, news: TurnNews) {
        match news {
            TurnNews::Started { .. } => {}
            TurnNews::Gathered(gathered) => {
                // Once more after an edit: what was posted was taken back.
                self.answers.clear();
                self.asked = None;
                self.gathered = Some(Arc::from(gathered));
            }
            TurnNews::Asks(messages) => self.asked = Some(messages),
            TurnNews::Posted(message) => self.answers.push(message),
            TurnNews::Over(ended) => self.ended = Some(ended),
        }
    }

    /// An estimate of what it takes.
    fn bytes(&self) -> usize {
        let texts = |messages: &[SentMessage]| -> usize {
            messages.iter().map(|message| message.content.len()).sum()
        };
        let gathered = self.gathered.as_ref().map_or(0, |gathered| {
            let shown = gathered.context.framed.len();
            // The block has each text once more.
            2 * shown + texts(&gathered.prompt)
        });
        let asked = self.asked.as_ref().map_or(0, |asked| texts(asked));
        let lines: usize = self.lines.iter().map(String::len).sum();
        gathered + asked + lines
    }

    fn summary(&self, trigger: MessageId) -> Value {
        let gathered = self.gathered.as_ref();
        let answers = self.answers.iter().map(ToString::to_string);
        json!({
            "trigger": trigger.to_string(),
            "channel": self.channel.to_string(),
            "asker": self.asker.to_string(),
            "scene": gathered.map(|gathered| gathered.context.scene.as_str()),
            "answers": answers.collect::<Vec<_>>(),
            "outcome": self.ended.as_ref().map(|ended| ended.outcome.as_str()),
        })
    }

    fn whole(&self, trigger: MessageId) -> Value {
        let mut whole = self.summary(trigger);
        let empty = json!({
            "target": null, "title": null, "included": [], "omitted": [], "chars": 0,
            "fetches": [], "fallbacks": [], "block": "", "prompt": [], "history": [],
            "recalled": [],
            "facts": {"user": [], "server": []}, "tokens_estimate": 0,
        });
        put(&mut whole, empty);
        if let Some(gathered) = &self.gathered {
            let mut context = context::shown(&gathered.context, &gathered.calls);
            context["tokens_estimate"] = context["tokens"].take();
            put(&mut whole, context);
            let prompt = self.asked.as_ref().unwrap_or(&gathered.prompt);
            let prompt = prompt.iter();
            let prompt = prompt.map(|one| json!({"role": one.role, "content": one.content}));
            let history = gathered.history.iter().map(stored);
            let recalled = gathered.recalled.iter().map(stored);
            whole["prompt"] = prompt.collect();
            whole["history"] = history.collect();
            whole["recalled"] = recalled.collect();
            whole["facts"] = json!({
                "user": gathered.profiles.user, "server": gathered.profiles.server,
            });
        }
        whole["tokens"] = self.tokens();
        whole["timings"] = self.timings();
        let lines = self.lines.iter();
        let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        whole["telemetry"] = lines.collect();
        whole
    }

    /// What the model counted; null if it does not count.
    fn tokens(&self) -> Value {
        let receipt = self.ended.as_ref().and_then(|ended| ended.receipt.as_ref());
        let model = receipt.and_then(|receipt| receipt.model.as_ref());
        let counted = model.filter(|model| model.prompt_tokens > 0);
        let told = |model: &ModelReceipt| json!({"in": model.prompt_tokens, "out": model.completion_tokens});
        json!(counted.map(told))
    }

    /// How long the stages took, in milliseconds.
    fn timings(&self) -> Value {
        let mut timings = Vec::new();
        let mut add = |stage: TurnStage, of: &str, took: Duration| {
            let text = stage.text().to_owned() + of;
            timings.push(json!({"stage": stage, "text": text, "ms": millis(took)}));
        };
        if let Some(gathered) = &self.gathered {
            add(TurnStage::Queue, "", gathered.queued);
            add(TurnStage::Collect, "", gathered.collected_in);
        }
        if let Some(ended) = &self.ended {
            let receipt = ended.receipt.as_ref();
            for tool in receipt.iter().flat_map(|receipt| &receipt.tools) {
                let name = tool.name.as_deref().unwrap_or("unknown");
                add(TurnStage::Tool, &format!(": {name}"), tool.took);
            }
            let model = receipt.and_then(|receipt| receipt.model.as_ref());
            if let Some(first) = model.and_then(|model| model.first_words) {
                add(TurnStage::ToFirstWords, "", first);
            }
            add(TurnStage::Turn, "", ended.took);
        }
        timings.into()
    }
}

/// Adds the fields of `more`.
fn put(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

fn stored(message: &HistoryMessage) -> Value {
    let role = if message.ours { "assistant" } else { "user" };
    json!({"role": role, "content": message.text})
}
