//! `clew health`: asks the running bot whether it is alive, where no other program
//! could, as in a container.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use super::exit::{CANNOT, FAILED, fail_with};
use crate::config::Config;

/// How long connecting, and each part of the answer, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer read, in bytes.
const LONGEST: u64 = 4096;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("METRICS_ADDR is not set: the bot answers health checks there")]
    NoAddress,
    #[error("no answer at METRICS_ADDR={address}")]
    Silent {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Unwell(String),
}

pub(super) fn run(config: &Config) -> ExitCode {
    match check(config.telemetry.metrics) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ Error::NoAddress) => fail_with(CANNOT, &error),
        Err(error) => fail_with(FAILED, &error),
    }
}

fn check(address: Option<SocketAddr>) -> Result<(), Error> {
    let address = address.ok_or(Error::NoAddress)?;
    let answer = ask(reachable(address)).map_err(|source| Error::Silent { address, source })?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200 ") {
        return Ok(());
    }
    let said = if body.trim().is_empty() { head } else { body };
    Err(Error::Unwell(said.trim().to_owned()))
}

fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    Ok(answer)
}

/// Where a bot that listens on all addresses is reached from this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
