//! The syntax of a float type on the command line.

use modeldir::Float;

/// Parses `f16`, `bf16` or `f32`, or torch's names for them.
pub(super) fn parse_float(text: &str) -> Result<Float, String> {
    match text.to_ascii_lowercase().as_str() {
        "f16" | "fp16" | "float16" => Ok(Float::F16),
        "bf16" | "bfloat16" => Ok(Float::BF16),
        "f32" | "fp32" | "float32" => Ok(Float::F32),
        _ => Err("expected f16, bf16 or f32".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_float;
    use modeldir::Float;

    #[test]
    fn names_are_those_of_the_format_and_of_torch() {
        for text in ["BF16", "bf16", "bfloat16"] {
            assert_eq!(parse_float(text), Ok(Float::BF16));
        }
        assert!(parse_float("f64").is_err());
    }
}
