//! `/ask` and "Ask about this message": a turn, as if its question had been
//! posted.

use std::sync::Arc;

use super::Refused;
use clew_context::model::{
    Author, Cause, Interaction, Message, MessageFlags, MessageId, MessageKind, Reference,
    ReferenceKind, Referenced, TurnRequest,
};
use clew_discord::event::Called;
use clew_discord::model::Command;

/// The turn that a call asks for.
pub(super) fn request(called: Called) -> Result<TurnRequest, Refused> {
    let Called {
        interaction,
        command,
        asker,
        roles,
        channel_kind,
        message,
        ..
    } = called;
    let (trigger, cause) = match command {
        Command::Ask { question } => {
            let trigger = question_as_message(&interaction, asker, &question);
            (trigger, Cause::Ask(Box::new(interaction)))
        }
        Command::AskAbout { message: id } => {
            let about = message.map(|about| about.message);
            let here = interaction.channel;
            let about = about.filter(|about| about.id == id && about.channel == here);
            let about = about.ok_or(Refused::NoMessage)?;
            let trigger = pointing_at(&interaction, asker, about.clone());
            let cause = Cause::AskAbout(Box::new(interaction), Arc::new(about));
            (trigger, cause)
        }
        _ => return Err(Refused::Unknown),
    };
    Ok(TurnRequest {
        trigger: Arc::new(trigger),
        channel_kind,
        asker_roles: Some(roles),
        cause,
    })
}

/// The question as if it had been posted. Its id is the call's, which gives its time.
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
