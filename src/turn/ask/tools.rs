//! The tools of a turn: what the model called, what came of it, and how later requests
//! show that.

mod of_servers;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::config::Search;
use crate::engine::citations::{self, Cited};
use crate::engine::sources::elsewhere;
use crate::memory::{Keywords, ToolRound};
use crate::model::{Agent, BuiltIn, ToolDefinition, ToolName};
use crate::tools::{
    self, Arguments, Asker, DiscordSearch, ToolError, ToolImage, ToolResult, TurnSearches,
};
use clew_context::collect::Reads;
use clew_context::discord::Live;
use clew_context::model::{ChatMessage, ContentSource, Limits, Readers, ToolCall};

use self::of_servers::{has_role, of_servers, roles};
use super::added::Added;
use super::consent::Asked;
use super::rounds::{Called, MAX_NAME, Round, fitting, framed, sendable};
use crate::llm::Completion;
use crate::turn::answer::TurnAnswer;
use crate::turn::background::Background;
use crate::turn::control::{Control, Order};
use crate::turn::gather::{Judged, TurnMaterial, TurnNames};
use crate::turn::image_room::ImageShare;
use crate::turn::{Turn, extract};
use clew_discord::send::FileUpload;

/// Calls of one answer that are run; models that mean it make a few.
const MAX_CALLS: usize = 8;
/// The rounds that may repeat a call; a repeated call is never run.
const MAX_REPETITIONS: usize = 2;
/// How many of them run at the same time.
const MAX_AT_ONCE: usize = 4;
/// The most bytes of a call's arguments.
const MAX_ARGUMENTS: usize = 8_000;
/// The most messages and channels that a turn may be made from: each of its rows
/// carries them.
const MAX_SOURCES: usize = 300;
/// Images of tools that an answer is posted with; Discord takes ten files.
const MAX_ATTACHED: usize = 8;
/// Below this, tool text is not shortened further to fit a model.
const MIN_PROMPT_CHARS: usize = 2_000;
/// What tools gave in one request, in Unicode scalars; the oldest results shrink to a line.
const MAX_PROMPT_CHARS: usize = 48_000;
/// Instead of an answer that was nothing but marks of what may not be cited.
const NO_WORDS: &str = "…";
/// What is shown of a result that may not be shown any more.
const GONE: &str = "(What this showed was changed or removed.)";

/// The tools of a turn, as far as they have been called.
pub(super) struct ToolLoop<'a> {
    turn: &'a Turn<'a>,
    offered: Vec<ToolDefinition>,
    rounds: Vec<Round>,
    /// What the asker of an agent run adds.
    added: Added<'a>,
    /// Calls, by name and arguments, with the rounds in which the model made them.
    called: HashMap<(String, String), BTreeSet<usize>>,
    /// What the results were made from.
    sources: BTreeSet<ContentSource>,
    /// Those of them that the answer cites.
    cited: Vec<ContentSource>,
    /// REST calls made so far.
    fetches: usize,
    /// What Discord's search gave so far.
    searches: TurnSearches,
    /// What people were asked to allow so far.
    asked: Asked,
    /// What the images of results take in memory.
    image_shares: Vec<ImageShare>,
    /// The most Unicode scalars of results in one request.
    max_chars: usize,
}

/// What a turn called, to be stored with it.
#[derive(Debug, Default)]
pub(in crate::turn) struct ToolsUsed {
    pub(in crate::turn) rounds: Vec<ToolRound>,
    /// What the results were made from.
    pub(in crate::turn) sources: Vec<ContentSource>,
    /// Those of them that the answer cites.
    pub(in crate::turn) cited: Vec<ContentSource>,
}

impl<'a> ToolLoop<'a> {
    pub(super) fn new(turn: &'a Turn<'a>, material: &TurnMaterial) -> Self {
        let background = material.background.as_ref();
        let agent = background.filter(|_| turn.services.settings.tools.is_on());
        Self {
            turn,
            offered: agent.map_or_else(Vec::new, |one| offered(turn, material, &one.agent)),
            rounds: Vec::new(),
            added: Added::new(turn),
            called: HashMap::new(),
            sources: BTreeSet::new(),
            cited: Vec::new(),
            fetches: 0,
            searches: TurnSearches::default(),
            asked: Asked::default(),
            image_shares: Vec::new(),
            max_chars: MAX_PROMPT_CHARS,
        }
    }

    /// The tools that the next request offers; none after the last round, and none once the
    /// model makes the same call again and again.
    pub(super) fn offered(&self) -> &[ToolDefinition] {
        let turn = self.turn;
        let has_rounds = self.rounds.len() < turn.max_tool_rounds();
        if has_rounds && !self.goes_in_circles() && !turn.tokens_run_low() {
            &self.offered
        } else {
            &[]
        }
    }

    /// The messages of the next request to a server: the prompt's, then each round's calls
    /// and results, and what the asker of a run adds, where it came. `room` is what the model's
    /// window holds in tokens; images go where the model takes them.
    pub(super) fn messages<'p>(
        &self,
        prompt: Cow<'p, [ChatMessage]>,
        nonce: &str,
        room: Option<usize>,
        server: usize,
        takes_images: bool,
    ) -> Cow<'p, [ChatMessage]> {
        if self.rounds.is_empty() && self.added.is_empty() {
            return prompt;
        }
        let mut messages = prompt.into_owned();
        let room = self.max_chars.min(room.unwrap_or(usize::MAX));
        let rounds = fitting(&self.rounds, room).into_iter().zip(&self.rounds);
        for (at, (round, made)) in rounds.enumerate() {
            messages.extend(self.added.after(at));
            let calls = round.calls.iter();
            let calls = calls.map(|(call, _)| ToolCall {
                extra: call.extra.clone().filter(|_| made.server == server),
                ..call.clone()
            });
            messages.push(ChatMessage::ToolCalls {
                content: round.said,
                calls: calls.collect(),
            });
            let results = round.calls.into_iter().zip(&made.calls);
            messages.extend(
                results.map(|((call, text), called)| ChatMessage::ToolResult {
                    call_id: call.id,
                    content: called.with_advice(framed(nonce, &text), nonce),
                }),
            );
            messages.extend(made.images(nonce).filter(|_| takes_images));
        }
        messages.extend(self.added.after(self.rounds.len()));
        Cow::Owned(messages)
    }

    /// Halves what results may take in a request that was too long. Returns whether that
    /// may help.
    pub(super) fn shorten(&mut self) -> bool {
        let results = self.rounds.iter().flat_map(|round| &round.calls);
        let chars: usize = results
            .map(|called| called.result.text.chars().count())
            .sum();
        let halved = halved(chars, self.max_chars);
        self.max_chars = halved.unwrap_or(self.max_chars);
        halved.is_some()
    }

    /// Runs the calls of a server's answer, unless an order comes.
    pub(super) async fn run(
        &mut self,
        material: &TurnMaterial,
        server: usize,
        said: String,
        calls: Vec<ToolCall>,
        control: &mut Control,
    ) -> Result<(), Order> {
        let Some(background) = &material.background else {
            return Ok(());
        };
        let before: usize = self.rounds.iter().map(|round| round.calls.len()).sum();
        let mut checked = Vec::with_capacity(calls.len());
        for (at, call) in calls.into_iter().enumerate() {
            let arguments = self.check(&call, at);
            checked.push((call, arguments));
        }
        let names = checked.iter();
        let names = names.filter_map(|(call, _)| self.named(&call.name));
        let activity = &self.turn.job.activity;
        activity.calls(&names.collect::<Vec<_>>());
        let judged = Judged::now(self.turn.services);
        let running = Box::pin(self.results(material, background, &checked));
        let (results, fetches) = match control.unless_ordered(running).await {
            Ok(done) => done,
            Err(order) => {
                let round = self.rounds.len() + 1;
                self.asked.give_up(self.turn, round, &order).await;
                return Err(order);
            }
        };
        activity.called();
        self.fetches += fetches;
        let calls = checked.into_iter().enumerate();
        let calls = calls.map(|(at, (call, arguments))| sendable(before + at, call, &arguments));
        let calls: Vec<ToolCall> = calls.collect();
        let results = calls.into_iter().zip(results);
        let calls = results.map(|(call, result)| self.take(call, result));
        let calls = calls.collect();
        self.rounds.push(Round {
            server,
            said,
            calls,
            judged,
        });
        Ok(())
    }

    /// Judges results once more, right before a request: of what changed, was deleted or may
    /// not be shown any more only a line stays.
    pub(super) fn recheck(&mut self) {
        self.added.recheck(self.rounds.len());
        let now = Judged::now(self.turn.services);
        for round in &mut self.rounds {
            let may_show = round.judged.may_show(self.turn, &now);
            let calls = round.calls.iter_mut();
            for called in calls.filter(|called| !called.result.sources.iter().all(&may_show)) {
                GONE.clone_into(&mut called.result.text);
                called.result.sources.clear();
                called.result.output = None;
            }
            drop(may_show);
            round.judged = now.clone();
        }
    }

    /// Whether all results, and what was added, may still be shown as they are.
    pub(super) fn stands(&self) -> bool {
        let now = Judged::now(self.turn.services);
        let stands = |round: &Round| {
            let may_show = round.judged.may_show(self.turn, &now);
            let mut sources = round.calls.iter().flat_map(|called| &called.result.sources);
            sources.all(may_show)
        };
        self.added.stands() && self.rounds.iter().all(stands)
    }

    /// What was said, with numbers in place of the marks of messages that may be shown now.
    fn cited(&self, said: &str, is_whole: bool) -> Option<Cited> {
        if self.sources.is_empty() {
            return None;
        }
        let now = Judged::now(self.turn.services);
        let given = self.rounds.iter().flat_map(|round| {
            let may_show = round.judged.may_show(self.turn, &now);
            let sources = round.calls.iter().flat_map(|called| &called.result.sources);
            sources.copied().filter(may_show).collect::<Vec<_>>()
        });
        Some(citations::cited(said, is_whole, given))
    }

    /// What readers see of what was said by now.
    pub(super) fn shown<'t>(&self, said: &'t str) -> Cow<'t, str> {
        let cited = self.cited(said, false);
        cited.map_or(Cow::Borrowed(said), |cited| Cow::Owned(cited.text))
    }

    /// The answer as it is posted and stored: with links to what it cites.
    pub(super) fn finish(&mut self, mut answer: TurnAnswer) -> TurnAnswer {
        if let TurnAnswer::Whole(Completion { text, .. })
        | TurnAnswer::BrokenOff(text, _)
        | TurnAnswer::Part(text, _) = &mut answer
            && let Some(cited) = self.cited(text, true)
        {
            self.cited.clone_from(&cited.messages);
            *text = cited.with_links();
            if text.is_empty() {
                NO_WORDS.clone_into(text);
            }
        }
        answer
    }

    /// The images that the answer is posted with, as files.
    pub(super) fn attachments(&self) -> Vec<FileUpload> {
        let calls = self.rounds.iter().flat_map(|round| &round.calls);
        let images = calls.flat_map(|called| {
            let images = called.result.images.iter();
            images.map(|one| (&called.call.name, one))
        });
        let attached = images.filter(|(_, one)| one.is_attached);
        let attached = (1..).zip(attached).take(MAX_ATTACHED);
        let file = |(number, (name, one)): (usize, (&String, &ToolImage))| {
            let kind = one.image.kind.as_str().trim_start_matches("image/");
            (format!("{name}-{number}.{kind}"), one.image.bytes.to_vec())
        };
        attached.map(file).collect()
    }

    /// What is stored of the turn.
    pub(super) fn used(self) -> ToolsUsed {
        ToolsUsed {
            rounds: fitting(&self.rounds, self.max_chars),
            sources: self.sources.into_iter().collect(),
            cited: self.cited,
        }
    }

    /// The arguments of the call at this place of an answer, if it is to be run.
    fn check(&mut self, call: &ToolCall, at: usize) -> Result<Arguments, ToolError> {
        if at >= MAX_CALLS {
            return Err(ToolError::TooMany);
        }
        let text = Some(&call.arguments).filter(|text| text.len() <= MAX_ARGUMENTS);
        let arguments = text.and_then(|text| Arguments::parse(text));
        // Of arguments that cannot be read the beginning tells them apart.
        let unread = || call.arguments.chars().take(MAX_NAME).collect();
        // One that does not exist is the same whatever it is given.
        let is_known = self.named(&call.name).is_some();
        let canonical = match &arguments {
            _ if !is_known => String::new(),
            Some(arguments) => arguments.canonical(),
            None => unread(),
        };
        let rounds = self.called.entry((call.name.clone(), canonical));
        let rounds = rounds.or_default();
        let is_new = rounds.is_empty();
        rounds.insert(self.rounds.len());
        match arguments {
            None => Err(ToolError::Arguments),
            Some(_) if !is_new && is_known => Err(ToolError::Repeated),
            Some(arguments) => Ok(arguments),
        }
    }

    /// The tool of this name: one of ours, or another's that was offered.
    fn named(&self, name: &str) -> Option<ToolName> {
        let is_known = |tool: &ToolName| {
            tool.built_in().is_some() || self.offered.iter().any(|one| one.name == *tool)
        };
        ToolName::from_word(name).filter(is_known)
    }

    /// Whether a call was repeated so often that another round would bring no more.
    fn goes_in_circles(&self) -> bool {
        let mut rounds = self.called.values();
        rounds.any(|rounds| rounds.len() > MAX_REPETITIONS)
    }

    /// What came of each call, and the REST calls made for them.
    async fn results(
        &self,
        material: &TurnMaterial,
        background: &Background,
        calls: &[(ToolCall, Result<Arguments, ToolError>)],
    ) -> (Vec<ToolResult>, usize) {
        let turn = self.turn;
        let services = turn.services;
        turn.refresh_roles().await;
        let live = Live::new(services.rest.reader());
        let opted_out = services.opt_outs.current();
        let limits = Limits {
            max_fetches: turn.max_tool_fetches().saturating_sub(self.fetches),
            fetch_timeout: services.settings.tools.timeout,
            ..services.settings.limits
        };
        let reads = Reads::new(&live, &services.negative_cache, &opted_out, &limits);
        let said = extract::said(turn, material, background);
        let names = TurnNames::new(turn, material.collected.turn.channel.as_ref());
        let here = turn.trigger().channel;
        let reads_here = material.collected.turn.asker_access.may_read();
        let is_proxied = turn.proxy().is_some();
        let readers = |channel| {
            if channel == here && !reads_here || channel != here && is_proxied {
                Readers::Nobody
            } else {
                turn.readers(channel)
            }
        };
        let read = elsewhere(self.sources.iter().copied(), here);
        let mut seen = material.linked(turn);
        seen.extend(background.inherited.sources().chain(read));
        let (roles, has_role) = (roles(turn), has_role(turn));
        let asker = Asker {
            ids: turn.ids,
            place: &background.place,
            docs: &background.agent.docs,
            task: turn.job.run.as_ref().map(|slot| slot.run().id.get()),
            owns_nothing: is_proxied,
            trigger: turn.trigger().id,
            said: &said,
            seen: &seen,
            us: &material.collected.turn.us,
            max_message_chars: limits.max_msg_chars,
            names: &names,
            readers: &readers,
            guild_state: &services.guild_state,
            reads: &reads,
            search: self.discord_search(),
            of_servers: services
                .tool_servers
                .are_any()
                .then(|| of_servers(turn, material, &background.agent, &roles, &has_role)),
            window: &services.window,
            opt_outs: &services.opt_outs,
            memory: &services.memory,
        };
        let is_of_server = |name: &str| BuiltIn::from_word(name).is_none();
        let mut names = calls.iter().map(|(call, _)| &*call.name);
        let matters = asker.of_servers.is_some() && names.any(is_of_server);
        let has_read = self.has_read_elsewhere(&asker)
            || matters && self.shows_what_was_read(material, background).await;
        let asker = (&asker, has_read);
        let mut results = Vec::with_capacity(calls.len());
        for some in calls.chunks(MAX_AT_ONCE) {
            let running = some
                .iter()
                .map(|(call, arguments)| self.result(asker, &call.name, arguments.as_ref()));
            results.extend(join_all(running).await);
        }
        (results, reads.used())
    }

    fn discord_search(&self) -> Option<DiscordSearch<'_>> {
        let services = self.turn.services;
        let is_asked = services.settings.tools.search == Search::Discord;
        is_asked.then(|| DiscordSearch {
            rest: services.rest.reader(),
            servers: &services.searched_servers,
            turn: &self.searches,
            is_program: false,
        })
    }

    async fn result(
        &self,
        (asker, has_read): (&Asker<'_>, bool),
        name: &str,
        arguments: Result<&Arguments, &ToolError>,
    ) -> ToolResult {
        let began = Instant::now();
        let time = self.turn.services.settings.tools.timeout;
        let is_ours = BuiltIn::from_word(name).is_some();
        let result = match (arguments, asker.of_servers) {
            (Err(error), _) => ToolResult::of_error(error),
            (Ok(arguments), Some(tools)) if !is_ours && self.named(name).is_some() => {
                let agreed = self.agreed(asker, has_read, name, arguments).await;
                match agreed {
                    Ok((tool, allowed)) => {
                        let call = (name, arguments);
                        let result = tools::call_of_server(asker, tools, &tool, call, time).await;
                        self.asked.is_done(&allowed);
                        ToolResult {
                            consent: Some(allowed.consent),
                            ..result
                        }
                    }
                    Err((consent, error)) => ToolResult {
                        consent: Some(consent),
                        ..ToolResult::of_error(&error)
                    },
                }
            }
            (Ok(arguments), _) => tools::call(&self.offered, asker, name, arguments, time).await,
        };
        let (tool, round) = (self.named(name), self.rounds.len() + 1);
        let report = &self.turn.report;
        report.tool_called(tool, &result, began.elapsed(), round);
        result
    }

    /// Takes a result with its sources, and with its images as far as there is room.
    fn take(&mut self, call: ToolCall, result: ToolResult) -> Called {
        let mut result = unless_too_much(&self.sources, result);
        let (turn, shares) = (self.turn, &mut self.image_shares);
        result.images.retain(|one| {
            let bytes = one.image.bytes.len() as u64;
            let share = turn.services.image_room.take(turn.payer(), bytes);
            let is_taken = share.is_some();
            shares.extend(share);
            is_taken
        });
        self.sources.extend(&result.sources);
        Called { call, result }
    }
}

/// A result, unless the turn would be made from too much with it.
fn unless_too_much(known: &BTreeSet<ContentSource>, result: ToolResult) -> ToolResult {
    let sources = result.sources.iter();
    let new: BTreeSet<_> = sources.filter(|one| !known.contains(one)).collect();
    if known.len() + new.len() > MAX_SOURCES {
        ToolResult::of_error(&ToolError::TooMuch)
    } else {
        result
    }
}

/// The tools for who asks: through an app only those of ours that read, and nothing that is
/// kept.
fn offered(turn: &Turn<'_>, material: &TurnMaterial, agent: &Agent) -> Vec<ToolDefinition> {
    let mut offered = tools::offered(agent, turn.services.settings.tools.search);
    if turn.proxy().is_some() {
        offered.retain(|tool| tool.name.built_in().is_some_and(BuiltIn::only_reads));
        return offered;
    }
    if !turn.services.tool_servers.are_any() {
        return offered;
    }
    let said = Keywords::of(&turn.trigger().content);
    let roles = roles(turn);
    let has_role = has_role(turn);
    let is_named = |tool: &ToolName| {
        let names = agent.tools.as_ref();
        names.is_none_or(|names| names.contains(tool))
    };
    let tools = of_servers(turn, material, agent, &roles, &has_role);
    offered.extend(tools.offered(&said, is_named));
    offered
}

/// Half of what results take of their room; none if less would not help.
fn halved(chars: usize, room: usize) -> Option<usize> {
    let may_help = chars > MIN_PROMPT_CHARS && room > MIN_PROMPT_CHARS;
    may_help.then(|| (chars.min(room) / 2).max(MIN_PROMPT_CHARS))
}

#[cfg(test)]
mod tests;
