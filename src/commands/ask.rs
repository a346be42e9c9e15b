//! `/ask` and "Ask about this message": a turn, as if its question had been
//! posted.

use std::sync::Arc;

use super::Refused;
use super::definition::{Action, Command};
use clew_context::model::{
    Author, Cause, Extras, Interaction, Message, MessageFlags, MessageId, MessageKind, Reference,
    ReferenceKind, Referenced, TurnRequest,
};
use clew_discord::event::IncomingInteraction;
use clew_discord::model::{CommandKind, InteractionData, OptionKind, OptionSpec};

pub(super) const ASK: Command = Command::action(
    Action::turn("ask", "Ask a question", request).options(&[QUESTION, FILE, PRIVATE]),
);

pub(super) const ASK_ABOUT: Command = Command {
    kind: CommandKind::Message,
    ..Command::action(Action::turn("Ask about this message", "", request))
};

/// As long as a message.
const QUESTION: OptionSpec =
    OptionSpec::text("question", "What do you want to know?", 0, 2_000).required();

/// Shown and bounded like one that a message has.
const FILE: OptionSpec = OptionSpec::new(
    "file",
    "An image or a text file that the question is about",
    OptionKind::File,
);

const PRIVATE: OptionSpec = OptionSpec::flag("private", "Only you see the answer; I don't keep it");

/// The turn that a call asks for.
fn request(incoming: IncomingInteraction) -> Result<TurnRequest, Refused> {
    let IncomingInteraction {
        interaction,
        data,
        asker,
        roles,
        channel_kind,
        message,
        ..
    } = incoming;
    let InteractionData::Command(data) = data else {
        return Err(Refused::Unknown);
    };
    let is_private = data.flag(&PRIVATE);
    let (trigger, cause) = if let Some(id) = data.target {
        let about = message.map(|about| about.message);
        let here = interaction.channel;
        let about = about.filter(|about| about.id == id && about.channel == here);
        let about = about.ok_or(Refused::NoMessage)?;
        asked(interaction, asker, "", Some(about))
    } else {
        let question = data.text(&QUESTION).ok_or(Refused::Unknown)?;
        let files = data.file(&FILE).cloned().map(|file| Extras {
            attachments: vec![file],
            ..Extras::default()
        });
        let (trigger, cause) = asked(interaction, asker, question, None);
        let trigger = Message {
            extras: files.map(Box::new),
            ..trigger
        };
        (trigger, cause)
    };
    Ok(TurnRequest {
        trigger: Arc::new(trigger),
        channel_kind,
        asker_roles: Some(roles),
        cause,
        is_private,
    })
}

/// The question, perhaps about a message, as if it had been posted.
pub fn asked(
    interaction: Interaction,
    asker: Author,
    question: &str,
    about: Option<Message>,
) -> (Message, Cause) {
    let Some(about) = about else {
        let trigger = question_as_message(&interaction, asker, question);
        return (trigger, Cause::Ask(Box::new(interaction)));
    };
    let trigger = pointing_at(&interaction, asker, about.clone(), question);
    let cause = Cause::AskAbout(Box::new(interaction), Arc::new(about));
    (trigger, cause)
}

/// The question as if it had been posted. Its id is the call's, which gives its time.
pub(super) fn question_as_message(
    interaction: &Interaction,
    asker: Author,
    question: &str,
) -> Message {
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

/// A reply to the message asked about.
pub(super) fn pointing_at(
    interaction: &Interaction,
    asker: Author,
    about: Message,
    text: &str,
) -> Message {
    let reference = Reference {
        kind: ReferenceKind::Default,
        channel: Some(about.channel),
        message: Some(about.id),
    };
    Message {
        kind: MessageKind::Reply,
        reference: Some(reference),
        referenced: Referenced::Known(Box::new(about)),
        ..question_as_message(interaction, asker, text)
    }
}
