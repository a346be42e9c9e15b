//! Texts as long and as odd as Discord allows.

/// Small, fast and reproducible; not for secrets.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn seeded(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `end`, which must be above 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap_or(0)
    }
}

/// What texts are filled with. Each `%` becomes a new number.
pub(super) const FILLERS: [(&str, &str); 40] = [
    ("letters", "a"),
    ("i", "I"),
    ("words", "word "),
    ("different words", "w% "),
    ("<", "<"),
    ("<@", "<@"),
    ("open mentions", "<@1"),
    ("mentions", "<@%00000000000000>"),
    ("mentions of one", "<@1>"),
    ("roles", "<@&%00000000000000>"),
    ("channels", "<#%00000000000000>"),
    ("custom emoji", "<:e%:1>"),
    ("open emoji", "<:e:"),
    ("times", "<t:%:R>"),
    ("commands", "</c:%>"),
    ("links", "https://discord.com/channels/1/%/3 "),
    ("half links", "https://discord.com/channels/1/"),
    ("web links", "[a](https://e.org/%) "),
    ("brackets", "[(["),
    ("backticks", "` "),
    ("double backticks", "`` ` "),
    ("fences", "```\n"),
    ("open fences", "```a\n```` "),
    ("bold", "**a*_"),
    ("spoilers", "||"),
    ("quotes", "> > "),
    ("lists", "\n- "),
    ("line breaks", "\n"),
    ("blank lines", " \t\n"),
    ("marks", "\u{301}"),
    ("zalgo", "e\u{301}\u{335}\u{489}\u{36F}\u{20DD}"),
    ("right to left", "\u{202E}\u{5D0}\u{64E}"),
    ("zero width", "\u{200B}\u{FEFF}"),
    ("joiners", "\u{200D}"),
    ("families", "👨‍👩‍👧"),
    ("flags", "🇩🇪"),
    ("half flags", "🇩"),
    ("tag characters", "\u{1F3F4}\u{E0067}"),
    ("Hangul letters", "\u{1100}\u{1161}\u{11A8}"),
    ("look-alikes", "З\u{1D4D8}１"),
];

/// A text of `chars` scalars, filled with one thing.
fn of(filler: &str, chars: usize, number: &mut u64) -> String {
    let mut text = String::new();
    let mut left = chars;
    while left > 0 {
        for character in filler.chars().take(left) {
            left -= 1;
            match character {
                '%' => {
                    *number += 1;
                    text.push_str(&number.to_string());
                }
                character => text.push(character),
            }
        }
    }
    text.chars().take(chars).collect()
}

/// Fills texts with one filler, or with several at random.
pub(super) struct Writer {
    pub(super) name: String,
    fillers: Vec<&'static str>,
    random: Random,
    number: u64,
}

impl Writer {
    /// The first cases use one filler each, the others a random three.
    pub(super) fn numbered(case: usize) -> Self {
        let mut random = Random::seeded(0x00C1_E300 + case as u64);
        let chosen: Vec<(&str, &str)> = match FILLERS.get(case) {
            Some(filler) => vec![*filler],
            None => (0..3)
                .map(|_| FILLERS[random.below(FILLERS.len())])
                .collect(),
        };
        let names: Vec<&str> = chosen.iter().map(|(name, _)| *name).collect();
        Self {
            name: names.join(", "),
            fillers: chosen.into_iter().map(|(_, filler)| filler).collect(),
            random,
            number: 0,
        }
    }

    /// A text of `chars` scalars.
    pub(super) fn text(&mut self, chars: usize) -> String {
        if let [filler] = self.fillers[..] {
            return of(filler, chars, &mut self.number);
        }
        let mut text = String::new();
        let mut left = chars;
        while left > 0 {
            let filler = self.fillers[self.random.below(self.fillers.len())];
            let part = left.min(1 + self.random.below(60));
            text.push_str(&of(filler, part, &mut self.number));
            left -= part;
        }
        text
    }
}
