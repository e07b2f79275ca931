//! Values that each rank loads, against what numpy itself cut of the same file.

use std::collections::BTreeMap;
use std::fs;

use modeldir::{ModelDir, Partition, Topology};
use modeldir_fixtures::{DTYPES, cuts_dir, sha256_hex};
use serde::Deserialize;
use serde_json::{Value, json};

/// What numpy cut for one rank of the tensors of one shape.
#[derive(Deserialize)]
struct Row {
    tensor: String,
    rule: Value,
    uneven: String,
    rank: String,
    shape: Vec<usize>,
    /// By dtype. Those whose part does not fill bytes are left out.
    sha256: BTreeMap<String, String>,
}

#[test]
fn every_part_has_the_bytes_that_numpy_cut() {
    let model = ModelDir::open(cuts_dir()).unwrap();
    let text = fs::read_to_string(cuts_dir().join("parts.json")).unwrap();
    let rows: Vec<Row> = serde_json::from_str(&text).unwrap();
    let mut compared = 0;
    for Row { tensor, mut rule, uneven, rank, shape, sha256 } in rows {
        let dtypes: Vec<_> = sha256.keys().map(String::as_str).collect();
        rule["match"] = json!(format!("({}).{tensor}", dtypes.join("|")));
        let rules = json!([rule, { "match": "**", "tp": "skip" }]);
        let partition = json!({ "uneven": uneven, "rules": rules });
        let partition: Partition = serde_json::from_value(partition).unwrap();
        let kind = if rule["ep"].is_null() { "tp" } else { "ep" };
        let topology: Topology = serde_json::from_value(json!({ kind: rank })).unwrap();
        let plan = model.plan_for(&partition, &topology).unwrap();
        let store = plan.load().unwrap();
        assert_eq!(store.len(), sha256.len(), "{rule} {rank}");
        for (dtype, expected) in sha256 {
            let part = store.get(&format!("{dtype}.{tensor}")).unwrap();
            assert_eq!(part.dtype().name(), dtype);
            assert_eq!(part.shape(), shape, "{rule} {uneven} {rank} {dtype}");
            assert_eq!(sha256_hex(part.bytes()), expected, "{rule} {uneven} {rank} {dtype}");
            compared += 1;
        }
    }
    // 28 cuts on 112 ranks, of 22 dtypes; of 19 where parts of the packed ones do not fill bytes.
    assert_eq!((compared, DTYPES.len()), (2344, 22));
}
