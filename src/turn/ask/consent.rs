//! Asking people whether a tool of another's server may be called: a message with the whole
//! call and two buttons, for five minutes.

use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use crate::model::{ALLOW_CALL, Consent, DENY_CALL};
use crate::runs::{Approval, Approvers, Decided, NewApproval, OpenApproval};
use crate::tools::{Arguments, ToolError};
use crate::turn::{Services, Turn};
use clew_context::discord::error::RestError;
use clew_context::engine::meaning::NOTE_PREFIX;
use clew_context::engine::sanitise;
use clew_context::model::{ChannelId, MessageId, TurnId};
use clew_discord::model::{Answer, ButtonStyle};

/// What is not shown in full is not asked for: arguments at most, in Unicode scalars.
const MAX_ARGUMENTS: usize = 1_500;
/// Calls of one turn that are asked for at most.
const MAX_ASKED: usize = 4;
/// How long a message may take.
const POST_TIMEOUT: Duration = Duration::from_secs(5);

/// What a turn has asked people so far, one question after the other.
#[derive(Debug, Default)]
pub(super) struct Asked {
    turns: tokio::sync::Mutex<()>,
    so_far: Mutex<SoFar>,
}

#[derive(Debug, Default)]
struct SoFar {
    questions: usize,
    /// Whether nobody answered: then nobody is asked again.
    nobody_answers: bool,
    /// The tool that is being asked for.
    waiting: Option<String>,
}

/// That a call may be made; kept until it was, for the next process.
pub(super) struct Allowed {
    pub(super) consent: Consent,
    /// Dropped before the call was made, it is said that it may have been.
    approval: Option<Approval>,
}

impl Allowed {
    /// Without anybody's consent.
    pub(super) const fn alone() -> Self {
        Self {
            consent: Consent::Auto,
            approval: None,
        }
    }

    /// The call was made.
    pub(super) fn is_done(&self) {
        if let Some(approval) = &self.approval {
            approval.told();
        }
    }
}

/// Why a call may not be made.
pub(super) type NotAllowed = (Consent, ToolError);

/// A call, as people are asked about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedCall<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Arguments,
}

impl Asked {
    /// Says of a call that waited, if one did, that it is not made any more.
    pub(super) async fn give_up(&self, turn: &Turn<'_>, round: usize) {
        let waiting = self.so_far.lock().waiting.take();
        if let Some(tool) = waiting {
            turn.job.activity.waits(false);
            turn.report.withdrawn(&tool, round);
        }
        report_given_up(turn.services, Some(turn.job.request.turn())).await;
    }

    /// Asks whether a call may be made once, and waits for the answer.
    pub(super) async fn ask(
        &self,
        turn: &Turn<'_>,
        call: AskedCall<'_>,
        approvers: Approvers,
    ) -> Result<Allowed, NotAllowed> {
        let (id, hash) = (turn.job.request.turn(), hash(call));
        if let Some(was_allowed) = turn.services.approvals.cut_off(id, &hash) {
            return Err((Consent::CutOff, ToolError::CutOff { was_allowed }));
        }
        let _alone = self.turns.lock().await;
        let may_ask = {
            let mut so_far = self.so_far.lock();
            so_far.questions += 1;
            so_far.questions <= MAX_ASKED && !so_far.nobody_answers
        };
        let shown = shown(call.arguments).filter(|_| may_ask);
        let Some(shown) = shown else {
            return Err((Consent::NotAsked, ToolError::NotAsked));
        };
        let open = OpenApproval {
            turn: id.0,
            call: hash,
            channel: turn.trigger().channel,
            message: None,
            asked: turn.services.memory.now().0,
            is_allowed: false,
            is_told: false,
        };
        let new = NewApproval {
            open,
            asker: turn.job.request.asker(),
            guild: turn.ids.guild,
            approvers,
        };
        let Some(mut approval) = turn.services.approvals.ask(new) else {
            return Err((Consent::NotAsked, ToolError::NotAsked));
        };
        self.so_far.lock().waiting = Some(call.tool.to_owned());
        turn.job.activity.waits(true);
        let asked = question(turn, call.tool, &shown);
        let decided = waited(turn, &mut approval, &asked).await;
        turn.job.activity.waits(false);
        self.so_far.lock().waiting = None;
        match decided {
            Ok(Some(true)) => Ok(Allowed {
                consent: Consent::Allowed,
                approval: Some(approval),
            }),
            Ok(Some(false)) => Err((Consent::Denied, ToolError::Denied)),
            Ok(None) => {
                self.so_far.lock().nobody_answers = true;
                Err((Consent::Expired, ToolError::Expired))
            }
            Err(error) => {
                tracing::info!(%error, "a call of a tool could not be asked for");
                Err((Consent::NotAsked, ToolError::NotAsked))
            }
        }
    }
}

/// Posts the question, waits and says there what came of it; none if nobody answered.
async fn waited(
    turn: &Turn<'_>,
    approval: &mut Approval,
    asked: &str,
) -> Result<Option<bool>, RestError> {
    let (rest, channel) = (&turn.services.rest, turn.trigger().channel);
    let id = approval.id;
    let patience = turn.services.tool_servers.patience;
    let until = turn.services.memory.now().0 / 1_000 + patience.as_secs().cast_signed();
    let answer = Answer::for_all(format!("{asked}\n{NOTE_PREFIX}Waits until <t:{until}:R>."))
        .with_button(
            "Allow once",
            ButtonStyle::Primary,
            format!("{ALLOW_CALL}{id}"),
        )
        .with_button("Deny", ButtonStyle::Danger, format!("{DENY_CALL}{id}"));
    approval.is_noted().await;
    let deadline = Instant::now() + POST_TIMEOUT;
    let message = rest
        .post_answer(channel, &answer, &nonce(id), deadline)
        .await?;
    approval.stands(message);
    let decided = timeout(patience, approval.decided()).await.ok().flatten();
    let line = match decided {
        Some(Decided {
            by,
            is_allowed: true,
        }) => format!("Allowed once by <@{by}>."),
        Some(Decided { by, .. }) => format!("Denied by <@{by}>."),
        None => "Nobody answered, so it was not done.".to_owned(),
    };
    let text = format!("{asked}\n{NOTE_PREFIX}{line}");
    match edit(turn.services, channel, message, &text).await {
        // Of one that is allowed there is more to be said until it was made.
        Ok(()) if decided.is_some_and(|decided| decided.is_allowed) => {}
        Ok(()) => approval.told(),
        Err(error) => tracing::info!(%error, "what came of a call that was asked for is not shown"),
    }
    Ok(decided.map(|decided| decided.is_allowed))
}

/// Says of calls that wait no more what became of them: those that a turn gave up, or without
/// one those that an earlier process left.
pub async fn report_given_up(services: &Services, of: Option<TurnId>) {
    for (id, open) in services.approvals.untold(of) {
        let line = match (of, open.is_allowed) {
            (Some(_), false) => "The question was changed or withdrawn, so it was not done.",
            (None, false) => "I was restarted, so it was not done.",
            (_, true) => "It was allowed, and then cut off: it may have been done.",
        };
        let line = format!("{NOTE_PREFIX}A tool was to be called. {line}");
        let told = match open.message {
            Some(message) => edit(services, open.channel, message, &line).await,
            None => posted_and_told(services, open.channel, id, &line).await,
        };
        match told {
            Err(error) if crate::turn::may_pass(&error) => {
                tracing::info!(%error, "what became of a call that was asked for is not shown");
            }
            _ => services.approvals.told(id),
        }
    }
}

/// Of a message that was posted in the last minutes the nonce gives the id.
async fn posted_and_told(
    services: &Services,
    channel: ChannelId,
    id: u64,
    line: &str,
) -> Result<(), RestError> {
    let deadline = Instant::now() + POST_TIMEOUT;
    let (answer, nonce) = (Answer::for_all(line), nonce(id));
    let posted = services
        .rest
        .post_answer(channel, &answer, &nonce, deadline);
    edit(services, channel, posted.await?, line).await
}

/// Takes the buttons away.
async fn edit(
    services: &Services,
    channel: ChannelId,
    message: MessageId,
    text: &str,
) -> Result<(), RestError> {
    let deadline = Instant::now() + POST_TIMEOUT;
    let answer = Answer::for_all(text);
    services
        .rest
        .edit_answer(channel, message, &answer, deadline)
        .await
}

fn nonce(id: u64) -> String {
    format!("{id:x}.c")
}

/// It begins like a note, which keeps it out of prompts.
fn question(turn: &Turn<'_>, tool: &str, shown: &str) -> String {
    let asker = turn.job.request.asker();
    let (server, tool) = tool.split_once("__").unwrap_or(("", tool));
    format!(
        "{NOTE_PREFIX}May I call **{tool}** of the server **{server}** for <@{asker}>, with \
         this?\n```json\n{shown}\n```"
    )
}

/// All of the arguments, as they will be sent; none if they are too long to be shown. What
/// cannot be seen, and what would end the frame, is written as JSON escapes.
fn shown(arguments: &Arguments) -> Option<String> {
    let mut shown = String::new();
    for one in arguments.pretty().chars() {
        if one == '`' || one != '\n' && sanitise::is_invisible(one) {
            let mut units = [0; 2];
            for unit in one.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(one);
        }
    }
    (shown.chars().count() <= MAX_ARGUMENTS).then_some(shown)
}

fn hash(call: AskedCall<'_>) -> String {
    let text = format!("{} {}", call.tool, call.arguments.canonical());
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
