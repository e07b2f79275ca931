//! The memory that a load takes, held to what its plan says. The test reads the tables of Linux;
//! elsewhere another says that it does not run.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
#[test]
fn memory_is_not_measured_on_this_system() {
    // Not with `println!`, whose output is hidden if the test passes.
    let message = b"load_memory: NOT RUN, memory is measured on Linux alone\n";
    assert!(std::io::Write::write_all(&mut std::io::stderr(), message).is_ok());
}
