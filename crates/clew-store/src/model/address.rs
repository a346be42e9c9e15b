//! Addresses of stores.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clew_context::model::Secret;

/// Prefixes of a PostgreSQL address.
const POSTGRES: [&str; 2] = ["postgres://", "postgresql://"];

/// `CONTEXT_STORE`: which back end, and where.
///
/// `Display` gives the setting's text, without the password and any parameters
/// of a database address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// `sqlite:PATH`: one database file.
    Sqlite(PathBuf),
    /// `postgres://USER:PASSWORD@HOST/DATABASE`: the whole address.
    Postgres(Secret),
    /// `files:DIR`: one JSON file per conversation.
    Files(PathBuf),
}

/// The text is not a store address. It is not repeated, since it may hold a
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a store's address is {}", StoreAddress::FORMS)]
pub struct StoreAddressError;

/// The forms of databases' addresses, with this between them.
macro_rules! databases {
    ($between:literal) => {
        concat!(
            "sqlite:PATH",
            $between,
            "postgres://user:password@host/database"
        )
    };
}

impl StoreAddress {
    /// The accepted forms, for tables.
    pub const CHOICE: &'static str = concat!(databases!("|"), "|files:DIR");
    /// The accepted forms, for messages.
    pub const FORMS: &'static str = concat!(
        databases!(", "),
        " with special characters percent-encoded, or files:DIR"
    );
    /// The forms of databases, which hold everything, for messages.
    pub const DATABASES: &'static str = databases!(" or ");
}

impl FromStr for StoreAddress {
    type Err = StoreAddressError;

    fn from_str(text: &str) -> Result<Self, StoreAddressError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            return local(path).map(Self::Sqlite).ok_or(StoreAddressError);
        }
        if let Some(path) = text.strip_prefix("files:") {
            return local(path).map(Self::Files).ok_or(StoreAddressError);
        }
        parts(text).ok_or(StoreAddressError)?;
        Ok(Self::Postgres(Secret::new(text)))
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Files(path) => write!(f, "files:{}", path.display()),
            Self::Postgres(url) => match parts(url.expose()) {
                Some(parts) => parts.fmt(f),
                None => url.fmt(f),
            },
        }
    }
}

/// A path. One starting with `//` looks like a URL and is refused.
fn local(path: &str) -> Option<PathBuf> {
    let fits = !path.is_empty() && !path.contains('\0') && !path.starts_with("//");
    fits.then(|| PathBuf::from(path))
}

/// The parts of a database address that may be shown.
struct Parts<'a> {
    scheme: &'static str,
    user: Option<&'a str>,
    has_password: bool,
    /// Host, port and database.
    place: &'a str,
    has_parameters: bool,
}

/// Parses an address strictly: `@` only before the host, and no `/`, `?` or `#`
/// before it, so that no part of a password is taken for something else. A
/// password with one of these has to be percent-encoded, as other programs
/// require too.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = POSTGRES
        .iter()
        .find_map(|scheme| Some((*scheme, text.strip_prefix(scheme)?)))?;
    let is_plain = rest
        .chars()
        .all(|c| !c.is_whitespace() && !c.is_control() && c != '#');
    if rest.is_empty() || !is_plain {
        return None;
    }
    let (address, parameters) = match rest.split_once('?') {
        Some((address, parameters)) => (address, Some(parameters)),
        None => (rest, None),
    };
    let (credentials, place) = match address.split_once('@') {
        Some((credentials, place)) => (Some(credentials), place),
        None => (None, address),
    };
    let credentials_fit = credentials.is_none_or(|text| !text.contains('/'));
    let rest_fits = !place.contains('@') && parameters.is_none_or(|text| !text.contains('@'));
    if !credentials_fit || !rest_fits || !hosts_fit(place) {
        return None;
    }
    let (user, has_password) = match credentials.map(|text| text.split_once(':')) {
        Some(Some((user, _))) => (Some(user), true),
        Some(None) => (credentials, false),
        None => (None, false),
    };
    Some(Parts {
        scheme,
        user,
        has_password,
        place,
        has_parameters: parameters.is_some(),
    })
}

/// Whether whatever follows a host's colon is a port number. If the host is
/// missing, `user:password` is read as host and port, and refused here.
fn hosts_fit(place: &str) -> bool {
    let hosts = place.split('/').next().unwrap_or_default();
    hosts.split(',').all(|host| {
        let after_address = host.rsplit(']').next().unwrap_or_default();
        let port = after_address.split_once(':').map(|(_, port)| port);
        port.is_none_or(|port| port.parse::<u16>().is_ok())
    })
}

impl fmt::Display for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme)?;
        if let Some(user) = self.user {
            f.write_str(user)?;
            if self.has_password {
                f.write_str(":[secret]")?;
            }
            f.write_str("@")?;
        }
        f.write_str(self.place)?;
        if self.has_parameters {
            // Parameters may include a password.
            f.write_str("?[secret]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: Option<&str>) {
        let read = text.parse::<StoreAddress>();
        assert_eq!(
            read.as_ref().map(ToString::to_string).ok().as_deref(),
            shown
        );
        assert!(!format!("{read:?}").contains("hush"), "{text}");
        if let Ok(StoreAddress::Postgres(url)) = read {
            assert_eq!(url.expose(), text, "the password is kept");
        }
    }

    #[test]
    fn every_form_is_read_and_no_password_is_shown() {
        check("sqlite:var/clew.db", Some("sqlite:var/clew.db"));
        check("sqlite:/srv/clew.db", Some("sqlite:/srv/clew.db"));
        check("files:context", Some("files:context"));
        check("postgres://host/db", Some("postgres://host/db"));
        check("postgres://ada@host/db", Some("postgres://ada@host/db"));
        check(
            "postgres://ada:hush@host:5432/db",
            Some("postgres://ada:[secret]@host:5432/db"),
        );
        check(
            "postgresql://ada:hu:hush%40@[::1]/db",
            Some("postgresql://ada:[secret]@[::1]/db"),
        );
        check("postgres://a,b:5433/db", Some("postgres://a,b:5433/db"));
        check(
            "postgres:///db?host=/run/postgresql&password=hush",
            Some("postgres:///db?[secret]"),
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "sqlite:",
            "files:",
            "sqlite:a\0b",
            "sqlite://var/clew.db",
            "var/clew.db",
            "postgres://",
            "postgres:hush",
            "mysql://ada:hush@host/db",
            "postgres://ada:hush",
            "postgres://ada:hush/db",
            "postgres://ada:hush/hush@host/db",
            "postgres://ada:hush?hush@host/db",
            "postgres://ada:hush#hush@host/db",
            "postgres://ada:hush@hush@host/db",
            "postgres://ada:hush hush@host/db",
            "postgres://host/db?user=a@b",
        ] {
            check(text, None);
        }
    }
}
