//! Where an answer goes: messages in a channel, or the answer to a command. It
//! grows there: earlier parts stay, the last one is edited, new ones are posted.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::deliver::{self, ATTACHMENT_NAME, Overflow};
use crate::model::{Continue, RECEIPT_BUTTON, Regenerate, STOP_ANSWER};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, Fallback, Interaction, Message, MessageId, UnixMillis};
use clew_discord::model::{AnswerButton, ButtonStyle};
use clew_discord::rest::Rest;
use clew_discord::send::{FileUpload, MessageText, NewMessage};
use clew_discord::session::Claims;

use crate::turn::Turn;
use crate::turn::control::Order;
use crate::turn::line::{self, INTERRUPTED};
use crate::turn::news::TurnNews;
use crate::turn::patience::{Tries, insist};

/// How long one delivering call may take, including retries and limits.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where an answer goes.
enum Destination<'a> {
    /// A channel; the first message is a reply if there is a target.
    Channel {
        channel: ChannelId,
        reply_to: Option<MessageId>,
        /// Whether the target's author is the asker.
        ping: bool,
    },
    /// A command, whose first response says that we are thinking.
    Interaction(&'a Interaction),
}

impl<'a> Destination<'a> {
    fn of(turn: &'a Turn<'_>, target: Option<&Message>) -> Self {
        if let Some(interaction) = turn.interaction() {
            return Self::Interaction(interaction);
        }
        if let Some(place) = turn.job.run.as_ref().and_then(|slot| slot.run().place()) {
            return Self::Channel {
                channel: place.channel,
                reply_to: Some(place.message),
                ping: false,
            };
        }
        Self::Channel {
            channel: turn.trigger().channel,
            reply_to: target.map(|target| target.id),
            ping: target.is_some_and(|target| target.author.id == turn.job.request.asker()),
        }
    }
}

/// What has been posted so far.
pub(in crate::turn) struct PostedAnswer<'a> {
    turn: &'a Turn<'a>,
    destination: Destination<'a>,
    parts: Vec<PostedPart>,
    /// What may stand in the channel as well: Discord did not tell.
    unsure: Option<Box<NewMessage>>,
    /// Images of tools that the answer is posted with.
    images: Vec<FileUpload>,
    /// Why no file may be attached, if so.
    no_file: Option<Fallback>,
    /// Whether the last file was refused or could not be sent.
    file_failed: bool,
    /// Whether what failed last would be posted twice if it was posted: it has no nonce.
    failed_unsure: bool,
    /// Where the answer was cut off, in bytes.
    cut_at: Option<usize>,
    /// When to give up, whatever is left to do.
    end: Option<Instant>,
    pub(in crate::turn) edits: usize,
    pub(in crate::turn) attached: bool,
    pub(in crate::turn) reference_dropped: Option<Fallback>,
    /// Whether what is shown is cut; none if it is no answer.
    pub(in crate::turn) is_cut: Option<bool>,
    /// Where the server wants it: the button that stops the answer.
    stop: Option<[AnswerButton; 1]>,
}

struct PostedPart {
    id: MessageId,
    content: String,
    /// Whether the button to stop is under it.
    has_stop: bool,
}

impl<'a> PostedAnswer<'a> {
    /// Nothing is posted yet. A message is to reply to `target`; a command's answer
    /// needs no permission to attach files.
    pub(in crate::turn) fn new(turn: &'a Turn<'a>, target: Option<&Message>) -> Self {
        let destination = Destination::of(turn, target);
        let no_file = matches!(destination, Destination::Channel { channel, .. }
            if turn.services.guild_state.our_access(channel).forbids(|rights| rights.attach));
        Self {
            turn,
            destination,
            parts: Vec::new(),
            unsure: None,
            images: Vec::new(),
            no_file: no_file.then_some(Fallback::Forbidden),
            file_failed: false,
            failed_unsure: false,
            cut_at: None,
            end: None,
            edits: 0,
            attached: false,
            reference_dropped: None,
            is_cut: None,
            stop: is_steered(turn).then(|| {
                let question = turn.trigger().id;
                let id = format!("{STOP_ANSWER}{question}");
                [button(line::STOP, ButtonStyle::Danger, id)]
            }),
        }
    }

    /// The ids and texts of what is posted, in order.
    pub(in crate::turn) fn parts(&self) -> impl Iterator<Item = (MessageId, &str)> {
        self.parts
            .iter()
            .map(|part| (part.id, part.content.as_str()))
    }

    pub(in crate::turn) fn messages(&self) -> usize {
        self.parts.len()
    }

    /// Whether it replies to a message and Discord accepted the reference.
    pub(in crate::turn) fn replied(&self) -> bool {
        matches!(
            self.destination,
            Destination::Channel {
                reply_to: Some(_),
                ..
            }
        ) && self.reference_dropped.is_none()
    }

    pub(in crate::turn) fn pinged(&self) -> bool {
        self.replied() && matches!(self.destination, Destination::Channel { ping: true, .. })
    }

    /// Sets the time after which nothing more is tried.
    pub(in crate::turn) fn give_up_at(&mut self, end: Instant) {
        self.end = Some(end);
    }

    /// Whether something may still be tried at that time.
    pub(in crate::turn) fn has_until(&self, at: Instant) -> bool {
        self.end.is_none_or(|end| at < end)
    }

    fn deadline(&self) -> Instant {
        let call = deadline();
        self.end.map_or(call, |end| end.min(call))
    }

    /// Whether it is shown as it grows. An agent run's is posted when it is complete, and so is one
    /// that is given anew: until then the one before stands there, whatever ends the turn.
    pub(in crate::turn) const fn grows(&self) -> bool {
        self.turn.job.run.is_none() && self.turn.job.again.is_none()
    }

    /// `ANSWER_MAX_MESSAGES`.
    pub(in crate::turn) fn max_messages(&self) -> usize {
        self.turn.services.settings.max_messages
    }

    /// Attaches images to the whole answer.
    pub(in crate::turn) fn attach(&mut self, images: Vec<FileUpload>) {
        self.images = images;
    }

    /// Whether what just failed is not tried for long: it may fail for its file, or be posted twice.
    pub(in crate::turn) const fn is_tried_seldom(&self) -> bool {
        self.file_failed || self.failed_unsure
    }

    /// Whether to try the answer again without the images that tools gave, then without its
    /// file, since a file failed.
    pub(in crate::turn) fn gives_up_file(&mut self, error: &RestError) -> bool {
        let gives_up = self.file_failed && may_be_the_file(error.reason);
        if gives_up && self.images.is_empty() {
            self.no_file = Some(error.reason);
        } else if gives_up {
            self.images.clear();
        }
        gives_up
    }

    /// Why part of the answer was cut off instead of attached, if it was.
    pub(in crate::turn) fn cut(&self) -> Option<Fallback> {
        self.cut_at.and(self.no_file)
    }

    /// The part of an answer that is in the messages or the file.
    pub(in crate::turn) fn shown<'t>(&self, text: &'t str) -> &'t str {
        let end = self.cut_at.map(|end| text.floor_char_boundary(end));
        end.map_or(text, |end| text[..end].trim_end())
    }

    /// Makes the posted messages match `text`, which only ever grows. Until it is
    /// `done`, a command's further messages wait.
    pub(in crate::turn) async fn show(&mut self, text: &str, done: bool) -> Result<(), RestError> {
        let overflow = match self.no_file {
            Some(_) => Overflow::Cut,
            None => Overflow::Attached,
        };
        let readable = deliver::readable(text, done);
        let delivery = deliver::split(&readable.text, self.max_messages(), overflow);
        let last = delivery.messages.len().saturating_sub(1);
        let overflow = delivery.overflow.as_ref().filter(|_| done);
        let mut files = Vec::new();
        if overflow.is_some() {
            files.push((ATTACHMENT_NAME.to_owned(), text.as_bytes().to_vec()));
        }
        if done && self.no_file.is_none() {
            files.extend(self.images.iter().cloned());
        }
        let stop = self.stop.clone();
        let is_call = matches!(self.destination, Destination::Interaction(_));
        for (index, content) in delivery.messages.iter().enumerate() {
            let files = if index == last { &files[..] } else { &[] };
            if index > 0 && !done && is_call {
                break;
            }
            let grows = !done && (index == last || is_call);
            let buttons = stop
                .as_ref()
                .map(|stop| if grows { &stop[..] } else { &[] });
            let text = MessageText {
                files,
                buttons,
                ..MessageText::plain(content)
            };
            let put = self.put(index, &text).await;
            self.file_failed = put.is_err() && !files.is_empty();
            self.failed_unsure = is_call && index > 0 && index >= self.parts.len();
            put?;
            self.attached |= !files.is_empty();
        }
        if done {
            self.cut_at = delivery.cut_at.map(|end| readable.original(end));
            self.remove_before().await;
        }
        Ok(())
    }

    /// Posts one message separate from the answer: a refusal or a note.
    pub(in crate::turn) async fn say(&mut self, content: &str) -> Result<(), RestError> {
        self.put(self.parts.len(), &MessageText::plain(content))
            .await
    }

    /// Puts its buttons under the last message: those that steer an answer, and the one that shows
    /// what it was made from.
    pub(in crate::turn) async fn add_buttons(&self, receipt: bool) -> Result<(), RestError> {
        let Some((last, earlier)) = self.parts.split_last() else {
            return Ok(());
        };
        let mut buttons = match self.is_cut {
            Some(is_cut) if self.stop.is_some() => self.steering(earlier, is_cut),
            _ => Vec::new(),
        };
        if receipt {
            let id = format!("{RECEIPT_BUTTON}{}", last.id);
            buttons.push(button(line::RECEIPT, ButtonStyle::Secondary, id));
        }
        if buttons.is_empty() {
            return Ok(());
        }
        let (rest, id, at) = (self.rest(), last.id, deadline());
        match &self.destination {
            Destination::Channel { channel, .. } => {
                rest.set_buttons(*channel, id, &buttons, at).await
            }
            Destination::Interaction(call) => {
                rest.set_buttons_of_answer(call, id, &buttons, at).await
            }
        }
    }

    /// The buttons that steer the answer once it stands there. That to a command is not given
    /// anew: its question stands nowhere.
    fn steering(&self, earlier: &[PostedPart], is_cut: bool) -> Vec<AnswerButton> {
        let request = &self.turn.job.request;
        let (trigger, is_posted) = (&request.trigger, request.cause.is_posted());
        let regenerate = Regenerate {
            question: trigger.id,
            cause: request.cause.clone(),
            earlier: earlier.iter().map(|part| part.id).collect(),
        };
        let go_on = Continue {
            question: is_posted.then_some(trigger.id).or(trigger.replies_to()),
            asker: request.asker(),
        };
        let regenerate = is_posted.then(|| regenerate.custom_id()).flatten();
        let go_on = is_cut.then(|| format!("{}{go_on}", Continue::ID));
        let both = [(line::REGENERATE, regenerate), (line::CONTINUE, go_on)].into_iter();
        both.filter_map(|(label, id)| Some(button(label, ButtonStyle::Secondary, id?)))
            .collect()
    }

    /// Removes what is left of the answer that this one replaces.
    async fn remove_before(&self) {
        let Destination::Channel { channel, .. } = self.destination else {
            return;
        };
        let before = std::mem::take(&mut *self.turn.before.lock());
        if let Err(error) = delete(self.rest(), channel, before.into_iter(), Tries::All).await {
            tracing::info!(%error, "part of an answer that was given anew stays");
        }
    }

    /// Shows a text in the next message of the answer that this one replaces, if one is left.
    async fn take_over(&self, text: &MessageText<'_>) -> Result<Option<MessageId>, RestError> {
        let Destination::Channel { channel, .. } = self.destination else {
            return Ok(None);
        };
        let text = MessageText {
            replaces: true,
            ..*text
        };
        loop {
            let Some(id) = self.turn.before.lock().pop_front() else {
                return Ok(None);
            };
            let (rest, at) = (self.rest(), self.deadline());
            match rest.edit_message(channel, id, &text, at).await {
                Ok(()) => return Ok(Some(id)),
                Err(error) if error.reason == Fallback::Deleted => {}
                Err(error) => {
                    self.turn.before.lock().push_front(id);
                    return Err(error);
                }
            }
        }
    }

    /// Takes everything back. A command's first response stays, since nobody calls
    /// the command again; it says that we were interrupted, but nothing of a block. Returns
    /// whether it is gone.
    pub(in crate::turn) async fn remove(&mut self, order: &Order) -> bool {
        let tries = order.tries();
        let parts = std::mem::take(&mut self.parts);
        let mut gone: Vec<MessageId> = parts.iter().map(|part| part.id).collect();
        let unsure = self.unsure.take();
        let removed = match &self.destination {
            Destination::Channel { channel, .. } => {
                let found = Box::pin(self.find(*channel, unsure, tries)).await;
                match found.map(|found| gone.extend(found)) {
                    Ok(()) => delete(self.rest(), *channel, gone.iter().copied(), tries).await,
                    Err(error) => Err(error),
                }
            }
            Destination::Interaction(call) if matches!(order, Order::Block) => {
                self.rest().delete_original(call, deadline()).await
            }
            Destination::Interaction(interaction) => self
                .rest()
                .edit_original(interaction, &MessageText::plain(INTERRUPTED), deadline())
                .await
                .map(drop),
        };
        match removed {
            Ok(()) => {
                if let Some((claims, question)) = self.posted_question()
                    && !gone.is_empty()
                {
                    claims.taken_back(question, self.now()).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a partial answer could not be removed");
                return false;
            }
        }
        true
    }

    /// The claims and the question, if another process would answer it: calls are not sent
    /// again.
    fn claim(&self) -> Option<(&'a Claims, MessageId)> {
        self.posted_question()
            .filter(|_| self.turn.job.again.is_none())
    }

    /// The same of an answer that is given anew, too.
    fn posted_question(&self) -> Option<(&'a Claims, MessageId)> {
        let is_posted = self.turn.interaction().is_none() && self.turn.job.run.is_none();
        is_posted.then(|| (&*self.turn.services.claims, self.turn.trigger().id))
    }

    /// Notes that the question is answered.
    pub(in crate::turn) async fn over(&self) {
        if let Some((claims, question)) = self.claim() {
            claims.over(question, self.now()).await;
        }
    }

    fn now(&self) -> UnixMillis {
        self.turn.services.memory.now()
    }

    async fn put(&mut self, index: usize, text: &MessageText<'_>) -> Result<(), RestError> {
        let has_stop = text.buttons.is_some_and(|buttons| !buttons.is_empty());
        match self.parts.get_mut(index) {
            Some(part)
                if part.content == text.content
                    && part.has_stop == has_stop
                    && text.files.is_empty() => {}
            Some(_) => {
                self.revise(index, text).await?;
                self.edits += 1;
            }
            None => {
                let (id, is_other_text) = match self.take_over(text).await? {
                    Some(id) => (id, false),
                    None => self.create(index, text).await?,
                };
                let known = if is_other_text { "" } else { text.content };
                self.parts.push(PostedPart {
                    id,
                    content: known.to_owned(),
                    has_stop,
                });
                self.turn.tell(|| TurnNews::Posted(id));
                if is_other_text {
                    self.revise(index, text).await?;
                }
            }
        }
        Ok(())
    }

    /// Gives a part another text.
    async fn revise(&mut self, index: usize, text: &MessageText<'_>) -> Result<(), RestError> {
        let (rest, id, deadline) = (self.rest(), self.parts[index].id, self.deadline());
        match &self.destination {
            Destination::Channel { channel, .. } => {
                rest.edit_message(*channel, id, text, deadline).await?;
            }
            Destination::Interaction(call) if index == 0 => {
                rest.edit_original(call, text, deadline).await?;
            }
            Destination::Interaction(_) => {}
        }
        let part = &mut self.parts[index];
        part.content.replace_range(.., text.content);
        part.has_stop = text.buttons.is_some_and(|buttons| !buttons.is_empty());
        Ok(())
    }

    /// Posts a message. Returns its id, and whether it has the text of an earlier try, which an
    /// earlier process or an unconfirmed request had posted under its nonce.
    async fn create(
        &mut self,
        index: usize,
        text: &MessageText<'_>,
    ) -> Result<(MessageId, bool), RestError> {
        let rest = self.rest();
        match &self.destination {
            Destination::Channel {
                channel,
                reply_to,
                ping,
            } => {
                let message = NewMessage {
                    content: text.content.to_owned(),
                    reply_to: reply_to.filter(|_| index == 0),
                    ping_replied: *ping && index == 0,
                    nonce: self.nonce(index),
                    files: text.files.to_vec(),
                    buttons: text.buttons.unwrap_or_default().to_vec(),
                };
                let claim = self.claim();
                if let Some((claims, question)) = claim.filter(|_| index == 0) {
                    let restarts = self.turn.restarts;
                    claims.posting(question, restarts, self.now()).await;
                }
                let sent = rest.create_message(*channel, &message, self.deadline());
                let sent = sent.await;
                let was_tried = self.turn.is_sent_again || self.unsure.is_some();
                // What an earlier try may have posted stays unsure if a later one is refused.
                if sent.as_ref().map_or_else(may_be_done, |_| true) {
                    self.unsure = sent.is_err().then(|| Box::new(message));
                }
                let sent = sent?;
                self.reference_dropped = self.reference_dropped.or(sent.reference_dropped);
                if let Some((claims, question)) = claim {
                    claims.posted(question, sent.id, self.now()).await;
                }
                Ok((sent.id, was_tried && sent.is_other_text))
            }
            Destination::Interaction(call) => {
                let is_private = self.turn.job.request.is_private;
                let deadline = self.deadline();
                let sent = if index == 0 {
                    rest.edit_original(call, text, deadline).await
                } else {
                    rest.follow_up(call, text, is_private, deadline).await
                };
                sent.map(|id| (id, false))
            }
        }
    }

    /// Finds a message that may stand there: under its nonce Discord posts it once, and tells its
    /// id to whoever posts it again.
    async fn find(
        &self,
        channel: ChannelId,
        unsure: Option<Box<NewMessage>>,
        tries: Tries,
    ) -> Result<Option<MessageId>, RestError> {
        let Some(message) = unsure else {
            return Ok(None);
        };
        let again = || self.rest().create_message(channel, &message, deadline());
        match insist(tries, again).await {
            Ok(found) => Ok(Some(found.id)),
            Err(error) if error.reason.is_unanswered() => Err(error),
            // It was never posted, and may not be.
            Err(_) => Ok(None),
        }
    }

    fn rest(&self) -> &'a Rest {
        &self.turn.services.rest
    }

    /// The same for every try at a message, and another after a restart.
    fn nonce(&self, index: usize) -> String {
        let turn = self.turn;
        let again = turn.job.again.as_ref().map(|again| again.press.get());
        let id = again.unwrap_or(turn.job.request.turn().0);
        format!("{id:x}.{}.{index}", turn.restarts)
    }
}

/// Whether the answer has buttons that steer it: where the server wants them, if the asker is
/// somebody who can press them.
fn is_steered(turn: &Turn<'_>) -> bool {
    let is_wanted = turn
        .ids
        .guild
        .is_some_and(|guild| turn.services.memory.guild_settings(guild).buttons == Some(true));
    is_wanted && turn.job.run.is_none() && !turn.job.request.is_private && turn.trigger().is_human()
}

fn button(label: &str, style: ButtonStyle, custom_id: String) -> AnswerButton {
    AnswerButton {
        label: label.to_owned(),
        style,
        custom_id,
    }
}

/// Whether the message may be accepted without its file: no permission, too large
/// (413), nothing left of the message (50006), or a persistent fault.
const fn may_be_the_file(reason: Fallback) -> bool {
    matches!(
        reason,
        Fallback::Forbidden | Fallback::Malformed | Fallback::Unavailable | Fallback::Timeout
    )
}

/// Whether Discord may have done what it did not confirm.
fn may_be_done(error: &RestError) -> bool {
    error.reason.is_unanswered() && error.reason != Fallback::RateLimited
}

/// Deletes messages of ours, the newest first, up to the first that stays.
pub(in crate::turn) async fn delete(
    rest: &Rest,
    channel: ChannelId,
    parts: impl DoubleEndedIterator<Item = MessageId>,
    tries: Tries,
) -> Result<(), RestError> {
    for part in parts.rev() {
        let deleted = insist(tries, || rest.delete_message(channel, part, deadline()));
        if let Err(error) = deleted.await
            && !error.says_gone()
        {
            return Err(error);
        }
    }
    Ok(())
}

fn deadline() -> Instant {
    Instant::now() + CALL_TIMEOUT
}
