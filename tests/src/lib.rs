//! Public-API tests of the workspace live in `tests/`.
