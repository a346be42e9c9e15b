//! Discord's types that are numbers: each variant stands in one list with its number.

/// Declares such a type, with `from_number` and `number`; its first variant holds every number that
/// is not in the list.
macro_rules! numbered {
    ($(#[$meta:meta])+ $name:ident: $integer:ty {
        $(#[$other_doc:meta])+ $other:ident,
        $($(#[$doc:meta])+ $variant:ident = $number:literal,)+
    }) => {
        $(#[$meta])+
        pub enum $name {
            $($(#[$doc])+ $variant,)+
            $(#[$other_doc])+ $other($integer),
        }

        impl $name {
            /// Converts from Discord's number.
            pub const fn from_number(number: $integer) -> Self {
                match number {
                    $($number => Self::$variant,)+
                    other => Self::$other(other),
                }
            }

            /// Discord's number.
            pub const fn number(self) -> $integer {
                match self {
                    $(Self::$variant => $number,)+
                    Self::$other(other) => other,
                }
            }
        }
    };
}

pub(super) use numbered;
