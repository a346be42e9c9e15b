//! The page's own files, inside the program.

#[derive(Debug, Clone, Copy)]
pub(super) struct PageFile {
    /// Its path on the server, without the slash.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// The page itself.
const PAGE: &str = "index.html";

/// The table of files: those in `page/`.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// All of them; a test compares them with the folder.
        pub(super) const FILES: &[PageFile] = &[$(PageFile {
            name: $name,
            text: include_str!(concat!("page/", $name)),
        }),+];
    };
}

files![
    "actions.js",
    "api.js",
    "base.css",
    "chat.css",
    "chat.js",
    "commands.js",
    "composer.js",
    "dialogs.js",
    "diff.js",
    "dom.js",
    "events.js",
    "faults.js",
    "index.html",
    "keyboard.js",
    "list.js",
    "main.js",
    "marks.js",
    "mentions.js",
    "message-acts.js",
    "message.js",
    "names.js",
    "side.css",
    "side.js",
    "sidebar.js",
    "store.js",
    "theme.js",
    "tune.js",
    "why.js",
];

impl PageFile {
    /// The file at this path, and no other form of it; `/` is the page itself.
    pub(super) fn find(path: &str) -> Option<Self> {
        let name = path.strip_prefix('/')?;
        let name = if name.is_empty() { PAGE } else { name };
        FILES.iter().copied().find(|file| file.name == name)
    }

    /// Whether it is the page itself, not a part of it.
    pub(super) fn is_page(self) -> bool {
        self.name == PAGE
    }

    pub(super) fn content_type(self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "text/javascript; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_has_every_file_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/playground/page");
        let files = std::fs::read_dir(folder).unwrap();
        let there: BTreeSet<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed: BTreeSet<String> = FILES.iter().map(|file| file.name.to_owned()).collect();
        assert_eq!(listed, there);
    }
}
