//! How a database keeps a receipt's body: deflated (RFC 1951) with a dictionary of the words that
//! nearly every body has, so that what stays are its ids and numbers.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Stands before what was deflated with [`WORDS`]. Nothing stands before JSON as versions before
/// kept it.
const DEFLATED: u8 = 1;

/// Never changed: another dictionary needs another first byte. What is most frequent stands last.
const WORDS: &[u8] = br#"[{"reason":"age","seen":1,"all":1},{"reason":"chars",{"reason":"app",{"reason":"bot",{"reason":"floor",{"reason":"chain","tail","starter","parent","adopted":true,"cut_by":"tokens","missing":[["tail","timeout"]],"tools":[{"name":"search_messages","took":1}],"read":[{"channel":"1","message":"1"}],"target":null,"scene":"direct","scene":"channel","scene":"forum","collectors":[{"stage":"chain","fetches":1,"took":1},{"stage":"history","fetches":2,"took":20},{"stage":"tail","fetches":1,"took":20}],{"scene":"thread","agent":"default","target":"1","adopted":false,"collected_in":0,"prompt":{"shown":{"channels":["1"],"authors":["1","1"],"words":[["starter",false],["tail",false],["history",true],["history",false]],"rows":"AAACAAEAAAEA"},"quoted":null,"tail":0,"left_out":[{"reason":"msgs","seen":100,"all":100}],"omitted":{"channels":[],"authors":[],"words":["msgs","app"],"rows":""},"block_chars":1,"user_facts":0,"server_facts":0,"history":0,"recalled":0,"dedup":0,"chars":1},"model":{"name":"gpt","server":1,"prompt_tokens":1,"completion_tokens":1,"images":{"count":0,"bytes":0},"first_words":1,"cut_by":null},"took":1}"#;

/// It is looked back 4 KiB: a body is hardly longer, and the working space is for that alone.
const WINDOW_BITS: u8 = 12;
/// The most bytes that a body unpacks to.
const MAX_BYTES: usize = 4 << 20;

thread_local! {
    /// Kept: to free its 200 KiB would make the allocator keep two megabytes more.
    static DEFLATE: RefCell<Compress> =
        RefCell::new(Compress::new_with_window_bits(Compression::default(), false, WINDOW_BITS));
}

pub(crate) fn pack(text: &str) -> Vec<u8> {
    let mut packed = Vec::with_capacity(64 + text.len());
    packed.push(DEFLATED);
    let done = DEFLATE.with_borrow_mut(|deflate| {
        deflate.reset();
        deflate.set_dictionary(WORDS)?;
        deflate.compress_vec(text.as_bytes(), &mut packed, FlushCompress::Finish)
    });
    if matches!(done, Ok(Status::StreamEnd)) {
        packed
    } else {
        text.as_bytes().to_vec()
    }
}

/// What was packed; `None` if that was never a text.
pub(crate) fn unpack(packed: &[u8]) -> Option<String> {
    let Some((&DEFLATED, deflated)) = packed.split_first() else {
        return String::from_utf8(packed.to_vec()).ok();
    };
    let mut inflate = Decompress::new(false);
    inflate.set_dictionary(WORDS).ok()?;
    let mut text = Vec::with_capacity(4 * packed.len());
    loop {
        let left = deflated.get(usize::try_from(inflate.total_in()).ok()?..)?;
        match inflate.decompress_vec(left, &mut text, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) => return String::from_utf8(text).ok(),
            Ok(Status::Ok | Status::BufError) if text.len() == text.capacity() => {
                text.reserve(text.len().max(64));
            }
            _ => return None,
        }
        if text.len() > MAX_BYTES {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_unpacked_as_it_was(text in ".{0,400}", times in 0_usize..40) {
            let text = text.repeat(times);
            prop_assert_eq!(unpack(&pack(&text)), Some(text));
        }

        #[test]
        fn no_bytes_are_unpacked_with_a_panic(bytes: Vec<u8>) {
            unpack(&bytes);
            unpack(&[&[DEFLATED], &*bytes].concat());
        }
    }

    #[test]
    fn what_earlier_versions_kept_is_read() {
        assert_eq!(unpack(b"{\"took\":3}"), Some("{\"took\":3}".to_owned()));
    }

    #[test]
    fn words_take_nearly_nothing() {
        let body = str::from_utf8(&WORDS[WORDS.len() / 2..]).unwrap();
        assert!(pack(body).len() < 24, "{}", pack(body).len());
    }

    #[test]
    fn what_is_cut_off_or_endless_is_refused() {
        let packed = pack(&"some text ".repeat(100));
        assert_eq!(unpack(&packed[..packed.len() - 2]), None);
        assert_eq!(unpack(&pack(&" ".repeat(2 * MAX_BYTES))), None);
    }
}
