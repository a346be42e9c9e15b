//! What people wrote, as HTML: Discord's Markdown as near as `CommonMark` gives it, with names
//! for mentions, and then cleaned. HTML in a message is text.

use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream};
use serde_json::Value;

use clew_context::model::UnixMillis;
use clew_simulator::{Id, World};

/// The longest text that is rendered, in bytes: Discord's longest has 4,000 characters. The
/// rest of a longer one, which only an opened file can have, is left out.
const MOST_BYTES: usize = 16_000;
/// How deep quotes, lists and emphasis are shown in one another. Deep ones take long to clean.
const DEEPEST: usize = 16;
/// The first second, since 1970, that is not shown as a time.
const YEAR_10_000: i64 = 253_402_300_800;
/// What small print begins with.
const SMALL: &str = "-# ";
/// Elements that may remain.
const ELEMENTS: [&str; 18] = [
    "p",
    "br",
    "strong",
    "em",
    "del",
    "code",
    "pre",
    "blockquote",
    "ul",
    "ol",
    "li",
    "a",
    "span",
    "small",
    "h1",
    "h2",
    "h3",
    "hr",
];

/// What mentions are called.
pub trait Names {
    fn user(&self, id: u64) -> Option<String>;
    fn channel(&self, id: u64) -> Option<String>;
    fn role(&self, id: u64) -> Option<String>;
}

impl Names for World {
    fn user(&self, id: u64) -> Option<String> {
        let user = self.get_user(Id(id))?;
        Some(user.global_name.as_ref().unwrap_or(&user.name).clone())
    }

    fn channel(&self, id: u64) -> Option<String> {
        Some(self.get_channel(Id(id))?.name.clone())
    }

    fn role(&self, id: u64) -> Option<String> {
        let mut roles = self.guilds().flat_map(|guild| guild.roles.values());
        Some(roles.find(|role| role.id == Id(id))?.name.clone())
    }
}

/// The only elements, attributes and addresses that leave here.
static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::empty();
    cleaner
        .add_tags(ELEMENTS)
        .add_tag_attributes("a", ["href", "target"])
        .add_tag_attributes("span", ["data-user", "data-channel", "data-role"])
        .add_allowed_classes("span", ["mention"])
        .add_url_schemes(["http", "https"])
        // A path alone would lead into the playground itself.
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank");
    cleaner
});

/// Adds to a message object, and to the one it replies to, its texts as HTML.
pub(super) fn add(names: &dyn Names, message: &mut Value) {
    add_to(names, message, "content");
    let embeds = message.get_mut("embeds").and_then(Value::as_array_mut);
    for embed in embeds.into_iter().flatten() {
        add_to(names, embed, "description");
        let fields = embed.get_mut("fields").and_then(Value::as_array_mut);
        for field in fields.into_iter().flatten() {
            add_to(names, field, "value");
        }
    }
    if let Some(inner) = message.get_mut("referenced_message")
        && inner.is_object()
    {
        add(names, inner);
    }
}

/// Adds to what has a text under this key the text as HTML.
fn add_to(names: &dyn Names, holder: &mut Value, key: &str) {
    if let Some(text) = holder[key].as_str() {
        holder["html"] = to_html(text, names).into();
    }
}

/// A text as HTML.
pub fn to_html(text: &str, names: &dyn Names) -> String {
    let text = end_quotes(&text[..text.floor_char_boundary(MOST_BYTES)]);
    let events = Parser::new_ext(&text, Options::ENABLE_STRIKETHROUGH);
    let mut rendering = Rendering {
        names,
        events: Vec::new(),
        verbatim: 0,
        depth: 0,
        is_small: false,
        begins_line: true,
    };
    for event in TextMergeStream::new(events.map(as_discord)) {
        rendering.take(event);
    }
    let mut html = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut html, rendering.events.into_iter());
    CLEANER.clean(&html).to_string()
}

/// Ends each quote with its line, as Discord does; in `CommonMark` the next line would go on.
/// What begins with `>>>` quotes all that follows.
fn end_quotes(text: &str) -> String {
    let mut ended = String::with_capacity(text.len() + 16);
    let mut in_quote = false;
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        in_code ^= line.matches("```").count() % 2 == 1;
        let is_quote = line.starts_with("> ") && !in_code;
        if in_quote && !is_quote {
            ended.push('\n');
        }
        in_quote = is_quote;
        ended.push_str(line);
    }
    ended
}

/// What Discord understands differently: HTML is text, a line's end is one, and an image is a
/// link to it.
fn as_discord(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::SoftBreak => Event::HardBreak,
        Event::Start(Tag::Image {
            link_type,
            dest_url,
            id,
            ..
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url,
            title: CowStr::Borrowed(""),
            id,
        }),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        other => other,
    }
}

/// Events on their way to HTML.
struct Rendering<'a> {
    names: &'a dyn Names,
    events: Vec<Event<'a>>,
    /// Inside code or a link, where nothing is a mention or an address.
    verbatim: usize,
    /// Quotes, lists, items and emphasis that are open.
    depth: usize,
    /// Whether small print is open.
    is_small: bool,
    begins_line: bool,
}

impl<'a> Rendering<'a> {
    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Text(text) if self.verbatim == 0 => {
                let small = text.strip_prefix(SMALL).filter(|_| self.begins_line);
                if small.is_some() {
                    self.is_small = true;
                    self.html("<small>".to_owned());
                }
                self.text(small.unwrap_or(&text));
                self.begins_line = false;
                return;
            }
            Event::Start(Tag::CodeBlock(_) | Tag::Link { .. }) => self.verbatim += 1,
            Event::End(TagEnd::CodeBlock | TagEnd::Link) => {
                self.verbatim = self.verbatim.saturating_sub(1);
            }
            Event::Start(ref tag) if nests(tag.to_end()) => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return;
                }
            }
            Event::End(end) if nests(end) => {
                self.depth -= 1;
                if self.depth >= DEEPEST {
                    return;
                }
            }
            _ => {}
        }
        let ends_line = matches!(
            event,
            Event::HardBreak | Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph)
        );
        if ends_line && std::mem::take(&mut self.is_small) {
            self.html("</small>".to_owned());
        }
        self.begins_line = ends_line;
        self.events.push(event);
    }

    /// A text with its mentions and addresses.
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some((at, length, html)) = self.special(rest) {
            self.plain(&rest[..at]);
            self.html(html);
            rest = &rest[at + length..];
        }
        self.plain(rest);
    }

    /// The first mention or address: where it is, how long, and its HTML.
    fn special(&self, text: &str) -> Option<(usize, usize, String)> {
        let mut from = 0;
        while let Some(found) = text[from..].find(['<', 'h']) {
            let at = from + found;
            let rest = &text[at..];
            let found = self.mention(rest).or_else(|| address(rest));
            if let Some((length, html)) = found {
                return Some((at, length, html));
            }
            from = at + 1;
        }
        None
    }

    fn mention(&self, text: &str) -> Option<(usize, String)> {
        let inside = text.strip_prefix('<')?;
        let (inside, _) = inside.split_once('>')?;
        let length = inside.len() + 2;
        let number = |digits: &str| digits.parse::<u64>().ok();
        if let Some(id) = inside.strip_prefix("@&").and_then(number) {
            return Some((length, mention("role", '@', id, self.names.role(id))));
        }
        if let Some(id) = inside.strip_prefix('#').and_then(number) {
            return Some((length, mention("channel", '#', id, self.names.channel(id))));
        }
        if let Some(user) = inside.strip_prefix('@') {
            let id = number(user.strip_prefix('!').unwrap_or(user))?;
            return Some((length, mention("user", '@', id, self.names.user(id))));
        }
        if let Some(time) = inside.strip_prefix("t:") {
            let seconds = time.split(':').next()?.parse::<i64>().ok()?;
            let known = (0..YEAR_10_000).contains(&seconds).then_some(seconds)?;
            let shown = format!("{} UTC", UnixMillis(known * 1_000).minute());
            return Some((length, shown));
        }
        let emoji = inside.strip_prefix("a:").or(inside.strip_prefix(':'))?;
        let (name, id) = emoji.split_once(':')?;
        number(id)?;
        Some((length, ammonia::clean_text(&format!(":{name}:"))))
    }

    fn plain(&mut self, text: &str) {
        if !text.is_empty() {
            self.events.push(Event::Text(text.to_owned().into()));
        }
    }

    fn html(&mut self, html: String) {
        self.events.push(Event::InlineHtml(html.into()));
    }
}

/// Whether it is a quote, a list, an item or emphasis.
const fn nests(end: TagEnd) -> bool {
    matches!(
        end,
        TagEnd::BlockQuote(_)
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
    )
}

fn mention(kind: &str, sign: char, id: u64, name: Option<String>) -> String {
    let name = name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "unknown".to_owned());
    let name = ammonia::clean_text(&name);
    format!(r#"<span class="mention" data-{kind}="{id}">{sign}{name}</span>"#)
}

/// An address that stands there without being marked as a link.
fn address(text: &str) -> Option<(usize, String)> {
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return None;
    }
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'));
    let address = &text[..end.unwrap_or(text.len())];
    let address = address.trim_end_matches(['.', ',', ':', ';', '!', '?', ')', '\'']);
    let shown = ammonia::clean_text(address);
    Some((address.len(), format!(r#"<a href="{shown}">{shown}</a>"#)))
}

#[cfg(test)]
mod tests;
