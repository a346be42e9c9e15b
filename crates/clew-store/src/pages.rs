//! Reading all entries, some at a time.

use super::backend::Visit;
use super::{Backend, Cursor, Error, Kind, Record};
use clew_context::model::UserId;

/// Entries read at a time.
pub(crate) const PAGE: usize = 500;
/// The same of snapshots, each of which is a whole conversation.
const SNAPSHOTS: usize = 10;

/// Visits every entry page by page; as of one moment only if nothing is written
/// meanwhile.
pub(crate) async fn each_paged<B: Backend + ?Sized>(
    store: &B,
    visit: Visit<'_>,
) -> Result<(), Error> {
    for kind in Kind::ALL {
        let mut pages = Pages::of(store, kind, None);
        while let Some(records) = pages.next().await? {
            records.into_iter().try_for_each(&mut *visit)?;
        }
    }
    Ok(())
}

/// Reads the entries of a kind, of one user or of all, page by page.
pub struct Pages<'a, B: ?Sized> {
    store: &'a B,
    kind: Kind,
    owner: Option<UserId>,
    after: Option<Cursor>,
    ended: bool,
}

impl<'a, B: Backend + ?Sized> Pages<'a, B> {
    /// Before the first entry.
    pub const fn of(store: &'a B, kind: Kind, owner: Option<UserId>) -> Self {
        Self {
            store,
            kind,
            owner,
            after: None,
            ended: false,
        }
    }

    /// The next entries; `None` after the last.
    ///
    /// # Errors
    /// The store's error.
    pub async fn next(&mut self) -> Result<Option<Vec<Record>>, Error> {
        if self.ended {
            return Ok(None);
        }
        let (kind, after) = (self.kind, self.after.as_ref());
        let most = if kind == Kind::Snapshots {
            SNAPSHOTS
        } else {
            PAGE
        };
        let page = self.store.records(kind, self.owner, after, most);
        let page = page.await?;
        self.ended = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.records))
    }
}
