//! Methods that return the parsed fields of a file, one for each field.

/// Adds a method of the same name for each field listed; the types are `Copy`.
macro_rules! accessors {
    ($owner:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        impl $owner {
            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $field(&self) -> $type {
                    self.$field
                }
            )*
        }
    };
}

pub(crate) use accessors;
