//! What the examples share: nothing but how they print.
