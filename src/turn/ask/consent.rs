//! Asking people whether a tool of another's server may be called: a message with the whole
//! call and two buttons, for five minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use clew_mcp::fingerprint;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::model::{ALLOW_CALL, Consent, DENY_CALL};
use crate::runs::{Approval, Approvers, Decided, NewApproval, OpenApproval};
use crate::tools::{AgreedTool, Arguments, ToolError};
use crate::turn::control::Order;
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
/// Roles that a question names.
const MAX_ROLES: usize = 5;
/// Nobody could be asked.
pub(super) const NOT_ASKED: NotAllowed = (Consent::NotAsked, ToolError::NotAsked);
/// How long a turn waits in all: a command's answer has fifteen minutes.
const PATIENCE_IN_ALL: Duration = Duration::from_mins(10);
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
    /// When the first was asked.
    began: Option<Instant>,
    /// Whether nobody answered: then nobody is asked again.
    nobody_answers: bool,
    /// The calls that wait or are made now, by the approvals' ids.
    open: BTreeMap<u64, (String, Consent)>,
}

/// That a call may be made; until it was, it is said that it may have been.
pub(super) struct Allowed {
    pub(super) consent: Consent,
    /// Of one that was asked for.
    approval: Option<AllowedApproval>,
}

struct AllowedApproval {
    approval: Approval,
    /// Whether its message says what was decided.
    is_told: bool,
    /// How its message begins.
    head: String,
}

impl Allowed {
    /// Without anybody's consent.
    pub(super) const fn alone() -> Self {
        Self {
            consent: Consent::Auto,
            approval: None,
        }
    }
}

/// Why a call may not be made.
pub(super) type NotAllowed = (Consent, ToolError);

/// A call, as people are asked about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedCall<'a> {
    pub(super) tool: &'a AgreedTool,
    pub(super) arguments: &'a Arguments,
}

impl AskedCall<'_> {
    /// `server__tool`, by its server's own name for it.
    fn name(&self) -> String {
        let (server, remote) = self.tool.names();
        format!("{server}__{remote}")
    }
}

impl Asked {
    /// The turn ends, or begins anew: says of calls that waited, or were being made, what
    /// became of them. At the end of the process the next one does.
    pub(super) async fn give_up(&self, turn: &Turn<'_>, round: usize, order: &Order) {
        let open = std::mem::take(&mut self.so_far.lock().open);
        for (tool, consent) in open.into_values() {
            turn.report.given_up(&tool, consent, round);
        }
        turn.job.activity.waits(false);
        if !matches!(order, Order::Abandon { .. }) {
            report_given_up(turn.services, Some(turn.job.request.turn())).await;
        }
    }

    /// A call was made.
    pub(super) fn is_done(&self, allowed: &Allowed) {
        if let Some(allowed) = &allowed.approval {
            self.so_far.lock().open.remove(&allowed.approval.id);
            if allowed.is_told {
                allowed.approval.told();
            }
        }
    }

    /// A call was allowed, and may not be made any more.
    pub(super) async fn overruled(&self, turn: &Turn<'_>, allowed: Allowed) -> NotAllowed {
        if let Some(AllowedApproval { approval, head, .. }) = allowed.approval {
            self.so_far.lock().open.remove(&approval.id);
            approval.overruled();
            let line = format!(
                "{head} It was allowed, but rights or the tool changed meanwhile: it was not done."
            );
            if let Some(message) = approval.message() {
                let channel = turn.trigger().channel;
                match edit(turn.services, channel, message, &line).await {
                    Ok(()) => approval.told(),
                    Err(error) => tracing::info!(%error, "that a call was overruled is not shown"),
                }
            }
        }
        (Consent::Overruled, ToolError::Overruled)
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
            let began = *so_far.began.get_or_insert_with(Instant::now);
            so_far.questions += 1;
            let has_time = began.elapsed() + turn.services.tool_servers.patience <= PATIENCE_IN_ALL;
            so_far.questions <= MAX_ASKED && has_time && !so_far.nobody_answers
        };
        let shown = shown(call.arguments).filter(|_| may_ask);
        let Some(shown) = shown else {
            return Err(NOT_ASKED);
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
        let head = head(turn, call.tool, &approvers);
        let new = NewApproval {
            open,
            asker: turn.job.request.asker(),
            guild: turn.ids.guild,
            approvers,
        };
        let Some(mut approval) = turn.services.approvals.ask(new) else {
            return Err(NOT_ASKED);
        };
        let id = approval.id;
        let is_open = |consent| {
            let open = &mut self.so_far.lock().open;
            open.insert(id, (call.name(), consent));
        };
        is_open(Consent::Withdrawn);
        turn.job.activity.waits(true);
        let decided = waited(turn, &mut approval, &head, &shown).await;
        turn.job.activity.waits(false);
        let (consent, error) = match decided {
            Ok((Some(true), is_told)) => {
                is_open(Consent::Allowed);
                let approval = AllowedApproval {
                    approval,
                    is_told,
                    head,
                };
                return Ok(Allowed {
                    consent: Consent::Allowed,
                    approval: Some(approval),
                });
            }
            Ok((Some(false), _)) => (Consent::Denied, ToolError::Denied),
            Ok((None, _)) => {
                self.so_far.lock().nobody_answers = true;
                (Consent::Expired, ToolError::Expired)
            }
            Err(error) => {
                tracing::info!(%error, "a call of a tool could not be asked for");
                NOT_ASKED
            }
        };
        self.so_far.lock().open.remove(&id);
        Err((consent, error))
    }
}

/// Posts the question and waits. Returns what was decided, none if nobody did, and whether
/// the message says so.
async fn waited(
    turn: &Turn<'_>,
    approval: &mut Approval,
    head: &str,
    shown: &str,
) -> Result<(Option<bool>, bool), RestError> {
    let (rest, channel) = (&turn.services.rest, turn.trigger().channel);
    let (id, patience) = (approval.id, turn.services.tool_servers.patience);
    let until = turn.services.memory.now().0 / 1_000 + patience.as_secs().cast_signed();
    let question = format!(
        "{head} May I, with this?\n```json\n{shown}\n```\n{NOTE_PREFIX}Waits until <t:{until}:R>."
    );
    let answer = Answer::for_all(question)
        .with_button(
            "Allow once",
            ButtonStyle::Primary,
            format!("{ALLOW_CALL}{id}"),
        )
        .with_button("Deny", ButtonStyle::Danger, format!("{DENY_CALL}{id}"));
    if !approval.is_noted().await {
        return Ok((None, true));
    }
    let deadline = Instant::now() + POST_TIMEOUT;
    let message = rest
        .post_answer(channel, &answer, &nonce(id), deadline)
        .await?;
    approval.stands(message);
    let decided = approval.decided(patience).await;
    let line = match decided {
        Some(Decided {
            by,
            is_allowed: true,
        }) => format!("Allowed once by <@{by}>."),
        Some(Decided { by, .. }) => format!("Denied by <@{by}>."),
        None => "Nobody answered, so it was not done.".to_owned(),
    };
    // The arguments may be people's words: they stand no longer than they have to.
    let told = edit(turn.services, channel, message, &format!("{head} {line}")).await;
    if let Err(error) = &told {
        tracing::info!(%error, "what came of a call that was asked for is not shown");
    } else if !decided.is_some_and(|decided| decided.is_allowed) {
        approval.told();
    }
    Ok((decided.map(|decided| decided.is_allowed), told.is_ok()))
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

/// What is asked for, for whom, and who may allow it. It begins like a note, which keeps it out
/// of prompts.
fn head(turn: &Turn<'_>, tool: &AgreedTool, approvers: &Approvers) -> String {
    let asker = turn.job.request.asker();
    let (server, remote) = tool.names();
    let roles = approvers.roles.iter().take(MAX_ROLES);
    let roles = roles.map(|role| format!("<@&{role}>"));
    let asked = approvers.asker.map(|asker| format!("<@{asker}>"));
    let who: Vec<String> = roles.chain(asked).collect();
    format!(
        "{NOTE_PREFIX}{}: call `{}` of the server `{server}` for <@{asker}>.",
        who.join(", "),
        sanitise::line(remote).replace('`', "'"),
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
    let (name, reads) = (call.name(), call.tool.fingerprint());
    fingerprint(&format!("{name} {reads} {}", call.arguments.canonical()))
}
