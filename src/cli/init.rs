//! `clew init`: asks for what a bot needs, tries it, and writes `.env`.
//!
//! Secrets come by prompt without echo, from files or from standard input; never as an
//! argument, which other users of the machine could read.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tempfile::NamedTempFile;
use tracing::level_filters::LevelFilter;

use super::{CANNOT, FAILED, fail_with};
use crate::config::{Config, ConfigErrors, LogFormat};
use crate::doctor::{self, Finding, Outcome};
use crate::telemetry::init_log;
use clew_discord::invite;
use clew_store::model::StoreAddress;

/// Where the settings go.
const DOTENV: &str = ".env";
/// Where they went before, if they are replaced.
const BACKUP: &str = ".env.bak";

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
pub(super) async fn run(args: InitArgs) -> ExitCode {
    init_log(LevelFilter::ERROR, LogFormat::Text);
    match Setup::new(args).run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ (Error::Write(_) | Error::Terminal(_))) => fail_with(FAILED, &error),
        Err(error) => fail_with(CANNOT, &error),
    }
}

struct Setup {
    args: InitArgs,
    /// Whether somebody is there to ask.
    asks: bool,
    /// What was chosen so far, as names and values of settings.
    chosen: Vec<(String, String)>,
}

impl Setup {
    fn new(args: InitArgs) -> Self {
        Self {
            args,
            asks: io::stdin().is_terminal() && io::stdout().is_terminal(),
            chosen: Vec::new(),
        }
    }

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
        let link = self.token().await?;
        self.model().await?;
        self.store().await?;
        write(&self.chosen).map_err(Error::Write)?;
        let program = Config::program_of_process();
        let mut out = io::stdout();
        writeln!(out, "`.env` is written, readable for you alone.")?;
        writeln!(out, "Invite the bot to a server:\n  {link}")?;
        writeln!(out, "Then:\n  {program} doctor\n  {program} run")?;
        Ok(())
    }

    /// The settings with what was chosen.
    fn config(&self) -> Result<Config, Error> {
        Ok(Config::of_environment_with(self.chosen.clone())?)
    }

    fn set(&mut self, name: &str, value: String) {
        self.chosen.retain(|(other, _)| other != name);
        self.chosen.push((name.to_owned(), value));
    }

    /// Takes a token that Discord accepts, and returns the link that invites its bot.
    async fn token(&mut self) -> Result<String, Error> {
        loop {
            let token = match &self.args.token_file {
                Some(path) => secret_from(path)?,
                None if self.asks => secret("Bot token (it is not shown): ")?,
                None => {
                    return Err(Error::NotAsked(
                        "--token-file FILE, or - for standard input",
                    ));
                }
            };
            self.set("DISCORD_TOKEN", token);
            let config = self.config()?;
            match doctor::application(&config).await {
                Ok((application, findings)) => {
                    for finding in &findings {
                        tell(finding)?;
                    }
                    return Ok(invite(application.id));
                }
                Err(finding) => self.refused(&finding, self.args.token_file.is_none())?,
            }
        }
    }

    /// Takes a model that answers, or none.
    async fn model(&mut self) -> Result<(), Error> {
        loop {
            let url = match &self.args.model_url {
                Some(url) => url.clone(),
                None if self.asks => {
                    line("Model server, such as https://api.openai.com/v1 (Enter for none): ")?
                }
                None => String::new(),
            };
            if url.is_empty() {
                return Ok(());
            }
            let model = match &self.args.model {
                Some(model) => model.clone(),
                None if self.asks => line("Model: ")?,
                None => return Err(Error::NotAsked("--model NAME")),
            };
            let key = match &self.args.model_key_file {
                Some(path) => secret_from(path)?,
                None if self.asks => secret("Its key (it is not shown, Enter for none): ")?,
                None => String::new(),
            };
            self.set("LLM_BASE_URL", url);
            self.set("LLM_MODEL", model);
            self.set("LLM_API_KEY", key);
            let findings = doctor::models(&self.config()?).await;
            let failed = findings.iter().find(|one| one.outcome == Outcome::Failed);
            if let Some(failed) = failed {
                self.refused(failed, self.args.model_url.is_none())?;
                continue;
            }
            for finding in &findings {
                tell(finding)?;
            }
            return Ok(());
        }
    }

    /// Takes a store that can be used.
    async fn store(&mut self) -> Result<(), Error> {
        loop {
            let address = match &self.args.store {
                Some(address) => address.clone(),
                None if self.asks => {
                    let forms = StoreAddress::FORMS;
                    line(&format!("Store ({forms}; Enter for the first): "))?
                }
                None => String::new(),
            };
            if !address.is_empty() {
                self.set("CONTEXT_STORE", address);
            }
            let finding = doctor::store(&self.config()?).await;
            if finding.outcome != Outcome::Failed {
                return Ok(tell(&finding)?);
            }
            self.refused(&finding, self.args.store.is_none())?;
        }
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

fn tell(finding: &Finding) -> io::Result<()> {
    super::doctor::line(&mut io::stdout(), finding)
}

/// Asks for a line.
fn line(question: &str) -> io::Result<String> {
    let mut out = io::stdout();
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim().to_owned())
}

/// Asks for a line that is not shown, from the moment the question is.
fn secret(question: &str) -> io::Result<String> {
    let hidden = HiddenInput::new()?;
    let typed = line(question);
    drop(hidden);
    writeln!(io::stdout())?;
    typed
}

/// The terminal does not show what is typed until this is dropped.
struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Drain, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}

/// The first line of a file, `-` for standard input.
fn secret_from(path: &Path) -> Result<String, Error> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
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
