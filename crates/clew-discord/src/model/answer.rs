//! The answer to a command, before it becomes Discord's JSON: text, one embed,
//! buttons, files. The readers here apply Discord's limits, so that no answer
//! is refused for its length.

/// Characters in a message's text.
const MAX_CONTENT: usize = 2_000;
/// Characters in an embed's title (Discord's reference, "Embed Limits").
const MAX_TITLE: usize = 256;
/// Characters in an embed's description.
const MAX_DESCRIPTION: usize = 4_096;
/// Fields in an embed.
const MAX_FIELDS: usize = 25;
/// Characters in a field's name.
const MAX_FIELD_NAME: usize = 256;
/// Characters in a field's value.
const MAX_FIELD_VALUE: usize = 1_024;
/// Characters in an embed's footer.
const MAX_FOOTER: usize = 2_048;
/// Characters in a whole embed.
const MAX_EMBED: usize = 6_000;
const MAX_BUTTONS_A_ROW: usize = 5;
/// Rows in a message.
const MAX_ROWS: usize = 5;
/// Characters in a button's label.
const MAX_LABEL: usize = 80;
/// A zero-width space, for where Discord requires a text and we have none.
const BLANK: &str = "\u{200b}";

/// An answer to a command, a button or a user. It pings nobody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The text; cut to 2,000 characters when sent.
    pub content: String,
    /// Shown below the text.
    pub embed: Option<AnswerEmbed>,
    /// Below the embed, five per row; those beyond 25 are dropped. No two may
    /// have the same id.
    pub buttons: Vec<AnswerButton>,
    /// Files by name and content: at most ten, each within the server's limit
    /// (10 MiB everywhere). Discord refuses more.
    pub files: Vec<(String, Vec<u8>)>,
    /// Visible to the caller only. Applies to first answers and follow-ups; an
    /// edit cannot change it.
    pub ephemeral: bool,
}

/// A box with a title; empty texts are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerEmbed {
    /// Up to 256 characters.
    pub title: String,
    /// Up to 4,096 characters.
    pub description: String,
    /// Up to 25 pairs of name (256 characters) and value (1,024).
    pub fields: Vec<(String, String)>,
    /// Small print, up to 2,048 characters.
    pub footer: String,
}

/// A button under an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerButton {
    /// Its label, 1 to 80 characters.
    pub label: String,
    /// How it looks.
    pub style: ButtonStyle,
    /// What comes back with a press: at most 100 characters (Discord's reference,
    /// "Custom ID").
    pub custom_id: String,
}

/// How a button looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ButtonStyle {
    /// Stands out.
    Primary,
    /// Grey.
    Secondary,
    /// Red: something is deleted.
    Danger,
}

impl Answer {
    /// A text only the caller sees.
    pub fn for_caller(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ephemeral: true,
            ..Self::default()
        }
    }

    /// A text everyone sees.
    pub fn for_all(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Adds an embed.
    #[must_use]
    pub fn with_embed(mut self, embed: AnswerEmbed) -> Self {
        self.embed = Some(embed);
        self
    }

    /// Adds a button.
    #[must_use]
    pub fn with_button(
        mut self,
        label: impl Into<String>,
        style: ButtonStyle,
        custom_id: impl Into<String>,
    ) -> Self {
        self.buttons.push(AnswerButton {
            label: label.into(),
            style,
            custom_id: custom_id.into(),
        });
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Self {
        self.files.push((name.into(), bytes));
        self
    }

    /// The text, cut to Discord's limit.
    pub fn text(&self) -> String {
        shortened(&self.content, MAX_CONTENT)
    }
}

impl AnswerButton {
    /// The label, within Discord's limits.
    pub fn text(&self) -> String {
        filled(shortened(&self.label, MAX_LABEL))
    }

    /// The rows in which buttons stand, within Discord's limits.
    pub fn rows(buttons: &[Self]) -> impl Iterator<Item = &[Self]> {
        buttons.chunks(MAX_BUTTONS_A_ROW).take(MAX_ROWS)
    }
}

impl AnswerEmbed {
    /// A copy within Discord's limits, each part's and the total. If there is
    /// too much, the last fields are dropped first.
    #[must_use]
    pub fn fitted(&self) -> Self {
        let mut left = MAX_EMBED;
        let mut take = |text: &str, limit: usize| {
            let text = shortened(text, limit.min(left));
            left -= text.chars().count();
            text
        };
        let title = take(&self.title, MAX_TITLE);
        let footer = take(&self.footer, MAX_FOOTER);
        let description = take(&self.description, MAX_DESCRIPTION);
        let mut fields = Vec::new();
        for (name, value) in self.fields.iter().take(MAX_FIELDS) {
            let name = filled(shortened(name, MAX_FIELD_NAME));
            let value = filled(shortened(value, MAX_FIELD_VALUE));
            let size = name.chars().count() + value.chars().count();
            if size > left {
                break;
            }
            left -= size;
            fields.push((name, value));
        }
        Self {
            title,
            description,
            fields,
            footer,
        }
    }
}

/// Replaces a blank text, which Discord refuses there.
fn filled(text: String) -> String {
    if text.trim().is_empty() {
        BLANK.to_owned()
    } else {
        text
    }
}

/// Cuts a text to at most `most` characters, ending in `…` if cut.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let Some(kept) = most.checked_sub(1) else {
        return String::new();
    };
    let mut short: String = text.chars().take(kept).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_discord_would_refuse_it() {
        #[track_caller]
        fn check(text: &str, most: usize, expected: &str) {
            assert_eq!(shortened(text, most), expected);
        }
        check("", 0, "");
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("äöüß", 3, "äö…");
        check("abc", 0, "");
        let answer = Answer::for_caller("x".repeat(3_000));
        assert_eq!(answer.text().chars().count(), MAX_CONTENT);
    }

    #[test]
    fn an_embed_fits_in_all_its_parts_and_together() {
        let embed = AnswerEmbed {
            title: "t".repeat(1_000),
            description: "d".repeat(9_000),
            fields: vec![("n".repeat(300), "v".repeat(2_000)); 40],
            footer: "page 1 of 2".to_owned(),
        };
        let fitted = embed.fitted();
        let count = |text: &String| text.chars().count();
        assert_eq!(count(&fitted.title), MAX_TITLE);
        assert_eq!(count(&fitted.description), MAX_DESCRIPTION);
        assert_eq!(fitted.footer, "page 1 of 2");
        assert_eq!(fitted.fields.len(), 1);
        let total = |embed: &AnswerEmbed| {
            let fields = embed.fields.iter().flat_map(|(name, value)| [name, value]);
            let texts = [&embed.title, &embed.description, &embed.footer];
            texts.into_iter().chain(fields).map(count).sum::<usize>()
        };
        assert_eq!(total(&fitted), 256 + 4_096 + 11 + 256 + 1_024);
        let long = AnswerEmbed {
            footer: "f".repeat(9_000),
            ..embed
        };
        let fitted = long.fitted();
        assert_eq!(total(&fitted), MAX_EMBED, "the description gives way");
        assert_eq!(count(&fitted.footer), MAX_FOOTER);
        assert!(fitted.fields.is_empty());
        let small = AnswerEmbed {
            fields: vec![("  ".to_owned(), String::new()); 40],
            ..AnswerEmbed::default()
        };
        let fitted = small.fitted();
        assert_eq!(fitted.fields.len(), MAX_FIELDS);
        assert_eq!(fitted.fields[0], (BLANK.to_owned(), BLANK.to_owned()));
        assert_eq!(fitted.fitted(), fitted);
    }

    #[test]
    fn buttons_stand_in_rows_of_five() {
        let mut answer = Answer::default();
        for page in 0..30 {
            let id = page.to_string();
            answer = answer.with_button("l".repeat(90), ButtonStyle::Primary, id);
        }
        let rows: Vec<usize> = AnswerButton::rows(&answer.buttons)
            .map(<[AnswerButton]>::len)
            .collect();
        assert_eq!(rows, [5; 5]);
        assert_eq!(answer.buttons[0].text().chars().count(), MAX_LABEL);
    }
}
