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

/// What a call leads to.
#[derive(Debug)]
pub enum Plan {
    /// A turn; the call is answered by "thinking" first.
    Turn(Box<TurnRequest>),
    /// A refusal, shown to the caller alone.
    Refuse(Refused),
}

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

/// Decides on a call.
pub fn plan(called: Called, channel: Option<&Channel>, rules: &AccessRules) -> Plan {
    if called.interaction.kind == InteractionKind::Elsewhere {
        return Plan::Refuse(Refused::Elsewhere);
    }
    let asked = Admission {
        guild: called.interaction.guild,
        channel: called.interaction.channel,
        parent: channel.and_then(|channel| channel.parent),
        user: called.interaction.user,
        roles: &called.roles,
    };
    if admit(rules, asked).is_err() {
        return Plan::Refuse(Refused::NotAllowed);
    }
    let Called {
        interaction,
        command,
        asker,
        roles,
        channel_kind,
        message,
    } = called;
    let (trigger, cause) = match command {
        Command::Ask { question } => {
            let trigger = question_as_message(&interaction, asker, &question);
            (trigger, Cause::Ask(Box::new(interaction)))
        }
        Command::AskAbout { message: id } => {
            let Some(about) = message
                .map(|about| about.message)
                .filter(|about| about.id == id)
            else {
                return Plan::Refuse(Refused::NoMessage);
            };
            let trigger = pointing_at(&interaction, asker, about.clone());
            (
                trigger,
                Cause::AskAbout(Box::new(interaction), Arc::new(about)),
            )
        }
        Command::Unknown(_) => return Plan::Refuse(Refused::Unknown),
    };
    let (trigger, asker_roles) = (Arc::new(trigger), roles);
    Plan::Turn(Box::new(TurnRequest {
        trigger,
        channel_kind,
        asker_roles,
        cause,
    }))
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
