//! Closed sets of words: each variant stands in one list with the word that telemetry, settings
//! and stores write for it.

/// Declares such sets: enums with `ALL`, `CHOICES`, `as_str`, `words` and `from_word`, serialized as their words.
/// The calling crate needs serde.
///
/// ```
/// clew_context::words! {
///     /// A season.
///     Season {
///         /// With leaves.
///         Summer = "summer",
///         /// Without.
///         Winter = "winter",
///     }
/// }
/// assert_eq!(Season::from_word("winter"), Some(Season::Winter));
/// ```
#[macro_export]
macro_rules! words {
    ($($(#[$doc:meta])+ $name:ident {
        $($(#[$variant_doc:meta])+ $variant:ident = $word:literal,)+
    })+) => {$(
        $(#[$doc])+
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize,
            serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$variant_doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Each with its word, in that order.
            pub const CHOICES: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];

            /// The word that is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// All the words, in that order.
            pub fn words() -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().map(|one| one.as_str())
            }

            /// The one with that word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+};
}
