//! Commands: what a call of one leads to. Those that ask start a turn by a
//! [`TurnRequest`], all others are answered in one line.
//!
//! Invariant: `commands` decides and sends nothing itself; `app` carries out.

use std::sync::Arc;

use crate::discord::event::Called;
use crate::engine::admission::{Admission, admit};
use crate::model::{
    AccessRules, Author, Cause, Channel, Command, Interaction, InteractionKind, Message,
    MessageFlags, MessageId, MessageKind, Reference, ReferenceKind, Referenced, TurnRequest,
};

/// Why a call leads to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Not in a server we are in and not in our direct messages.
    Elsewhere,
    /// An allow or deny list says no.
    NotAllowed,
    /// A command of another version.
    Unknown,
    /// The message asked about did not come along.
    NoMessage,
}

/// Decides on a call: a turn, to which "thinking" is the first answer.
///
/// # Errors
/// Why there is none, for the caller alone.
pub fn plan(
    called: Called,
    channel: Option<&Channel>,
    rules: &AccessRules,
) -> Result<TurnRequest, Refused> {
    let Called {
        interaction,
        command,
        asker,
        roles,
        channel_kind,
        message,
        ..
    } = called;
    if interaction.kind == InteractionKind::Elsewhere {
        return Err(Refused::Elsewhere);
    }
    let asked = Admission {
        guild: interaction.guild,
        channel: interaction.channel,
        parent: channel.and_then(|channel| channel.parent),
        user: interaction.user,
        roles: &roles,
    };
    admit(rules, asked).map_err(|_| Refused::NotAllowed)?;
    let (trigger, cause) = match command {
        Command::Ask { question } => {
            let trigger = question_as_message(&interaction, asker, &question);
            (trigger, Cause::Ask(Box::new(interaction)))
        }
        Command::AskAbout { message: id } => {
            let about = message.map(|about| about.message);
            let about = about.filter(|about| about.id == id);
            let about = about.ok_or(Refused::NoMessage)?;
            let trigger = pointing_at(&interaction, asker, about.clone());
            let cause = Cause::AskAbout(Box::new(interaction), Arc::new(about));
            (trigger, cause)
        }
        Command::Context(_)
        | Command::ClearContext
        | Command::Settings(_)
        | Command::Memory(_)
        | Command::ServerMemory(_)
        | Command::Privacy(_)
        | Command::Help
        | Command::Button(_)
        | Command::Complete(_)
        | Command::Wrong(_)
        | Command::Unknown(_) => return Err(Refused::Unknown),
    };
    Ok(TurnRequest {
        trigger: Arc::new(trigger),
        channel_kind,
        asker_roles: roles,
        cause,
    })
}

/// A question as if it had been posted. Its id, the call's, tells its time.
fn question_as_message(interaction: &Interaction, asker: Author, question: &str) -> Message {
    Message {
        id: MessageId::new(interaction.id.get()),
        channel: interaction.channel,
        guild: interaction.guild,
        kind: MessageKind::Default,
        author: asker,
        timestamp: interaction.id.created(),
        edited: None,
        flags: MessageFlags::default(),
        content: question.into(),
        reference: None,
        referenced: Referenced::Absent,
        mentions: Box::default(),
        mention_roles: Box::default(),
        extras: None,
        withheld: false,
    }
}

/// A reply without text to the message asked about.
fn pointing_at(interaction: &Interaction, asker: Author, about: Message) -> Message {
    let reference = Reference {
        kind: ReferenceKind::Default,
        channel: Some(about.channel),
        message: Some(about.id),
    };
    Message {
        kind: MessageKind::Reply,
        reference: Some(reference),
        referenced: Referenced::Known(Box::new(about)),
        ..question_as_message(interaction, asker, "")
    }
}
