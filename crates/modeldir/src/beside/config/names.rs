//! The names that model families give to the same field of `config.json`.

/// Where a model of several parts keeps the configuration of its language model.
pub(super) const NESTED: [&str; 4] =
    ["text_config", "language_config", "llm_config", "thinker_config.text_config"];

/// Keys of the float type of the weights.
pub(super) const DTYPE: [&str; 2] = ["dtype", "torch_dtype"];

pub(super) const HIDDEN_SIZE: &[&str] = &["hidden_size", "n_embd", "d_model", "n_embed", "dim"];
pub(super) const NUM_HIDDEN_LAYERS: &[&str] =
    &["num_hidden_layers", "n_layer", "num_layers", "n_layers"];
pub(super) const NUM_ATTENTION_HEADS: &[&str] =
    &["num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"];
pub(super) const NUM_KEY_VALUE_HEADS: &[&str] =
    &["num_key_value_heads", "num_kv_heads", "n_kv_heads"];
pub(super) const HEAD_DIM: &[&str] = &["head_dim", "kv_channels", "d_kv"];
pub(super) const INTERMEDIATE_SIZE: &[&str] = &[
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "d_ff",
    "ffn_dim",
    "hidden_dim",
    "encoder_ffn_dim",
];
pub(super) const VOCAB_SIZE: &[&str] = &["vocab_size", "padded_vocab_size"];
pub(super) const MAX_POSITION_EMBEDDINGS: &[&str] = &[
    "max_position_embeddings",
    "n_positions",
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_target_positions",
];
pub(super) const ROPE_THETA: &[&str] = &[
    "rope_theta",
    "rope_parameters.rope_theta",
    "rope_parameters.full_attention.rope_theta",
    "rotary_emb_base",
];
pub(super) const NUM_EXPERTS: &[&str] =
    &["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "moe.num_experts"];
pub(super) const NUM_EXPERTS_PER_TOK: &[&str] = &[
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_k",
    "moe.num_experts_per_tok",
];
pub(super) const N_SHARED_EXPERTS: &[&str] =
    &["n_shared_experts", "num_shared_experts", "moe_num_shared_experts"];
pub(super) const NUM_NEXTN_PREDICT_LAYERS: &[&str] =
    &["num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"];
