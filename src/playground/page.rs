//! The page's own files, inside the program.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageFile {
    /// Its path on the server, without the slash.
    pub(super) name: &'static str,
    text: &'static str,
}

/// What stands in the page for its token.
const TOKEN: &str = "{{token}}";

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
    /// The file with this name; the empty name is the page's own.
    pub(super) fn find(name: &str) -> Option<Self> {
        let name = if name.is_empty() { "index.html" } else { name };
        FILES.iter().copied().find(|file| file.name == name)
    }

    /// Its media type.
    pub(super) fn content_type(self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "text/javascript; charset=utf-8",
        }
    }

    /// Its text; the page's own has the token in it.
    pub(super) fn text(self, token: &str) -> String {
        with_token(self.name, self.text, token)
    }

    /// The same, with the text from a folder.
    #[cfg(feature = "test-util")]
    pub(super) fn text_in(self, folder: &std::path::Path, token: &str) -> std::io::Result<String> {
        let text = std::fs::read_to_string(folder.join(self.name))?;
        Ok(with_token(self.name, &text, token))
    }
}

fn with_token(name: &str, text: &str, token: &str) -> String {
    if name == "index.html" {
        text.replace(TOKEN, token)
    } else {
        text.to_owned()
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

    #[test]
    fn only_the_page_itself_has_the_token() {
        let token = "0123456789abcdef";
        for file in FILES {
            let text = file.text(token);
            assert_eq!(
                text.contains(token),
                file.name == "index.html",
                "{}",
                file.name
            );
        }
    }
}
