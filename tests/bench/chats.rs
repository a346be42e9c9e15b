//! Chats in which people marked which message answers which, for `quality` and `learn`:
//! `CLEW_CHATS` names a folder, which is searched with all below it for `NAME.ascii.txt` and
//! `NAME.annotation.txt` as the corpus of Kummerfeld et al. (ACL 2019) has them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clew_context::engine::conversation::{Reply, Utterance};
use clew_context::model::{Speaker, UnixMillis, UserId};

/// Messages before a query that are looked at, as many as a channel's window holds.
pub(crate) const WINDOW: usize = 200;
/// Lines before this one are there to be looked back at. Most files annotate from line 1,000 on.
const FIRST_ANNOTATED: usize = 200;
/// Characters of a line besides the name and the text: `[03:04] <>`, two spaces and the end.
const FRAME: usize = 12;
/// Names that are words as well, and seldom mean their bearer.
const WORDS: [&str; 17] = [
    "the", "and", "you", "for", "not", "what", "that", "this", "with", "how", "can", "ok", "hi",
    "hello", "yes", "but", "all",
];

pub(crate) struct Chat {
    pub(crate) name: String,
    pub(crate) messages: Vec<Message>,
}

/// One message of a chat.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) author: UserId,
    pub(crate) name: String,
    pub(crate) at: UnixMillis,
    pub(crate) text: String,
    /// Whom it mentions, the first one first.
    pub(crate) mentions: Vec<UserId>,
    /// Where in the text their names stand.
    named_at: Vec<Range<usize>>,
    /// Characters of its line.
    pub(crate) chars: usize,
    /// The messages that it answers, if it is annotated.
    pub(crate) answers: Option<Vec<usize>>,
    /// Whether it is annotated to begin a conversation.
    pub(crate) begins: bool,
    /// The number of its line; joins and the like have lines as well.
    pub(crate) line: usize,
}

/// A message of which is known what belongs to its conversation.
pub(crate) struct Query {
    /// Its index.
    pub(crate) message: usize,
    /// The messages before it that are connected with it by answers known then.
    pub(crate) conversation: BTreeSet<usize>,
}

impl Chat {
    /// The first of the messages in so many lines before a message's.
    pub(crate) fn before(&self, message: usize, lines: usize) -> usize {
        let from = self.messages[message].line.saturating_sub(lines);
        self.messages.partition_point(|said| said.line < from)
    }

    /// The message with as many before it as a window holds.
    pub(crate) fn window(&self, message: usize, most: usize) -> Vec<Utterance<'_>> {
        let first = message.saturating_sub(most);
        let messages = self.messages[first..=message].iter();
        messages.map(Message::utterance).collect()
    }

    /// All messages.
    pub(crate) fn utterances(&self) -> Vec<Utterance<'_>> {
        self.messages.iter().map(Message::utterance).collect()
    }

    /// The annotated messages, oldest first.
    pub(crate) fn queries(&self) -> Vec<Query> {
        // Which conversation a message is in, and the messages of each.
        let mut of: Vec<usize> = Vec::new();
        let mut conversations: Vec<BTreeSet<usize>> = Vec::new();
        let mut queries = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            of.push(index);
            conversations.push(BTreeSet::from([index]));
            for answered in message.answers.iter().flatten() {
                let (joined, into) = (of[index], of[*answered]);
                if joined != into {
                    let members = std::mem::take(&mut conversations[joined]);
                    for member in &members {
                        of[*member] = into;
                    }
                    conversations[into].extend(members);
                }
            }
            if message.answers.is_some() {
                let mut conversation = conversations[of[index]].clone();
                conversation.remove(&index);
                queries.push(Query {
                    message: index,
                    conversation,
                });
            }
        }
        queries
    }
}

impl Message {
    /// Where in its text the first name of somebody stands.
    pub(crate) fn first_name_at(&self) -> Option<usize> {
        self.named_at.first().map(|place| place.start)
    }

    fn utterance(&self) -> Utterance<'_> {
        Utterance {
            speaker: Speaker::User(self.author),
            name: &self.name,
            at: self.at,
            text: &self.text,
            mentions: self.mentions.clone(),
            reply: Reply::Unknown,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment tells a bench where its data is"
)]
/// The files of the folder that `CLEW_CHATS` names, and of those below it, whose names end
/// so, in order; `None` with a line that says why.
pub(crate) fn files(ending: &str) -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("CLEW_CHATS") else {
        println!("  CLEW_CHATS names no folder; see docs/conversation.md and docs/recall.md");
        return None;
    };
    let mut files = Vec::new();
    find(Path::new(&folder), ending, &mut files);
    files.sort();
    if files.is_empty() {
        println!("  {} holds no *{ending}", Path::new(&folder).display());
        return None;
    }
    Some(files)
}

/// The chats among them, by name.
pub(crate) fn load() -> Option<Vec<Chat>> {
    let files = files(".ascii.txt")?;
    Some(files.iter().map(|file| read(file)).collect())
}

fn find(folder: &Path, ending: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, ending, files);
        } else if path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
}

fn read(file: &Path) -> Chat {
    let name = file.file_name().unwrap().to_string_lossy();
    let name = name.trim_end_matches(".ascii.txt").to_owned();
    let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    let annotation = file.with_file_name(format!("{name}.annotation.txt"));
    let annotation = fs::read_to_string(&annotation).unwrap_or_default();
    let mut answers: HashMap<usize, BTreeSet<usize>> = HashMap::new();
    for line in annotation.lines() {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
        if let (Some(one), Some(other)) = (numbers.next(), numbers.next()) {
            let (one, other): (usize, usize) = (one, other);
            answers
                .entry(one.max(other))
                .or_default()
                .insert(one.min(other));
        }
    }
    let mut messages: Vec<Message> = Vec::new();
    let mut by_line: HashMap<usize, usize> = HashMap::new();
    let mut people: HashMap<String, UserId> = HashMap::new();
    let (mut day, mut last) = (0, 0);
    for (number, line) in text.lines().enumerate() {
        let Some((minutes, nick, said)) = parts(line) else {
            continue;
        };
        // The clock went back: past midnight.
        if minutes + 600 < last {
            day += 24 * 60;
        }
        last = minutes;
        let next = UserId::new(people.len() as u64);
        let author = *people.entry(nick.to_lowercase()).or_insert(next);
        let marked = answers.get(&number).filter(|_| number >= FIRST_ANNOTATED);
        by_line.insert(number, messages.len());
        let index = messages.len();
        messages.push(Message {
            author,
            name: nick.to_owned(),
            at: UnixMillis((day + minutes) * 60_000),
            text: said.to_owned(),
            mentions: Vec::new(),
            named_at: Vec::new(),
            chars: nick.chars().count() + said.chars().count() + FRAME,
            answers: marked.map(|marked| {
                let known = marked.iter().filter_map(|line| by_line.get(line).copied());
                known.filter(|answered| *answered != index).collect()
            }),
            begins: marked.is_some_and(|marked| marked.contains(&number)),
            line: number,
        });
    }
    for message in &mut messages {
        (message.mentions, message.named_at) = mentions(&message.text, message.author, &people)
            .into_iter()
            .unzip();
    }
    Chat { name, messages }
}

/// Minutes of the day, the author and the text: `[03:04] <ann> hello`, ` [03:04] * ann waves`.
fn parts(line: &str) -> Option<(i64, &str, &str)> {
    // Other communities' lines begin with the channel and the day: `rust 2018-05-29 [21:20:37] ...`.
    let (before, rest) = line.split_once('[')?;
    if before.split_whitespace().count() > 2 {
        return None;
    }
    let (clock, rest) = rest.split_once("] ")?;
    let mut clock = clock.split(':');
    let hours = clock.next()?.parse::<i64>().ok()?;
    let minutes = hours * 60 + clock.next()?.parse::<i64>().ok()?;
    let action = || {
        let rest = rest.strip_prefix("* ")?;
        Some(rest.split_once(' ').unwrap_or((rest, "")))
    };
    let spoken = rest.strip_prefix('<');
    let (nick, said) = spoken.map_or_else(action, |rest| rest.split_once('>'))?;
    Some((minutes, nick, said.trim_matches([' ', '\t'])))
}

/// The people whose names the text contains, each with where: on Discord they would be
/// mentioned.
fn mentions(
    text: &str,
    author: UserId,
    people: &HashMap<String, UserId>,
) -> Vec<(UserId, Range<usize>)> {
    let is_edge = |c: char| c.is_whitespace() || ",:;!?()<>\"".contains(c);
    let mut mentions = Vec::new();
    let mut at = 0;
    for typed in text.split(is_edge) {
        let place = at..at + typed.len();
        at = place.end + text[place.end..].chars().next().map_or(0, char::len_utf8);
        let word = typed.to_lowercase();
        let forms = [
            word.as_str(),
            word.trim_start_matches('@'),
            word.trim_end_matches(['.', '\'']),
        ];
        let is_name = |form: &&&str| form.len() > 2 && !WORDS.contains(form);
        let mut forms = forms.iter().filter(is_name);
        let named = forms.find_map(|form| people.get(*form).copied());
        if let Some(named) = named.filter(|named| *named != author) {
            mentions.push((named, place));
        }
    }
    mentions
}

impl Chat {
    /// The community that it is of, by its name: `rust.0`; those of #ubuntu begin with a date.
    pub(crate) fn community(&self) -> &str {
        let name = self.name.split('.').next().unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            "ubuntu"
        } else {
            name
        }
    }

    /// The same chat with other messages.
    fn with(&self, messages: Vec<Message>) -> Self {
        Self {
            name: self.name.clone(),
            messages,
        }
    }

    /// The same with names in its texts only: nobody is mentioned.
    pub(crate) fn without_mentions(&self) -> Self {
        let mut messages = self.messages.clone();
        for message in &mut messages {
            message.mentions.clear();
            message.named_at.clear();
        }
        self.with(messages)
    }

    /// Its longer conversations one after the other, as in a channel where nobody talks
    /// across others.
    pub(crate) fn one_at_a_time(&self) -> Self {
        const SHORTEST: usize = 12;
        const PAUSE: i64 = 20 * 60_000;
        const LONGEST_GAP: i64 = 10 * 60_000;
        let mut conversations: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (message, conversation) in self.conversations().into_iter().enumerate() {
            conversations.entry(conversation).or_default().push(message);
        }
        let mut messages: Vec<Message> = Vec::new();
        let mut moved = HashMap::new();
        let mut at = 0;
        for members in conversations
            .values()
            .filter(|members| members.len() >= SHORTEST)
        {
            let mut last = None;
            for member in members {
                let mut message = self.messages[*member].clone();
                let now = message.at.0;
                at += last.map_or(PAUSE, |last: i64| (now - last).min(LONGEST_GAP));
                last = Some(now);
                message.at = UnixMillis(at);
                for answered in message.answers.iter_mut().flatten() {
                    *answered = moved[answered];
                }
                moved.insert(*member, messages.len());
                message.line = messages.len();
                messages.push(message);
            }
        }
        self.with(messages)
    }

    /// The same with all pauses so many times as long.
    pub(crate) fn slower(&self, times: i64) -> Self {
        let mut messages = self.messages.clone();
        let (mut at, mut last) = (0, self.messages.first().map_or(0, |first| first.at.0));
        for message in &mut messages {
            at += (message.at.0 - last).max(0) * times;
            last = message.at.0;
            message.at = UnixMillis(at);
        }
        self.with(messages)
    }

    /// The same with fewer people: about half of them are somebody else.
    pub(crate) fn of_fewer_people(&self) -> Self {
        const HALF: u64 = 60;
        let mut names: HashMap<UserId, String> = HashMap::new();
        for message in &self.messages {
            names
                .entry(message.author)
                .or_insert_with(|| message.name.clone());
        }
        let instead = |author: UserId| {
            let hash = author.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let other = UserId::new(hash / 100 % names.len() as u64);
            let is_other = hash % 100 < HALF && names.contains_key(&other);
            if is_other { other } else { author }
        };
        let mut messages = self.messages.clone();
        for message in &mut messages {
            message.author = instead(message.author);
            message.name.clone_from(&names[&message.author]);
        }
        self.with(messages)
    }

    /// The conversation of each message in the end, by that one's first message.
    fn conversations(&self) -> Vec<usize> {
        let mut of: Vec<usize> = (0..self.messages.len()).collect();
        for (index, message) in self.messages.iter().enumerate() {
            for answered in message.answers.iter().flatten() {
                let (one, other) = (of[index], of[*answered]);
                for into in of.iter_mut().filter(|into| **into == one.max(other)) {
                    *into = one.min(other);
                }
            }
        }
        of
    }

    /// The same with this many of a hundred names left, as if people wrote out few.
    pub(crate) fn naming(&self, percent: u64) -> Self {
        let mut messages = self.messages.clone();
        for (index, message) in (0_u64..).zip(&mut messages) {
            let kept = |nth: u64| (index * 31 + nth).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let is_kept: Vec<bool> = (0..)
                .zip(&message.mentions)
                .map(|(nth, _)| kept(nth) % 100 < percent)
                .collect();
            for (place, _) in message
                .named_at
                .iter()
                .zip(&is_kept)
                .filter(|(_, kept)| !**kept)
            {
                let blank = " ".repeat(place.len());
                message.text.replace_range(place.clone(), &blank);
            }
            let mut kept = is_kept.iter();
            message.mentions.retain(|_| kept.next() == Some(&true));
        }
        self.with(messages)
    }
}
