//! Which messages belong to a conversation: those of people, be it through an app, and
//! our own.

use crate::model::{
    Author, Extras, Message, MessageKind, OmitReason, Proxies, ProxyId, RoleId, Speaker, UserId,
};

use super::{meaning, sanitise};

/// What an app takes away when it copies a message: tags such as `L:` are short. In
/// Unicode scalars. A copy that is longer may lack as much as it has; a shorter one may be a
/// part of anything, so that it has to be all but tags.
const TAGS: usize = 16;
/// The same of a mention without words, which short questions of others must not be.
const TAGS_ALONE: usize = 8;

/// How much of another message a copy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// All of it but a short tag.
    All,
    /// A part of it.
    Part,
}

/// Our identity in one server, and whom we take for a person there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Us {
    /// Our user.
    pub user: UserId,
    /// The name people see.
    pub name: String,
    /// Our managed role in this server, which people sometimes mention by mistake.
    pub roles: Vec<RoleId>,
    /// The apps through which people write.
    pub proxies: Proxies,
}

impl Us {
    /// Whether we wrote it. A webhook's id is never ours.
    pub fn wrote(&self, message: &Message) -> bool {
        message.author.id == self.user && !is_other_webhook(message)
    }

    /// Ourselves as the author of a message.
    pub fn author(&self) -> Author {
        Author {
            id: self.user,
            name: self.name.as_str().into(),
            bot: true,
            webhook: false,
            application: None,
        }
    }

    /// The app through which a person wrote it, if so.
    pub fn proxy_of(&self, message: &Message) -> Option<ProxyId> {
        self.proxies.posted(&message.author)
    }

    /// Whether a person wrote it: type 0 or 19, by an account or through an app.
    pub fn is_person(&self, message: &Message) -> bool {
        message.is_human() || message.kind.is_conversation() && self.proxy_of(message).is_some()
    }

    /// Who speaks, to tell the speakers of this server apart.
    pub fn speaker<'a>(&self, message: &'a Message) -> Speaker<'a> {
        let author = &message.author;
        match self.proxy_of(message) {
            Some(app) => Speaker::Proxied(app, &author.name),
            None if author.webhook => Speaker::Webhook(author.id, &author.name),
            None => Speaker::User(author.id),
        }
    }

    /// Whether the text names us or our role (a reply's ping does not count).
    pub fn named_inline(&self, message: &Message) -> bool {
        let mentioned = |id: UserId| message.mentions.iter().any(|mention| mention.id == id);
        let user = self.user;
        let by_user = mentioned(user)
            && (message.content.contains(&format!("<@{user}>"))
                || message.content.contains(&format!("<@!{user}>")));
        by_user
            || self
                .roles
                .iter()
                .any(|role| message.mention_roles.contains(role))
    }

    /// Whether it mentions us: in the text, by our role, or by a reply's ping.
    pub fn mentioned(&self, message: &Message) -> bool {
        message
            .mentions
            .iter()
            .any(|mention| mention.id == self.user)
            || self.named_inline(message)
    }

    /// The text without mentions of us, trimmed.
    pub fn without_mentions(&self, text: &str) -> String {
        let roles: Vec<u64> = self.roles.iter().map(|role| role.get()).collect();
        meaning::strip_mentions(text, &[self.user.get()], &roles)
    }

    /// How much of `original` an app's message says, without mentions of us; `None` if
    /// it is no copy of it.
    pub fn repeats(&self, copy: &Message, original: &Message) -> Option<Repeats> {
        let copied = self.without_mentions(&copy.content);
        let text = self.without_mentions(&original.content);
        let chars = copied.chars().count();
        let lacks = text.chars().count().saturating_sub(chars);
        if copied.is_empty() {
            let is_mention = !copy.content.trim().is_empty();
            return (is_mention && lacks <= TAGS_ALONE).then_some(Repeats::All);
        }
        if chars < TAGS {
            let is_all = lacks <= TAGS && is_all_but_tags(&copied, &text);
            return is_all.then_some(Repeats::All);
        }
        let how = if lacks <= chars {
            Repeats::All
        } else {
            Repeats::Part
        };
        text.contains(&copied).then_some(how)
    }

    /// The text without mentions of us at its beginning and end, trimmed.
    pub fn without_address<'a>(&self, text: &'a str) -> &'a str {
        let is_us = |word: &&str| self.without_mentions(word).is_empty();
        let mut rest = text.trim();
        while let Some(word) = first_mention(rest).filter(is_us) {
            rest = rest[word.len()..].trim_start();
        }
        while let Some(word) = last_mention(rest).filter(is_us) {
            rest = rest[..rest.len() - word.len()].trim_end();
        }
        rest
    }

    /// The part of a message that may be stored: its author's own text as typed,
    /// without embeds, files, forwards, or mentions of us at either end. Other
    /// mentions keep their ids; names depend on who reads it later.
    pub fn own_words(&self, message: &Message) -> String {
        let own = self.without_address(&message.content);
        sanitise::text(own).trim().to_owned()
    }

    /// Whether it says something: letters, digits or emoji of any script besides
    /// mentions of us, or an attachment, sticker, poll, embed or forward.
    pub fn has_meaning(&self, message: &Message) -> bool {
        meaning::is_meaningful(&self.without_mentions(&message.content)) || has_parts(message)
    }

    /// Whether the trigger has no words of its own, so that the pointed-at message
    /// or what was said before stands in for them. In a direct message anything
    /// typed counts as words.
    pub fn is_bare(&self, trigger: &Message, is_direct: bool) -> bool {
        let typed = is_direct && !self.without_mentions(&trigger.content).is_empty();
        !typed && !self.has_meaning(trigger)
    }

    /// Whether it is one of our own refusals, progress lines or notes.
    pub fn is_note(&self, message: &Message) -> bool {
        self.wrote(message) && meaning::is_note(&message.content)
    }

    /// Why a message is not part of a conversation; `None` if it is.
    pub fn rejects(&self, message: &Message) -> Option<OmitReason> {
        if message.flags.is_private() || self.is_note(message) {
            return Some(OmitReason::Note);
        }
        let ours = self.wrote(message);
        match message.kind {
            // This includes answers to commands, ours or another app's.
            MessageKind::Default
            | MessageKind::Reply
            | MessageKind::ChatInputCommand
            | MessageKind::ContextMenuCommand => {}
            MessageKind::ThreadStarter | MessageKind::System(_) => return Some(OmitReason::System),
        }
        let is_app = message.author.bot || message.author.webhook;
        let app = is_app && !ours && self.proxy_of(message).is_none();
        let withheld = || message.withheld.then_some(OmitReason::OptedOut);
        app.then_some(OmitReason::App).or_else(withheld)
    }

    /// The same for a message that the asker points at: messages of apps and system
    /// messages are shown too if `apps` is true.
    pub fn rejects_pointed_at(&self, message: &Message, apps: bool) -> Option<OmitReason> {
        let reason = self.rejects(message)?;
        let shown =
            apps && !message.withheld && matches!(reason, OmitReason::App | OmitReason::System);
        (!shown).then_some(reason)
    }
}

/// Whether `text` is `copied` and tags before or after it: what stands next to it there is
/// no letter or digit, as in `L: text`, `text -L` and `[text]`.
fn is_all_but_tags(copied: &str, text: &str) -> bool {
    text.match_indices(copied).any(|(at, _)| {
        let before = text[..at].trim_end().chars().next_back();
        let after = text[at + copied.len()..].trim_start().chars().next();
        let mut around = before.into_iter().chain(after);
        around.all(|next| !next.is_alphanumeric())
    })
}

fn first_mention(text: &str) -> Option<&str> {
    let end = text.strip_prefix("<@")?.find('>')?;
    Some(&text[..="<@".len() + end])
}

fn last_mention(text: &str) -> Option<&str> {
    let start = text.strip_suffix('>')?.rfind("<@")?;
    Some(&text[start..])
}

/// Our answers to commands come through a webhook that has our id.
fn is_other_webhook(message: &Message) -> bool {
    message.author.webhook && !message.author.bot
}

/// Whether there is something to see besides the text.
fn has_parts(message: &Message) -> bool {
    let Some(extras) = message.extras.as_deref() else {
        return false;
    };
    let Extras {
        embeds,
        attachments,
        stickers,
        poll,
        snapshots,
        component_text,
        unread,
    } = extras;
    !(embeds.is_empty()
        && attachments.is_empty()
        && stickers.is_empty()
        && poll.is_none()
        && snapshots.is_empty()
        && component_text.is_empty()
        && unread.is_empty())
}

/// Whether Discord sent us nothing of it, as it does without the message content intent.
pub fn is_blank(message: &Message) -> bool {
    message.content.is_empty() && !has_parts(message)
}
