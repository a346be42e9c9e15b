//! Reading all entries, some at a time.

use super::backend::Visit;
use super::{Backend, Cursor, Error, Kind, Record};

/// Entries read at a time.
pub(crate) const PAGE: usize = 500;

/// Visits every entry page by page; as of one moment only if nothing is written
/// meanwhile.
pub(crate) async fn each_paged<B: Backend + ?Sized>(
    store: &B,
    visit: Visit<'_>,
) -> Result<(), Error> {
    for kind in Kind::ALL {
        let mut pages = Pages::of(store, kind);
        while let Some(records) = pages.next().await? {
            records.into_iter().try_for_each(&mut *visit)?;
        }
    }
    Ok(())
}

/// Reads all entries of a kind, page by page.
pub(crate) struct Pages<'a, B: ?Sized> {
    store: &'a B,
    kind: Kind,
    after: Option<Cursor>,
    ended: bool,
}

impl<'a, B: Backend + ?Sized> Pages<'a, B> {
    pub(crate) const fn of(store: &'a B, kind: Kind) -> Self {
        Self {
            store,
            kind,
            after: None,
            ended: false,
        }
    }

    /// The next entries; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Record>>, Error> {
        if self.ended {
            return Ok(None);
        }
        let (kind, after) = (self.kind, self.after.as_ref());
        let page = self.store.records(kind, None, after, PAGE).await?;
        self.ended = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.records))
    }
}
