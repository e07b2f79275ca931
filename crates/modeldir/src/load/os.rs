//! System calls of a load that the standard library lacks.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::{
    cached_pages, direct_alignment, file_system, file_system_at, has_to_wait, page_size, read_at,
};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{
    cached_pages, direct_alignment, file_system, file_system_at, has_to_wait, page_size, read_at,
};
