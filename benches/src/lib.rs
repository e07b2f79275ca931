//! The benchmark programs of the workspace.
