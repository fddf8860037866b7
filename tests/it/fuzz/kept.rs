//! Every input of `fuzz/corpus`: it reached something that no other did.

use std::fs;
use std::path::Path;

use super::invariants::TARGETS;

#[test]
fn every_input_that_the_fuzzer_kept_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (target, holds) in TARGETS {
        let folder = corpus.join(target);
        let files = fs::read_dir(&folder).expect("each target has a corpus");
        let mut count = 0;
        for file in files {
            let path = file.expect("can be listed").path();
            // Shown by the test runner if the next line panics.
            println!("{}", path.display());
            holds(&fs::read(&path).expect("can be read"));
            count += 1;
        }
        assert!(count > 0, "no input in {}", folder.display());
    }
}
