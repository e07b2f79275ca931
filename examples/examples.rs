//! One idea a file: the examples are programs of their own, and share nothing.
