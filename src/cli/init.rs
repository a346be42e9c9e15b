//! `clew init`: asks for what a bot needs, tries it, and writes `.env`.
//!
//! Secrets come by prompt without echo, from files or from standard input; never as an
//! argument, which other users of the machine could read.

mod ask;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tempfile::NamedTempFile;
use tracing::level_filters::LevelFilter;

use super::exit::{Ended, cannot, failed};
use crate::config::{Config, ConfigErrors, LogFormat};
use crate::doctor::{self, Finding, Outcome};
use crate::telemetry::init_log;
use clew_context::engine::sanitise;
use clew_discord::invite;
use clew_store::model::StoreAddress;

/// Where the settings go.
const DOTENV: &str = ".env";
/// Where they went before, if they are replaced.
const BACKUP: &str = ".env.bak";

/// The most models that are listed.
const MAX_OFFERED: usize = 50;

/// As many short messages as fit `MEM_MAX_CHARS`, about.
const SHORT_MESSAGES: usize = 200;

/// What is set; what is missing is asked for on a terminal.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Read the bot's token from this file, `-` for standard input
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The model server, such as `https://api.openai.com/v1`; empty for none
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
    /// The model's name
    #[arg(long, value_name = "NAME", requires = "model_url")]
    model: Option<String>,
    /// Read the model server's key from this file, `-` for standard input
    #[arg(long, value_name = "FILE", requires = "model_url")]
    model_key_file: Option<PathBuf>,
    /// Where conversations and facts are kept
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
    /// What the model sees with a plain mention outside threads: `off`, `recent` or `conversation`
    #[arg(long, value_name = "WHICH")]
    lone_context: Option<String>,
    /// The most messages of a thread that the model sees; 200 suits short ones
    #[arg(long, value_name = "COUNT")]
    max_msgs: Option<String>,
    /// Replace `.env`; the old one is kept as `.env.bak`
    #[arg(long)]
    force: bool,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("`.env` is here already: --force replaces it, and keeps it as `.env.bak`")]
    Exists,
    #[error("no terminal to ask on: give {0}")]
    NotAsked(&'static str),
    #[error("both secrets from standard input: give a file for one of them")]
    TwoFromInput,
    #[error("cannot read {path}", path = .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Settings(#[from] ConfigErrors),
    #[error("nothing was written, since what was tried does not work")]
    Refused,
    #[error("cannot write `.env` into this folder")]
    Write(#[source] io::Error),
    #[error("cannot use the terminal")]
    Terminal(#[from] io::Error),
}

/// Sets the bot up. Exit codes: 0 written; 1 failed while running; 2 cannot be done so.
pub(super) async fn run(args: InitArgs) -> Ended {
    init_log(LevelFilter::ERROR, LogFormat::Text);
    let setup = Setup {
        args,
        asks: io::stdin().is_terminal() && io::stdout().is_terminal(),
        chosen: Vec::new(),
    };
    let done = setup.run().await;
    done.map_err(|error| match error {
        Error::Write(_) | Error::Terminal(_) => failed(error),
        error => cannot(error),
    })?;
    Ok(ExitCode::SUCCESS)
}

struct Setup {
    args: InitArgs,
    /// Whether somebody is there to ask.
    asks: bool,
    /// What was chosen so far, as names and values of settings.
    chosen: Vec<(String, String)>,
}

impl Setup {
    async fn run(mut self) -> Result<(), Error> {
        let dash = Path::new("-");
        if self.args.token_file.as_deref() == Some(dash)
            && self.args.model_key_file.as_deref() == Some(dash)
        {
            return Err(Error::TwoFromInput);
        }
        if Path::new(DOTENV).exists() && !self.args.force {
            return Err(Error::Exists);
        }
        // What the environment has wrong is not asked for here.
        self.config()?;
        let link = self.token().await?;
        self.model().await?;
        self.store().await?;
        self.lone_context()?;
        self.max_msgs()?;
        write(&self.chosen).map_err(Error::Write)?;
        let program = Config::program_of_process();
        let mut out = io::stdout();
        writeln!(out, "`.env` is written, readable for you alone.")?;
        writeln!(out, "Invite the bot to a server:\n  {link}")?;
        writeln!(out, "Then:\n  {program} doctor\n  {program} run")?;
        Ok(())
    }

    /// The settings with what was chosen.
    fn config(&self) -> Result<Config, ConfigErrors> {
        Config::of_environment_with(self.chosen.clone())
    }

    fn set(&mut self, name: &str, value: String) {
        self.chosen.retain(|(other, _)| other != name);
        self.chosen.push((name.to_owned(), value));
    }

    /// Takes the value of a setting, as given, else as typed: again while it cannot be used.
    fn take(
        &mut self,
        name: &'static str,
        given: Option<&str>,
        ask: impl Fn() -> io::Result<String>,
    ) -> Result<String, Error> {
        loop {
            let value = given.map_or_else(&ask, |given| Ok(given.to_owned()))?;
            self.set(name, value.clone());
            let Err(errors) = self.config() else {
                return Ok(value);
            };
            let mut problems = errors.problems.iter();
            let Some(problem) = problems.find(|problem| problem.subject == name) else {
                // Of a setting that is asked for next.
                return Ok(value);
            };
            if given.is_some() {
                return Err(Error::Settings(errors));
            }
            tell(&doctor::of_problem(problem))?;
        }
    }

    /// What a flag says, else nothing to ask for without a terminal.
    fn given(&self, flag: Option<&String>) -> Option<String> {
        flag.cloned().or((!self.asks).then(String::new))
    }

    /// Takes a token that Discord accepts, and returns the link that invites its bot.
    async fn token(&mut self) -> Result<String, Error> {
        loop {
            let given = match &self.args.token_file {
                Some(path) => Some(ask::secret_from(path)?),
                None if self.asks => None,
                None => {
                    return Err(Error::NotAsked(
                        "--token-file FILE, or - for standard input",
                    ));
                }
            };
            self.take("DISCORD_TOKEN", given.as_deref(), || {
                ask::secret("Bot token (it is not shown): ")
            })?;
            match doctor::application(&self.config()?).await {
                Ok((application, findings)) => {
                    findings.iter().try_for_each(tell)?;
                    return Ok(invite(application.id));
                }
                Err(finding) => self.refused(&finding, self.args.token_file.is_none())?,
            }
        }
    }

    /// Takes a model that answers, or none.
    async fn model(&mut self) -> Result<(), Error> {
        loop {
            let url = self.take(
                "LLM_BASE_URL",
                self.given(self.args.model_url.as_ref()).as_deref(),
                || ask::line("Model server, such as https://api.openai.com/v1 (Enter for none): "),
            )?;
            if url.is_empty() {
                return Ok(());
            }
            if self.args.model.is_none() && !self.asks {
                return Err(Error::NotAsked("--model NAME"));
            }
            let key = match &self.args.model_key_file {
                Some(path) => Some(ask::secret_from(path)?),
                None => self.given(None),
            };
            self.take("LLM_API_KEY", key.as_deref(), || {
                ask::secret("Its key (it is not shown, Enter for none): ")
            })?;
            let findings = match self.model_name().await? {
                Ok(()) => doctor::models(&self.config()?).await,
                Err(finding) => vec![finding],
            };
            let failed = findings.iter().find(|one| one.outcome == Outcome::Failed);
            if let Some(failed) = failed {
                self.refused(failed, self.args.model_url.is_none())?;
                continue;
            }
            return Ok(findings.iter().try_for_each(tell)?);
        }
    }

    /// Takes the name of a model; who is asked chooses among those that the server lists.
    async fn model_name(&mut self) -> Result<Result<(), Finding>, Error> {
        let mut names = Vec::new();
        if self.args.model.is_none() {
            let unnamed = [("LLM_MODEL".to_owned(), "unnamed".to_owned())];
            let chosen = self.chosen.iter().cloned().chain(unnamed);
            let config = Config::of_environment_with(chosen.collect())?;
            match doctor::model_names(&config).await {
                Ok(listed) => names = listed,
                Err(finding) => return Ok(Err(finding)),
            }
        }
        offer(&names)?;
        let question = match names.len() {
            0 => "Model: ",
            _ => "Model (a number or a name): ",
        };
        self.take("LLM_MODEL", self.args.model.clone().as_deref(), || {
            let typed = ask::line(question)?;
            let number = typed.parse::<usize>().ok();
            let listed = number.and_then(|number| names.get(number.checked_sub(1)?));
            Ok(listed.cloned().unwrap_or(typed))
        })?;
        Ok(Ok(()))
    }

    /// Takes a store that can be used.
    async fn store(&mut self) -> Result<(), Error> {
        loop {
            let (forms, usual) = (StoreAddress::FORMS, self.config()?.memory.store);
            let question = format!("Store ({forms}; Enter for {usual}): ");
            let given = self.given(self.args.store.as_ref());
            self.take("CONTEXT_STORE", given.as_deref(), || ask::line(&question))?;
            let findings = doctor::store(&self.config()?).await;
            match findings.iter().find(|one| one.outcome == Outcome::Failed) {
                None => return Ok(findings.iter().try_for_each(tell)?),
                Some(failed) => self.refused(failed, self.args.store.is_none())?,
            }
        }
    }

    /// Takes what a mention outside threads, without a reply, gets of its channel.
    fn lone_context(&mut self) -> Result<(), Error> {
        let given = self.given(self.args.lone_context.as_ref());
        self.take("LONE_CONTEXT", given.as_deref(), || {
            ask::line(
                "With a plain mention the model sees: off (its words alone), recent (the channel's \
                 last messages too) or conversation (those it belongs with; Enter for off): ",
            )
        })?;
        Ok(())
    }

    /// Takes how many messages are shown at most.
    fn max_msgs(&mut self) -> Result<(), Error> {
        let usual = self.config()?.limits.max_msgs;
        let question = format!(
            "Most messages of a thread that the model sees (short ones reach {usual} before \
             MEM_MAX_CHARS: {SHORT_MESSAGES} shows more, for more tokens; Enter for {usual}): "
        );
        let given = self.given(self.args.max_msgs.as_ref());
        self.take("MEM_MAX_MSGS", given.as_deref(), || ask::line(&question))?;
        Ok(())
    }

    /// Tells what does not work; the person may try again, a script may not.
    fn refused(&self, finding: &Finding, was_asked: bool) -> Result<(), Error> {
        tell(finding)?;
        if self.asks && was_asked {
            Ok(())
        } else {
            Err(Error::Refused)
        }
    }
}

/// Lists the models.
fn offer(names: &[String]) -> io::Result<()> {
    let mut out = io::stdout();
    for (number, name) in (1..).zip(names.iter().take(MAX_OFFERED)) {
        writeln!(out, "  {number:3}  {}", sanitise::line(name))?;
    }
    match names.len().saturating_sub(MAX_OFFERED) {
        0 => Ok(()),
        more => writeln!(out, "       and {more} more"),
    }
}

fn tell(finding: &Finding) -> io::Result<()> {
    super::doctor::line(&mut io::stdout(), finding)
}

/// Writes the settings whole, with mode 0600.
fn write(chosen: &[(String, String)]) -> io::Result<()> {
    let mut text = "# Written by `clew init`; .env.example lists all settings.\n".to_owned();
    for (name, value) in chosen.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("{name}={}\n", quoted(value)));
    }
    let mut file = NamedTempFile::new_in(".")?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match fs::rename(DOTENV, BACKUP) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    file.persist(DOTENV)?;
    Ok(())
}

/// A value as `.env` takes it: single quotes keep everything but themselves.
fn quoted(value: &str) -> String {
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let mut quoted = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_value_comes_back_from_the_file_as_it_was() {
        for value in [
            "plain",
            "with space",
            "$HOME ${X} \\ \"",
            "it's",
            "it's $5 \\ \"x\"",
            "#no comment",
        ] {
            let file = format!("NAME={}\n", quoted(value));
            let read = dotenvy::from_read_iter(file.as_bytes()).next();
            let (_, read) = read.unwrap().unwrap();
            assert_eq!(read, value, "{file}");
        }
    }
}
