//! A turn, stage by stage: gather what the prompt is made of, ask the model, deliver
//! the answer, record the turn. Each stage is a file with one entry function, which
//! takes the value of the stage before and returns its own. Afterwards facts may be
//! extracted from the turn.
//!
//! What one trigger needs comes in a [`TurnJob`], what all turns share in [`Services`].
//!
//! Invariant: `turn` starts no task and keeps no state of its own; a turn is one
//! future that listens for orders.

mod answer;
mod ask;
mod background;
mod control;
mod deliver;
mod extract;
mod gather;
mod image_room;
mod left;
mod line;
mod news;
mod observe;
pub mod patience;
mod progress;
mod record;
mod refusals;
mod roles;
mod services;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::model::{Again, Payer, RUN_FETCHES, RUN_ROUNDS, ToolName};
use crate::runs::{Activity, Run, RunSlot};
use crate::telemetry::event::{OrderWord, Outcome, Refusal};
use crate::telemetry::{Ids, TurnStage};
use crate::tools;
use clew_context::model::{
    ChannelId, Fallback, Interaction, Message, MessageId, ProxyId, Readers, TurnRequest, UnixMillis,
};
use clew_discord::guild_state::AnswerPlace;
use clew_discord::session::Unfinished;

pub use control::{Control, Order, Orders, abandon};
pub use extract::{Extraction, extract};
pub use gather::is_for_asker_only;
pub use line::{BLOCKED, INTERRUPTED, refusal};
pub use news::{GatheredTurn, SentMessage, TurnContext, TurnNews, TurnObserver, TurnOver};
pub use observe::{context_of, preview};
pub use progress::{may_pass, progress_nonce, report_broken_off, under_way};
pub use refusals::LastRefusals;
pub use services::{Services, TurnSettings};

use answer::TurnAnswer;
use ask::ask;
pub use ask::report_given_up;
use deliver::{PostedAnswer, deliver};
use gather::{NotedCalls, TurnMaterial, gather};
use record::{TurnReport, record};
use roles::{LatestRoles, answer_place};

/// How often typing is sent. Discord shows it for ten seconds.
const TYPING_EVERY: Duration = Duration::from_secs(8);
/// How long typing notices and reactions may take.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);

/// One trigger whose place in the queue has come up.
#[derive(Debug)]
pub struct TurnJob {
    /// The trigger and why it is one.
    pub request: TurnRequest,
    pub came: Instant,
    /// The same by memory's clock: the turn is stored with this time.
    pub asked: UnixMillis,
    /// The number by then of what memory has noted of deletions and edits.
    pub noted: u64,
    /// The newest message seen in the channel when the turn started: messages that
    /// come in before its task runs are not looked at.
    pub newest: Option<MessageId>,
    /// Whether it had to wait for other turns.
    pub waited: bool,
    /// The triggers of other turns that wait or run, or were refused.
    pub other_triggers: BTreeSet<MessageId>,
    /// Messages that copy another one, which is shown in their place.
    pub copies: Vec<MessageId>,
    /// The turns that run in other channels, and agent runs.
    pub elsewhere: Vec<Elsewhere>,
    /// What an earlier process left of it, if it began.
    pub left: Option<Unfinished>,
    /// The agent run that the turn does, if it does one.
    pub run: Option<RunSlot>,
    /// The answer that it gives anew, if it does.
    pub again: Option<Again>,
    /// What the turn is doing, for others.
    pub activity: Arc<Activity>,
}

/// A turn that runs in another channel, or an agent run.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    pub channel: ChannelId,
    pub since: UnixMillis,
    /// The agent run that it does.
    pub run: Option<Arc<Run>>,
    /// The tools that it is calling.
    pub tools: BTreeSet<ToolName>,
}

/// A turn that is over.
#[derive(Debug)]
pub struct EndedTurn {
    pub outcome: Outcome,
    /// What facts may be extracted from, for [`extract()`]. Boxed: most turns have
    /// nothing.
    pub extraction: Option<Box<Extraction>>,
}

impl From<Outcome> for EndedTurn {
    /// A turn from which nothing is extracted.
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            extraction: None,
        }
    }
}

/// What every stage of a turn may look at.
struct Turn<'a> {
    services: &'a Services,
    /// The trigger as it reads now; the rest of the job stays.
    job: TurnJob,
    /// The asker's roles now; none if those of the trigger count.
    roles: Option<LatestRoles>,
    ids: Ids,
    report: TurnReport<'a>,
    started: Instant,
    /// The same by memory's clock.
    started_at: UnixMillis,
    /// How often it was started over.
    restarts: u32,
    /// Whether an earlier process may have posted something under the same nonce.
    is_sent_again: bool,
    /// The messages of the answer that is given anew, as far as they still show that.
    before: Mutex<VecDeque<MessageId>>,
}

impl<'a> Turn<'a> {
    /// A turn that begins now.
    fn new(services: &'a Services, job: TurnJob) -> Self {
        let (ids, started_at) = (services.ids(&job.request), services.memory.now());
        let run = job.run.as_ref();
        let again = job.again.as_ref();
        let report = TurnReport::new(&services.telemetry, ids, job.came);
        if again.is_some() {
            report.ordered(OrderWord::Regenerate);
        }
        Self {
            report,
            before: Mutex::new(
                again
                    .map(|again| again.messages.clone())
                    .unwrap_or_default()
                    .into(),
            ),
            roles: run.map(|_| LatestRoles::of(&job.request, started_at)),
            services,
            job,
            ids,
            started: Instant::now(),
            started_at,
            restarts: 0,
            is_sent_again: false,
        }
    }
}

impl Turn<'_> {
    /// The trigger as it reads now.
    fn trigger(&self) -> &Message {
        &self.job.request.trigger
    }

    /// Who of those who will read the answer may read another channel, by what the
    /// gateway told. Whoever reads the answer reads its own channel.
    fn readers(&self, source: ChannelId) -> Readers {
        if source == self.trigger().channel {
            return Readers::Everybody;
        }
        let (guild_state, request) = (&self.services.guild_state, &self.job.request);
        let source = guild_state.channel(source);
        source.map_or(Readers::Nobody, |source| {
            self.with_roles(|roles| {
                let place = AnswerPlace {
                    roles,
                    ..answer_place(request)
                };
                guild_state.readers(&place, &source)
            })
        })
    }

    /// The app through which the asker writes, if so. Such an asker owns nothing: nothing
    /// stored is read or written for them, and tools read here only.
    fn proxy(&self) -> Option<ProxyId> {
        self.services.proxy_of(self.trigger())
    }

    /// Whose limits of tokens the turn counts towards.
    fn payer(&self) -> Payer {
        let spender = self.services.spender(self.trigger());
        // Those that came with the trigger, where a run's cannot be read again: no limit goes.
        let known = self.job.request.asker_roles.as_deref();
        self.with_roles(|roles| {
            let memory = &self.services.memory;
            memory.payer(spender, self.ids.guild, roles.or(known))
        })
    }

    /// How often the model may call tools.
    fn max_tool_rounds(&self) -> usize {
        if self.job.run.is_some() {
            RUN_ROUNDS
        } else {
            self.services.settings.tools.max_rounds
        }
    }

    /// How many REST calls tools may make.
    fn max_tool_fetches(&self) -> usize {
        if self.job.run.is_some() {
            RUN_FETCHES
        } else {
            tools::MAX_FETCHES
        }
    }

    /// Whether an agent run has tokens for one more request of the size of the last, and
    /// not for two: the next one has to bring the answer.
    fn tokens_run_low(&self) -> bool {
        let doing = self.job.activity.now();
        let two_more = doing.tokens + 2 * doing.last_tokens;
        self.job.run.is_some() && two_more > self.services.settings.runs.max_tokens
    }

    /// [`Order::Block`] if the asker was blocked meanwhile.
    fn must_not_be_blocked(&self) -> Result<(), Order> {
        if self.services.is_blocked(self.payer()) {
            Err(Order::Block)
        } else {
            Ok(())
        }
    }

    /// Which tokens are used up, if so: the model may not be asked again. [`Order::Block`] if the
    /// asker was blocked meanwhile.
    fn spent(&self) -> Result<Option<Cow<'static, str>>, Order> {
        let most = self.services.settings.runs.max_tokens;
        if self.job.run.is_some() && self.job.activity.now().tokens >= most {
            return Ok(Some(line::TOKENS_SPENT.into()));
        }
        match self.services.may_not_ask(self.payer()) {
            Some(Refusal::Blocked) => Err(Order::Block),
            refused => Ok(refused.and_then(|why| refusal(why, self.services.memory.now()))),
        }
    }

    /// Whether what was said until an order is shown: of an agent run, and of what somebody
    /// stopped, unless that is given anew.
    fn shows_part(&self, order: &Order) -> bool {
        if self.job.run.is_some() {
            return order.shows_part_of_run();
        }
        matches!(order, Order::Stop) && self.job.again.is_none()
    }

    /// The call to answer, if the trigger is a command.
    fn interaction(&self) -> Option<&Interaction> {
        self.job.request.cause.interaction()
    }
}

/// Runs one turn to its end and returns how it ended; telemetry has all the rest.
pub async fn run(services: &Services, job: TurnJob, mut control: Control) -> EndedTurn {
    let mut turn = Turn::new(services, job);
    turn.tell(|| TurnNews::Started {
        channel: turn.trigger().channel,
        asker: turn.job.request.asker(),
    });
    let is_answered = left::is_answered(&mut turn).await;
    let stands = is_answered || left::stands(&mut turn).await;
    let ended = match &turn.job.run {
        _ if is_answered => Ok(Outcome::Answered.into()),
        _ if !stands => Ok(Outcome::Cancelled.into()),
        Some(slot) => {
            let work = attempt(&turn, &mut control);
            Box::pin(progress::shown(&turn, slot, work)).await
        }
        None => attempts(&mut turn, &mut control).await,
    };
    let ended = ended.unwrap_or_else(|_| Outcome::Cancelled.into());
    turn.tell(|| {
        TurnNews::Over(TurnOver {
            outcome: ended.outcome,
            receipt: turn.report.receipt().map(Box::new),
            took: turn.job.came.elapsed(),
        })
    });
    turn.report.over(ended.outcome);
    ended
}

/// Starts over after each edit of the trigger. Another order ends the turn.
async fn attempts(turn: &mut Turn<'_>, control: &mut Control) -> Result<EndedTurn, Order> {
    loop {
        let (trigger, at) = match with_typing(turn, control).await {
            Err(Order::Restart { trigger, at }) => (trigger, at),
            ended => return ended,
        };
        turn.job.request.trigger = control.edited(trigger, at).await?;
        turn.restarts += 1;
        turn.is_sent_again = false;
    }
}

/// Shows typing during the turn, without delaying it. A command shows "thinking" by
/// itself.
async fn with_typing(turn: &Turn<'_>, control: &mut Control) -> Result<EndedTurn, Order> {
    if turn.interaction().is_some() {
        return attempt(turn, control).await;
    }
    let ours = turn.services.guild_state.our_access(turn.trigger().channel);
    if ours.forbids(|rights| rights.send) {
        deliver::cannot_write(turn, Fallback::Forbidden).await;
        return Ok(Outcome::Failed.into());
    }
    tokio::select! {
        biased;
        ended = attempt(turn, control) => ended,
        never = typing(turn) => match never {},
    }
}

async fn typing(turn: &Turn<'_>) -> Infallible {
    loop {
        if !turn.job.activity.now().waits {
            let deadline = Instant::now() + ASIDE_TIMEOUT;
            let shown = turn.services.rest.typing(turn.trigger().channel, deadline);
            if let Err(error) = shown.await {
                tracing::debug!(%error, "typing was not shown");
            }
        }
        sleep(TYPING_EVERY).await;
    }
}

/// One attempt. An order takes back what was posted.
async fn attempt(turn: &Turn<'_>, control: &mut Control) -> Result<EndedTurn, Order> {
    turn.report.enters(TurnStage::Gather);
    let calls = NotedCalls::default();
    let gathering = Box::pin(gather(turn, &calls));
    let (mut material, input) = match control.unless_ordered(gathering).await {
        Ok(gathered) => gathered,
        Err(order) => {
            deliver::interrupted(turn, &order).await;
            return Err(order);
        }
    };
    // Whoever has our store has our questions: nothing more is asked or answered here, and the
    // process is about to end.
    if !turn.services.memory.is_ours().await {
        return Err(control.ordered().await);
    }
    turn.report.gathered(turn, &material);
    observe::gathered(turn, &material, input, &calls);
    turn.report.enters(TurnStage::Ask);
    let target = material.collected.target.reply_to.clone();
    let mut posted = PostedAnswer::new(turn, target.as_deref());
    // Boxed to keep the future of a turn small.
    let ended = Box::pin(answer(turn, &mut material, &mut posted, control)).await;
    turn.report.left_out(&posted);
    let order = match ended {
        Ok(ended) => match control.revoked() {
            None => return Ok(ended),
            Some(order) => order,
        },
        Err(order) if turn.job.run.is_some() && order.shows_part_of_run() => return Err(order),
        Err(order) => order,
    };
    if deliver::take_back(turn, &mut posted, &order).await || matches!(order, Order::Abandon { .. })
    {
        return Err(order);
    }
    // What stays is the answer: rather a part of one than two.
    posted.over().await;
    Ok(Outcome::Answered.into())
}

/// Asks, delivers and records. Before the answer is complete any order ends this;
/// afterwards only the deletion of the trigger matters.
async fn answer(
    turn: &Turn<'_>,
    material: &mut TurnMaterial,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
) -> Result<EndedTurn, Order> {
    let (answer, tools) = ask(turn, material, posted, control).await?;
    turn.must_not_be_blocked()?;
    let order = match &answer {
        TurnAnswer::Part(_, order) if turn.job.run.is_some() => Some(order.clone()),
        _ => None,
    };
    if turn.services.memory.is_lost() {
        return Err(control.ordered().await);
    }
    turn.report.enters(TurnStage::Deliver);
    // Boxed to keep the future of a turn small.
    let recording = Box::pin(record::begin(turn, material, &answer, tools, posted)).await;
    let delivered = deliver(turn, material, answer, posted).await;
    if let Some(order) = control.revoked() {
        return Err(order);
    }
    control.answered();
    posted.over().await;
    turn.report.enters(TurnStage::Record);
    let ended = record(turn, material, delivered, recording, posted).await;
    order.map_or(Ok(ended), Err)
}
