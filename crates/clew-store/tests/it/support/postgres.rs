//! A PostgreSQL server of our own: made by `initdb` from Debian's package in a
//! folder for the time, run as an unprivileged user, reached over TCP with a
//! password, gone with the process that started it.
//!
//! The folder and the server belong to a keeper, a shell that reads from a pipe
//! which only this process can write to. The pipe's end, however this process
//! dies, is the sign to stop the server and to remove the folder.
//!
//! Names only `std`, `tempfile` and `tokio_postgres`, so that benches can take
//! it in as well.

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

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Where Debian puts each version's programs: `15/bin/postgres`.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The superuser of a server.
const ADMIN: &str = "admin";
/// Below the ports that the system hands out by itself (32768 and up on
/// Linux), so that nobody takes the port of a server that is stopped.
const PORTS: Range<u64> = 15_000..32_000;
/// So many ports are tried, as another server may take one in between.
const PORT_TRIES: u8 = 20;

/// What differs from the defaults. The data need not outlive the machine, only
/// the client; tests in parallel hold many connections.
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

/// Its arguments: the folder, the programs' folder, the superuser. It answers
/// each line with one: `done`, or `failed` when the logs say why.
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
        start) control -l "$folder/server.log" -o "-p $port -k '$folder'" start ;;
        stop) control -m fast stop ;;
    esac </dev/null >>"$log" 2>&1 && echo done || echo failed
done
"#;

/// A running server. Dropped, it is stopped and its folder removed.
pub(crate) struct Postgres {
    folder: PathBuf,
    port: u16,
    password: String,
    /// `None` when it is time to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    keeper: Child,
}

/// A database without tables, and a role that owns it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    /// As its owner: no superuser, and row-level security holds for the role
    /// (for its own tables only with `FORCE ROW LEVEL SECURITY`).
    pub(crate) url: String,
    /// As the superuser, who sees every row.
    pub(crate) admin_url: String,
    /// The name of the database and of the role.
    pub(crate) name: String,
}

impl Postgres {
    /// The server that the tests of this process share, started at first use.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::own)
    }

    /// A server for one test, which may stop it. Blocks for about a second, as
    /// do [`Self::stop`] and [`Self::start`] for less.
    ///
    /// # Panics
    ///
    /// Without the package, and when the server does not start.
    pub(crate) fn own() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let password = random_name();
        fs::write(folder.path().join("password"), &password).unwrap();
        fs::write(folder.path().join("settings"), SETTINGS).unwrap();
        let keeper = keeper(folder.path()).spawn();
        let mut keeper = keeper.expect("PostgreSQL's user can enter the temporary folder");
        let orders = keeper.stdin.take();
        let answers = BufReader::new(keeper.stdout.take().unwrap());
        let mut server = Self {
            folder: folder.keep(),
            port: 0,
            password,
            orders,
            answers,
            keeper,
        };
        server.must("initialise");
        server.start_somewhere();
        server
    }

    /// A fresh database with a role of its own, which no other role may enter.
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

    /// Cuts all connections and stops the server; the data stay.
    pub(crate) fn stop(&mut self) {
        self.must("stop");
    }

    /// Starts the stopped server again: same port, same data.
    pub(crate) fn start(&mut self) {
        self.must(&format!("start {}", self.port));
    }

    /// The id of the server's process, while it runs.
    pub(crate) fn process(&self) -> u32 {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    /// What holds all of the server's files, and goes with it.
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

    /// Has the keeper do something and waits until it is done; else what it and
    /// the server said last.
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

impl Drop for Postgres {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.keeper.wait();
    }
}

/// The rows that a statement gives, each value as text, `None` for NULL.
pub(crate) async fn query(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    query_each(url, &[sql]).await
}

/// The rows of all statements, over one connection. Each runs in a transaction
/// of its own, as `CREATE DATABASE` and `VACUUM` want it.
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

/// Every row of every table, as `INSERT` statements; bytes that are ASCII stand
/// as such. Takes a URL that sees all: [`Database::admin_url`].
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

/// The shell that keeps a server in this folder, as an unprivileged user: as
/// ourselves, or when we are root, whom the server refuses, as somebody else,
/// whose the folder becomes.
fn keeper(folder: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    if fs::metadata(folder).unwrap().uid() == 0 {
        let (user, group) = unprivileged();
        chown(folder, Some(user), Some(group)).unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            chown(entry.unwrap().path(), Some(user), Some(group)).unwrap();
        }
        // Gives up root's other groups as well.
        command.uid(user).gid(group);
    }
    command
        .args(["-c", KEEPER, "keeper"])
        .args([folder, &programs(), Path::new(ADMIN)])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder)
        // Ctrl-C is for us: the keeper still has to clean up.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// User and group of `postgres`, which the package makes, else of `nobody`.
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

/// The folder with the programs of the newest version.
fn programs() -> PathBuf {
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

/// Two hashers never have the same keys.
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
