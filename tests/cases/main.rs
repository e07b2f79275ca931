//! Runs every case of the conformance corpus, of our own, and of the folder that `MODELDIR_CASES`
//! names; and asks the reference reader for its verdict on each file of the conformance corpus.
//!
//! A relative folder is looked up from the root of the workspace. The last line is the totals,
//! and before it is the reason of each case that was skipped.
#![expect(clippy::print_stdout, reason = "this is a test runner")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use modeldir_properties::{Agreement, compare};
use modeldir_tests::{Case, FormatCase, Outcome, cases_in, conformance, run_as_child};

/// Names of skipped cases and the reasons.
type Skipped = Arc<Mutex<Vec<(String, String)>>>;

fn main() -> ExitCode {
    if let Some((code, wrong)) = run_as_child() {
        println!("{wrong}");
        return code;
    }
    let args = Arguments::from_args();
    let skipped = Skipped::default();
    let trials = match trials(&skipped) {
        Ok(trials) => trials,
        Err(wrong) => {
            println!("{wrong}");
            return ExitCode::FAILURE;
        }
    };
    let conclusion = libtest_mimic::run(&args, trials);
    if !args.list {
        print_totals(&conclusion, &skipped);
    }
    conclusion.exit_code()
}

fn trials(skipped: &Skipped) -> Result<Vec<Trial>, String> {
    let (mut cases, files) = conformance(&modeldir_fixtures::conformance_dir())?;
    cases.extend(cases_in("corpus", &modeldir_fixtures::corpus_dir())?);
    if let Some(dir) = env::var_os("MODELDIR_CASES") {
        cases.extend(cases_in("given", &from_root(Path::new(&dir)))?);
    }
    let ours = cases.into_iter().map(|case| trial(case, Arc::clone(skipped)));
    Ok(ours.chain(files.into_iter().map(reference_trial)).collect())
}

/// Holds the manifest to what the reference makes of a file.
fn reference_trial(case: FormatCase) -> Trial {
    Trial::test(format!("reference/{}", case.id), move || {
        let bytes = fs::read(&case.path).map_err(|error| error.to_string())?;
        let (accepted, reference_accepts) = match compare(&bytes)? {
            Agreement::Accepted => (true, true),
            Agreement::Refused => (false, false),
            Agreement::Exception(_) => (false, true),
        };
        let said = (case.accepted, case.reference_accepts);
        if said == (accepted, reference_accepts) {
            return Ok(());
        }
        let verdicts = format!("accepted: {accepted}, by the reference: {reference_accepts}");
        Err(Failed::from(format!("{verdicts}; the manifest says {said:?}")))
    })
}

/// A path as seen from the root of the workspace; tests run in the folder of their package.
fn from_root(path: &Path) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn trial(case: Case, skipped: Skipped) -> Trial {
    let name = case.name();
    Trial::ignorable_test(name.clone(), move || match case.run() {
        Ok(Outcome::Passed) => Ok(Completion::Completed),
        Ok(Outcome::Skipped(reason)) => {
            let completion = Completion::ignored_with(&reason);
            skipped.lock().unwrap_or_else(PoisonError::into_inner).push((name, reason));
            Ok(completion)
        }
        Err(wrong) => Err(Failed::from(wrong)),
    })
}

fn print_totals(conclusion: &Conclusion, skipped: &Skipped) {
    let Conclusion { num_passed, num_failed, num_ignored, .. } = conclusion;
    let mut skipped = skipped.lock().unwrap_or_else(PoisonError::into_inner).clone();
    skipped.sort();
    for (name, reason) in skipped {
        println!("  skipped {name}: {reason}");
    }
    println!("{num_passed} passed, {num_failed} failed, {num_ignored} skipped");
}
