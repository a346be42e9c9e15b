//! Each model server, by a small question.

use std::time::Instant;

use super::Finding;
use crate::app;
use crate::config::Config;
use crate::llm::{Client, Error, ModelServers, ModelSettings, SetupError};
use crate::model::without_keys;
use clew_context::model::{ChatMessage, Role};

/// What is asked: any answer will do.
const QUESTION: &str = "Answer with the word yes.";

pub(super) async fn look(config: &Config, tell: &mut dyn FnMut(Finding)) {
    let Some(model) = &config.llm else {
        let remedy = "set LLM_BASE_URL and LLM_MODEL";
        let found = "none is set: the bot answers with what it collected";
        return tell(Finding::warning("model", found, remedy));
    };
    let (first, fallbacks) = app::model_settings(model);
    for settings in [first].into_iter().chain(fallbacks) {
        tell(ask(settings).await);
    }
}

/// The names of the models that the first server lists; none if it lists none.
///
/// # Errors
/// What keeps it from answering at all.
pub async fn model_names(config: &Config) -> Result<Vec<String>, Finding> {
    let Some(model) = &config.llm else {
        return Ok(Vec::new());
    };
    let (settings, _) = app::model_settings(model);
    let address = model.base_url.to_string();
    let client = Client::new(settings).map_err(|error| unusable(&address, &error))?;
    match client.models().await {
        Ok(names) => Ok(names),
        // Not every server lists its models.
        Err(Error::ModelNotFound { .. } | Error::Rejected { .. } | Error::Malformed { .. }) => {
            Ok(Vec::new())
        }
        Err(error) => Err(failed(&address, &error)),
    }
}

async fn ask(settings: ModelSettings) -> Finding {
    let name = without_keys(&format!("{} at {}", settings.model, settings.base_url));
    let began = Instant::now();
    let server = match ModelServers::new(settings, Vec::new(), 0) {
        Ok(server) => server,
        Err(error) => return unusable(&name, &error),
    };
    let question = [ChatMessage::new(Role::User, QUESTION)];
    let answered = server.complete(&question, || true).await;
    let ms = began.elapsed().as_millis();
    match answered {
        Ok(_) => Finding::ok("model", format!("{name} answers, in {ms} ms")),
        Err(error) => failed(&name, &error),
    }
}

fn failed(name: &str, error: &Error) -> Finding {
    Finding::failed("model", format!("{name}: {error}"), remedy(error))
}

fn unusable(name: &str, error: &SetupError) -> Finding {
    let remedy = "correct LLM_BASE_URL, LLM_API_KEY or LLM_FALLBACKS";
    Finding::failed("model", format!("{name}: {error}"), remedy)
}

fn remedy(error: &Error) -> &'static str {
    match error {
        Error::Unauthorized { .. } => {
            "set LLM_API_KEY, or the key in LLM_FALLBACKS, to a key of this server"
        }
        Error::RateLimited { .. } => "wait, or look at the quota of the account",
        Error::ModelNotFound { .. } => {
            "set LLM_MODEL to a name that the server lists, and LLM_BASE_URL with its path, such as /v1"
        }
        Error::Empty { .. } => {
            "raise LLM_MAX_OUTPUT_TOKENS: the model used them up before it answered"
        }
        Error::Timeout => "raise LLM_TIMEOUT_S, or see whether the server is busy",
        _ => "see whether the server runs and LLM_BASE_URL is its address",
    }
}
