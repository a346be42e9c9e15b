//! The connection pool: bounded, encrypted as the URL says, and with errors
//! that leave out the password.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio::time::{Instant, sleep};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::Error;
use super::certificate;
use super::hold::{self, Hold};
use super::session::{
    Failure, LOCK_TIMEOUT, LONG_PATIENCE, Outcome, STATEMENT_TIMEOUT, is_passing_pool, pool_said,
};
use clew_context::model::Secret;

/// Connections in the pool. Turns are few and calls short; by default a server
/// allows 100 in all.
pub(super) const CONNECTIONS: usize = 4;
/// How long a call waits for a free connection.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to connect, encrypt and log in.
const CREATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one address to answer, unless the URL sets `connect_timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to check that a pooled connection is still open; needs no round trip.
const RECYCLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time until a server that stopped acknowledging is given up, unless the URL
/// sets `tcp_user_timeout`.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(8);
/// The encoding that can store any text.
const ENCODING: &str = "UTF8";
/// How long another process is waited for to end.
pub(super) const HELD_PATIENCE: Duration = Duration::from_secs(10);
/// How long by a bot: longer than the server may take to notice that a machine is gone.
pub(super) const LONG_HELD_PATIENCE: Duration = Duration::from_secs(90);
/// The pause between two checks grows from this...
const HELD_PAUSE: Duration = Duration::from_millis(50);
/// ...to this.
const LONGEST_HELD_PAUSE: Duration = Duration::from_secs(1);
/// PostgreSQL's default port.
const PORT: u16 = 5432;
/// Whether the role bypasses row-level security.
const STANDS_ABOVE: &str =
    "SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user";

/// A pool and the place it connects to, without the password.
pub(super) struct Connected {
    pub(super) pool: Pool,
    pub(super) place: String,
}

/// Creates the pool, whose connections hold the database for somebody or for nobody; does not
/// connect yet.
pub(super) fn pool(url: &Secret, held: Option<Hold>) -> Result<Connected, Error> {
    // The parser's error may quote the URL, with its password.
    let mut config: Config = url.expose().parse().map_err(|_| {
        let remedy = "it is not of the form postgres://user:password@host/database?sslmode=MODE \
                      with MODE disable, prefer or require";
        Error::unopened("postgres://...", remedy, None)
    })?;
    let place = place(&config);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("clew");
    }
    if may_be_overheard(&config) {
        tracing::warn!(%place,
            "sslmode=prefer does not look at the server's certificate: who answers in its place gets \
             the password; add ?sslmode=require to the URL");
    }
    let manager = manager(config, &place)?;
    let pool = Pool::builder(manager)
        .max_size(CONNECTIONS)
        .wait_timeout(Some(WAIT_TIMEOUT))
        .create_timeout(Some(CREATE_TIMEOUT))
        .recycle_timeout(Some(RECYCLE_TIMEOUT))
        .runtime(Runtime::Tokio1)
        .post_create(Hook::async_fn({
            let place = place.clone();
            move |client, _| {
                let (place, held) = (place.clone(), held.clone());
                Box::pin(async move {
                    let settings = client.batch_execute(&settings()).await;
                    settings.map_err(HookError::Backend)?;
                    match held {
                        Some(held) => hold::take(client, &held, &place).await,
                        None => Ok(()),
                    }
                })
            }
        }))
        .build();
    let pool =
        pool.map_err(|error| Error::unopened(&place, "the pool", Some(error.to_string().into())))?;
    Ok(Connected { pool, place })
}

/// A pool that may be beside another process's, and its first connection.
pub(super) async fn look(url: &Secret) -> Result<(Connected, Object), Error> {
    let connected = pool(url, None)?;
    let client = first(&connected, Duration::ZERO).await?;
    Ok((connected, client))
}

/// Makes the first connection, after waiting this long for another process to let go of the
/// database. Its error gives the remedy, or says that a retry may help.
pub(super) async fn first(connected: &Connected, patience: Duration) -> Result<Object, Error> {
    let place = &connected.place;
    let client = match reached(connected, patience).await {
        Ok(client) => client,
        Err(error) if hold::refusal(&error).is_some() => {
            return Err(Failure::Pool(error).during("open the store"));
        }
        Err(error) if is_passing_pool(&error) => {
            return Err(Error::not_ready(place, pool_said(&error)));
        }
        Err(error) => {
            return Err(Error::unopened(
                place,
                remedy(&error),
                Some(pool_said(&error).into()),
            ));
        }
    };
    let encoding = encoding(&client).await;
    let encoding = encoding.map_err(|failure| at_start(failure, place))?;
    if encoding != ENCODING {
        let remedy = format!(
            "its server_encoding is {encoding}, which cannot hold every text: make a database with \
             CREATE DATABASE name ENCODING '{ENCODING}' TEMPLATE template0 and name that one"
        );
        return Err(Error::unopened(place, &remedy, None));
    }
    Ok(client)
}

async fn reached(connected: &Connected, patience: Duration) -> Result<Object, PoolError> {
    let began = Instant::now();
    let waits = |error: &PoolError| {
        let longest = if hold::is_for_lease(error) {
            HELD_PATIENCE.min(patience)
        } else {
            patience
        };
        hold::refusal(error).is_some() && began.elapsed() < longest
    };
    let (mut is_told, mut pause) = (false, HELD_PAUSE);
    loop {
        match connected.pool.get().await {
            Err(error) if waits(&error) => {
                if !is_told {
                    tracing::warn!(store = %connected.place, seconds = patience.as_secs(),
                        "another process uses the store: waiting for it to end");
                }
                is_told = true;
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_HELD_PAUSE);
            }
            reached => return reached,
        }
    }
}

async fn encoding(client: &Object) -> Outcome<String> {
    let sql = "SELECT current_setting('server_encoding')";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

/// Whether row-level security does not hold for our role.
pub(super) async fn stands_above(client: &Object) -> Outcome<bool> {
    let found = client.query_opt(STANDS_ABOVE, &[]).await?;
    Ok(found
        .map(|row| row.try_get(0))
        .transpose()?
        .unwrap_or_default())
}

/// Turns a failure during startup into an error of opening.
pub(super) fn at_start(failure: Failure, place: &str) -> Error {
    match failure.during("bring the tables up to date") {
        said @ (Error::Newer { .. }
        | Error::Corrupt { .. }
        | Error::Open { .. }
        | Error::NotReady { .. }
        | Error::Held { .. }) => said,
        Error::Unavailable { source, .. } => Error::not_ready(place, source),
        other => {
            let remedy = "the role needs a schema `clew` of its own, or the right to create it";
            Error::unopened(place, remedy, Some(other.into()))
        }
    }
}

fn remedy(error: &PoolError) -> &'static str {
    let code = match error {
        PoolError::Backend(error) => error.code(),
        _ => None,
    };
    match code {
        Some(code) if *code == SqlState::INVALID_PASSWORD => "check user and password in the URL",
        Some(code) if code.code().starts_with("28") => {
            "the server does not let this user in: check the URL and the server's pg_hba.conf"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => "create the database first",
        Some(_) => "see what the server says",
        None => {
            "check that the server runs and can be reached; with sslmode=require that the system \
             trusts its certificate"
        }
    }
}

/// Where a connection finds our tables, and the limits that the server enforces on it.
fn settings() -> String {
    format!(
        "SET search_path = clew; SET statement_timeout = {}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}",
        STATEMENT_TIMEOUT.as_millis(),
        LOCK_TIMEOUT.as_millis(),
        LONG_PATIENCE.as_millis()
    )
}

fn manager(config: Config, place: &str) -> Result<Manager, Error> {
    let how = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let tls = match config.get_ssl_mode() {
        SslMode::Disable => return Ok(Manager::from_config(config, NoTls, how)),
        SslMode::Prefer => certificate::any(),
        _ => certificate::trusted(),
    };
    let tls = tls.map_err(|error| {
        let remedy = "sslmode=require needs the system's list of certificates";
        Error::unopened(place, remedy, Some(error.to_string().into()))
    })?;
    let tls = MakeRustlsConnect::new(tls);
    Ok(Manager::from_config(config, tls, how))
}

/// Whether a host is on another machine and its certificate is not verified.
fn may_be_overheard(config: &Config) -> bool {
    let is_far = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
            name != "localhost" && !address.is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => false,
    };
    config.get_ssl_mode() == SslMode::Prefer && config.get_hosts().iter().any(is_far)
}

/// `host:port/database`, several hosts separated by commas.
fn place(config: &Config) -> String {
    let mut place = String::new();
    for (at, host) in config.get_hosts().iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let ports = config.get_ports();
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let _infallible = match host {
            Host::Tcp(name) => write!(place, "{comma}{name}:{port}"),
            Host::Unix(path) => write!(place, "{comma}{}:{port}", path.display()),
        };
    }
    let database = config.get_dbname().or(config.get_user()).unwrap_or("?");
    format!("postgres://{place}/{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_machines_are_warned_about() {
        for (url, expected) in [
            ("postgres://u@localhost/d", false),
            ("postgres://u@127.0.0.1/d", false),
            ("postgres://u@[::1]/d", false),
            ("postgres://u@%2Frun%2Fpostgresql/d", false),
            ("postgres://u@db.example/d", true),
            ("postgres://u@localhost,10.0.0.2/d", true),
            ("postgres://u@db.example/d?sslmode=require", false),
            ("postgres://u@db.example/d?sslmode=disable", false),
        ] {
            let config: Config = url.parse().unwrap();
            assert_eq!(may_be_overheard(&config), expected, "{url}");
        }
    }

    #[track_caller]
    fn check(url: &str, expected: &str) {
        let config: Config = url.parse().unwrap();
        assert_eq!(place(&config), expected);
    }

    #[test]
    fn a_place_has_no_password() {
        check("postgres://ada:s3cret@db/clew", "postgres://db:5432/clew");
        check(
            "postgres://ada:s3cret@a:1,b:2/clew?sslmode=require",
            "postgres://a:1,b:2/clew",
        );
        check("postgres://ada:s3cret@db", "postgres://db:5432/ada");
        check(
            "host=/run/postgresql user=ada password=s3cret",
            "postgres:///run/postgresql:5432/ada",
        );
    }

    #[test]
    fn a_url_that_is_none_is_not_repeated() {
        for url in [
            "postgres://ada:s3cret@db:port/clew",
            "postgres://ada:s3cret@db/x?sslmode=verify-full",
            "postgres://ada:s3cret@db/x?unknown=1",
        ] {
            let error = pool(&Secret::new(url), None).map(|_| ()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
