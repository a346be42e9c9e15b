//! `clew health`: asks the running bot whether it is alive, where no other program
//! could, as in a container.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;

use super::exit::{Ended, cannot, failed};
use crate::config::Config;

/// How long connecting, and each part of the answer, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer read, in bytes.
const LONGEST: u64 = 4096;

pub(super) fn run(config: &Config) -> Ended {
    let no_address = "METRICS_ADDR is not set: the bot answers health checks there";
    let address = config.telemetry.metrics;
    let address = address.ok_or_else(|| cannot(anyhow!(no_address)))?;
    let answer = ask(reachable(address))
        .map_err(|error| failed(error).context(format!("no answer at METRICS_ADDR={address}")))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200 ") {
        return Ok(ExitCode::SUCCESS);
    }
    let said = if body.trim().is_empty() { head } else { body };
    Err(failed(anyhow!("{}", said.trim())))
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
