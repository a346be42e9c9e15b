//! A PostgreSQL server of the tests' own: created by Debian's `initdb` in a temporary folder, run as an
//! unprivileged user, reached over TCP with a password, and gone with the process that started it.
//!
//! The folder and the server belong to a keeper: a shell that reads from a pipe
//! which only this process can write to. However this process dies, the pipe
//! closes, and the keeper stops the server and removes the folder.
//!
//! Depends only on `std`, `tempfile` and `tokio_postgres`, so that benches can
//! include it as well.

use std::collections::VecDeque;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Where Debian installs each version: `15/bin/postgres`.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The server's superuser.
const ADMIN: &str = "admin";
/// Below the system's ephemeral ports (32768 and up on Linux), so that nobody
/// takes a stopped server's port.
const PORTS: Range<u64> = 15_000..32_000;
/// Ports to try, since another server may take one in between.
const PORT_TRIES: u8 = 20;
/// How long a standby may take to follow, and how often it is looked for.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOKED_EACH: Duration = Duration::from_millis(20);

/// Settings that differ from the defaults. Data must survive the client, but
/// not the machine; parallel tests hold many connections.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 400
shared_buffers = 64MB
jit = off
timezone = 'UTC'
";

/// Arguments: the folder, the programs' folder, the superuser. Answers each
/// line with `done`, or with `failed` if the logs say why.
const KEEPER: &str = r#"
folder=$1 programs=$2 admin=$3
data=$folder/data log=$folder/log
end() {
    "$programs/pg_ctl" -D "$data" -m immediate stop </dev/null >/dev/null 2>&1
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
initialise() {
    "$programs/initdb" -D "$data" -U "$admin" --pwfile="$folder/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-sync &&
        cat "$folder/settings" >>"$data/postgresql.conf"
}
control() { "$programs/pg_ctl" -D "$data" -w "$@"; }
while read -r word port; do
    case $word in
        initialise) initialise ;;
        copy)
            "$programs/pg_basebackup" -D "$data" -R -X stream -c fast \
                -d "host=127.0.0.1 port=$port user=$admin password=$(cat "$folder/password")"
            ;;
        promote) control promote ;;
        start) control -l "$folder/server.log" -o "-p $port -k '$folder'" start ;;
        stop) control -m fast stop ;;
        kill) control -m immediate stop ;;
    esac </dev/null >>"$log" 2>&1 && echo done || echo failed
done
"#;

/// A running server. Dropping it stops it and removes its folder.
pub(crate) struct Postgres {
    folder: PathBuf,
    port: u16,
    password: String,
    /// `None` once it has to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    keeper: Child,
}

/// A database without tables, and a role that owns it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    /// Connects as the owner: not a superuser, so row-level security applies
    /// (to its own tables only with `FORCE ROW LEVEL SECURITY`).
    pub(crate) url: String,
    /// Connects as the superuser, who sees every row.
    pub(crate) admin_url: String,
    /// Name of both the database and the role.
    pub(crate) name: String,
}

impl Postgres {
    /// The server shared by this process's tests, started on first use.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::own)
    }

    /// A server for one test, which may stop it. Blocks for about a second;
    /// [`Self::stop`] and [`Self::start`] block for less.
    ///
    /// # Panics
    ///
    /// If the package is missing, or the server does not start.
    pub(crate) fn own() -> Self {
        Self::begun(random_name(), "initialise", None)
    }

    /// A server that follows this one and confirms each of its commits from now on.
    pub(crate) async fn standby(&self) -> Self {
        self.standby_at(None).await
    }

    /// The same at a port.
    pub(crate) async fn standby_at(&self, port: Option<u16>) -> Self {
        let copy = format!("copy {}", self.port);
        let standby = Self::begun(self.password.clone(), &copy, port);
        let admin = self.admin_url("postgres");
        let confirmed = ["synchronous_standby_names = '*'", "synchronous_commit = on"];
        for setting in confirmed {
            query(&admin, &format!("ALTER SYSTEM SET {setting}")).await;
        }
        query(&admin, "SELECT pg_reload_conf()").await;
        let confirms = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
        let began = Instant::now();
        while query(&admin, confirms).await.is_empty() {
            assert!(began.elapsed() < PATIENCE, "the standby does not follow");
            tokio::time::sleep(LOOKED_EACH).await;
        }
        standby
    }

    fn begun(password: String, first: &str, port: Option<u16>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("password"), &password).unwrap();
        fs::write(folder.path().join("settings"), SETTINGS).unwrap();
        let keeper = keeper(folder.path()).spawn();
        let mut keeper = keeper.expect("PostgreSQL's user can enter the temporary folder");
        let orders = keeper.stdin.take();
        let answers = BufReader::new(keeper.stdout.take().unwrap());
        let mut server = Self {
            folder: folder.keep(),
            port: port.unwrap_or_default(),
            password,
            orders,
            answers,
            keeper,
        };
        server.must(first);
        match port {
            Some(_) => server.start(),
            None => server.start_somewhere(),
        }
        server
    }

    /// Creates a database with its own role; no other role may connect.
    pub(crate) async fn fresh_database(&self) -> Database {
        let name = format!("test_{}", random_name());
        let password = random_name();
        let role = format!(
            "CREATE ROLE {name} LOGIN PASSWORD '{password}' \
             NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"
        );
        let database = format!("CREATE DATABASE {name} OWNER {name}");
        let shut = format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC");
        query_each(&self.admin_url("postgres"), &[&role, &database, &shut]).await;
        Database {
            url: url(&name, &password, self.port, &name),
            admin_url: self.admin_url(&name),
            name,
        }
    }

    /// The superuser's URL of one database.
    pub(crate) fn admin_url(&self, database: &str) -> String {
        url(ADMIN, &self.password, self.port, database)
    }

    /// Closes all connections and stops the server; the data stays.
    pub(crate) fn stop(&mut self) {
        self.must("stop");
    }

    /// Ends it without a checkpoint, as if its machine had died.
    pub(crate) fn kill(&mut self) {
        self.must("kill");
    }

    /// A standby takes writes from now on.
    pub(crate) fn promote(&mut self) {
        self.must("promote");
    }

    /// Where it listens.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Restarts the stopped server with the same port and data.
    pub(crate) fn start(&mut self) {
        self.must(&format!("start {}", self.port));
    }

    /// The id of the server's process, while it runs.
    pub(crate) fn process(&self) -> u32 {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    /// The folder with all of the server's files, removed with it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn start_somewhere(&mut self) {
        let mut problem = String::new();
        for _ in 0..PORT_TRIES {
            self.port = free_port();
            match self.order(&format!("start {}", self.port)) {
                Ok(()) => return,
                Err(why) => problem = why,
            }
            if !problem.contains("Address already in use") {
                break;
            }
        }
        panic!("{problem}");
    }

    fn must(&mut self, order: &str) {
        self.order(order).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Sends the keeper an order and waits until it is done. On failure returns
    /// the last output of the keeper and the server.
    fn order(&mut self, order: &str) -> Result<(), String> {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        if answer == "done\n" {
            return Ok(());
        }
        let said = ["log", "server.log"].map(|name| last_lines(&self.folder.join(name)));
        Err(format!("PostgreSQL: {order}: {}", said.concat()))
    }
}

impl Database {
    /// The owner's URL of a server and its standby: whichever takes writes is used.
    pub(crate) fn url_of_both(&self, server: &Postgres, standby: &Postgres) -> String {
        let host = |port| format!("127.0.0.1:{port}");
        let both = format!("{},{}", host(server.port), host(standby.port));
        let url = self.url.replace(&host(server.port), &both);
        format!("{url}?target_session_attrs=read-write")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.keeper.wait();
    }
}

/// The rows of a statement, each value as text, `None` for NULL.
pub(crate) async fn query(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    query_each(url, &[sql]).await
}

/// The rows of all statements, over one connection. Each runs in its own
/// transaction, as `CREATE DATABASE` and `VACUUM` require.
pub(crate) async fn query_each(url: &str, statements: &[&str]) -> Vec<Vec<Option<String>>> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut rows = Vec::new();
    for sql in statements {
        let messages = client.simple_query(sql).await;
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.extend(messages.iter().filter_map(values));
    }
    drop(client);
    connection.await.unwrap().unwrap();
    rows
}

fn values(message: &SimpleQueryMessage) -> Option<Vec<Option<String>>> {
    let SimpleQueryMessage::Row(row) = message else {
        return None;
    };
    let values = (0..row.len()).map(|at| row.get(at).map(str::to_owned));
    Some(values.collect())
}

/// Every row of every table, as `INSERT` statements; ASCII bytes appear as
/// text. Needs a URL that sees all: [`Database::admin_url`].
pub(crate) fn dump_all(admin_url: &str) -> String {
    let output = Command::new(programs().join("pg_dump"))
        .args(["--data-only", "--inserts", "--dbname", admin_url])
        .env_clear()
        .env("PGOPTIONS", "-c bytea_output=escape")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "pg_dump: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The shell that keeps a server in this folder. It runs as an unprivileged user: the current one or, if that
/// is root, which PostgreSQL refuses, another user, who then owns the folder.
fn keeper(folder: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    if fs::metadata(folder).unwrap().uid() == 0 {
        let (user, group) = unprivileged();
        chown(folder, Some(user), Some(group)).unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            chown(entry.unwrap().path(), Some(user), Some(group)).unwrap();
        }
        // Drops root's supplementary groups too.
        command.uid(user).gid(group);
    }
    command
        .args(["-c", KEEPER, "keeper"])
        .args([folder, &programs(), Path::new(ADMIN)])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder)
        // Keep Ctrl-C from the keeper, which still has to clean up.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// User and group of `postgres`, which the package creates, or else of
/// `nobody`.
fn unprivileged() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let found = ids("postgres").or_else(|| ids("nobody"));
    found.expect("root may not run PostgreSQL, and there is neither a user postgres nor nobody")
}

/// The folder with the newest version's programs.
pub(crate) fn programs() -> PathBuf {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let numbered = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let programs = entry.path().join("bin");
        programs
            .join("postgres")
            .exists()
            .then_some((version, programs))
    });
    let newest = numbered.max();
    let (_, programs) = newest.unwrap_or_else(|| {
        panic!("no PostgreSQL server in {VERSIONS}/*/bin: .ci/packages installs one")
    });
    programs
}

fn url(user: &str, password: &str, port: u16, database: &str) -> String {
    format!("postgres://{user}:{password}@127.0.0.1:{port}/{database}")
}

fn free_port() -> u16 {
    let free = std::iter::repeat_with(|| PORTS.start + random() % (PORTS.end - PORTS.start))
        .map(|port| u16::try_from(port).unwrap())
        .take(1_000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.expect("a free port")
}

fn random_name() -> String {
    format!("{:016x}", random())
}

/// Every `RandomState` has different keys.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn last_lines(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut last = VecDeque::new();
    for line in text.lines() {
        last.push_back(format!("\n{line}"));
        if last.len() > 20 {
            last.pop_front();
        }
    }
    last.into_iter().collect()
}
