//! `debug!`: writes the `Debug` of a type whose fields would say too much.

/// Implements `Debug` for a type by some values of it. `[S]` before the type is its parameter.
macro_rules! debug {
    (
        $([$parameter:ident])? $name:ident$(<$($argument:tt),+>)?,
        |$this:ident| $($field:ident: $value:expr),+
    ) => {
        impl$(<$parameter>)? ::std::fmt::Debug for $name$(<$($argument),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value))+
                    .finish_non_exhaustive()
            }
        }
    };
}
