//! Ranks facts by how well they match a text, with SQLite's full-text index
//! (FTS5, BM25).

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};

use rusqlite::{Connection, params};

use super::Error;
use crate::model::FactId;

/// Most distinct words searched for; further ones add little but cost as much.
const MOST_WORDS: usize = 64;

/// Builds an FTS5 query that matches any of the first `most` distinct words of
/// a text. Words are quoted, so that no text is read as FTS5 syntax. `None`
/// without words.
fn any_word(text: &str, most: usize) -> Option<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let mut seen = BTreeSet::new();
    let different = words.filter(|word| !word.is_empty() && seen.insert(word.to_lowercase()));
    let quoted: Vec<String> = different
        .take(most)
        .map(|word| format!("\"{word}\""))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// An in-memory index of some facts; none of it ever reaches a disk. Kept for
/// the next search, which is often over the same facts.
#[derive(Debug, Default)]
pub(super) struct Ranker {
    memory: OnceCell<Connection>,
    hasher: RandomState,
    /// Hash of the facts in the index.
    indexed: Cell<Option<u64>>,
}

impl Ranker {
    /// At most `limit` facts that match a text, best first by BM25.
    pub(super) fn best(
        &self,
        facts: &[(FactId, &str)],
        text: &str,
        limit: usize,
    ) -> Result<Vec<FactId>, Error> {
        let Some(query) = any_word(text, MOST_WORDS) else {
            return Ok(Vec::new());
        };
        self.ranked(facts, &query, limit)
            .map_err(|error| Error::database("rank facts", error))
    }

    fn ranked(
        &self,
        facts: &[(FactId, &str)],
        query: &str,
        limit: usize,
    ) -> rusqlite::Result<Vec<FactId>> {
        if self.memory.get().is_none() {
            let memory = Connection::open_in_memory()?;
            memory.execute_batch(
                "CREATE VIRTUAL TABLE fact
                     USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')",
            )?;
            // Cannot be set already: nothing else has access.
            let _ = self.memory.set(memory);
        }
        let memory = self.memory.get().ok_or(rusqlite::Error::InvalidQuery)?;
        let wanted = self.hasher.hash_one(facts);
        if self.indexed.get() != Some(wanted) {
            self.indexed.set(None);
            index(memory, facts)?;
            self.indexed.set(Some(wanted));
        }
        let mut select = memory.prepare_cached(
            "SELECT rowid FROM fact WHERE fact MATCH ?1 ORDER BY bm25(fact), rowid LIMIT ?2",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = select.query_map((query, limit), |row| row.get::<_, i64>(0))?;
        rows.map(|id| Ok(FactId(id?.cast_unsigned()))).collect()
    }
}

fn index(memory: &Connection, facts: &[(FactId, &str)]) -> rusqlite::Result<()> {
    let transaction = memory.unchecked_transaction()?;
    transaction.execute("DELETE FROM fact", [])?;
    let sql = "INSERT INTO fact (rowid, text) VALUES (?1, ?2)";
    let mut insert = transaction.prepare_cached(sql)?;
    for (id, text) in facts {
        insert.execute(params![id.0.cast_signed(), text])?;
    }
    drop(insert);
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[u64]) {
        let facts = [
            (FactId(1), "The pump leaks on Mondays"),
            (FactId(2), "Release day is Friday"),
            (FactId(3), "The pump, the pump and the valve"),
        ];
        let ranker = Ranker::default();
        ranker.best(&facts[..1], "pump", 2).unwrap();
        let found = ranker.best(&facts, text, 2).unwrap();
        let found: Vec<u64> = found.into_iter().map(|id| id.0).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn facts_that_match_come_best_first() {
        check("why does the PUMP fail?", &[3, 1]);
        check("friday", &[2]);
        check("nothing of it", &[]);
        check("", &[]);
        check("?!", &[]);
    }

    #[test]
    fn no_text_is_a_query_of_its_own() {
        for text in [
            "\"",
            "friday*",
            "NEAR(",
            "text:friday",
            "-friday",
            "^",
            "a\0b",
            "' OR 1",
        ] {
            Ranker::default()
                .best(&[(FactId(1), "x")], text, 9)
                .unwrap();
        }
        check("text NOT friday", &[2]);
    }
}
