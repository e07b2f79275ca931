//! The rules for the tensors of known model families; data.
//!
//! Each line is a pattern of names on disk and the part that a rank takes. Tensors of the same name
//! are cut alike in all families, so families share lists.

use super::line::{Family, Line, Take, line};
use super::rule::Pp;

/// Encoders of images and sound, whose output the first layer reads.
pub(super) const OTHER_SENSES: &[Line] = &[
    line("**.(vision_tower|vision_model|visual|audio_tower|multi_modal_projector).**", Take::Whole)
        .on(Pp::First),
    line("**.(image_tower|video_tower|vision_encoder|vision_resampler).**", Take::Whole)
        .on(Pp::First),
    line("**.(aligner|connector|mlp1|mm_projector|vision_projection).**", Take::Whole)
        .on(Pp::First),
    line("**.image_newline", Take::Whole).on(Pp::First),
];

/// Embedding, last norm and head of models with layers named `layers`.
const ENDS: &[Line] = &[
    line("**.embed_tokens.*", Take::Vocab).embedding(),
    line("**.lm_head.*", Take::Vocab).on(Pp::Last),
    line("norm.*", Take::Whole).on(Pp::Last),
    line("(model|language_model).norm.*", Take::Whole).on(Pp::Last),
    line("**.(model|language_model|text_model).norm.*", Take::Whole).on(Pp::Last),
];

/// Extra layers after those of the model, which predict tokens further ahead and have their own
/// embedding, norm and head.
const EXTRA_LAYERS: &[Line] = &[
    line("**.layers.{l}.embed_tokens.*", Take::Vocab).on(Pp::Layer),
    line("**.layers.{l}.shared_head.head.*", Take::Vocab).on(Pp::Layer),
    line("**.layers.{l}.shared_head.norm.*", Take::Whole).on(Pp::Layer),
    line("**.layers.{l}.eh_proj.*", Take::Whole).on(Pp::Layer),
];

const NORMS: &[Line] =
    &[line("**.*norm*.*", Take::Whole), line("**.rotary_emb.inv_freq", Take::Whole)];

const ATTENTION: &[Line] = &[
    line("**.self_attn.q_proj.*", Take::Query),
    line("**.self_attn.(k|v)_proj.*", Take::KeyValue),
    line("**.self_attn.o_proj.*", Take::FromHeads),
];

/// Latent attention: projections into the latent are whole, those out of it have heads.
const LATENT_ATTENTION: &[Line] = &[
    line("**.self_attn.(q_a_proj|kv_a_proj_with_mqa).*", Take::Whole),
    line("**.self_attn.(q|q_b|kv_b)_proj.*", Take::FromLatent),
    line("**.self_attn.o_proj.*", Take::FromHeads),
];

const FUSED_ATTENTION: &[Line] =
    &[line("**.self_attn.qkv_proj.*", Take::Qkv), line("**.self_attn.o_proj.*", Take::FromHeads)];

const MLP: &[Line] = &[
    line("**.mlp.(gate|up)_proj.*", Take::Out),
    line("**.mlp.gate_up_proj.*", Take::GateUp),
    line("**.mlp.down_proj.*", Take::In),
];

const PLAIN_MLP: &[Line] = &[line("**.mlp.c_fc.*", Take::Out), line("**.mlp.c_proj.*", Take::In)];

/// Experts by name, their router, and the shared experts.
const EXPERTS: &[Line] = &[
    line("**.mlp.gate.*", Take::Whole),
    line("**.mlp.shared_expert_gate.*", Take::Whole),
    line("**.mlp.experts.{e}.(gate|up)_proj.*", Take::Out).expert(),
    line("**.mlp.experts.{e}.down_proj.*", Take::In).expert(),
    line("**.mlp.(shared_expert|shared_experts).(gate|up)_proj.*", Take::Out),
    line("**.mlp.(shared_expert|shared_experts).down_proj.*", Take::In),
];

/// Experts of a layer in one tensor, as transformers holds them since its version 5, and as MLX
/// does.
const STACKED_EXPERTS: &[Line] = &[
    line("**.mlp.experts.gate_up_proj*", Take::GateUp).stacked(),
    line("**.mlp.experts.down_proj*", Take::In).stacked(),
    line("**.(mlp|block_sparse_moe).switch_mlp.(gate|up)_proj.*", Take::Out).stacked(),
    line("**.(mlp|block_sparse_moe).switch_mlp.down_proj.*", Take::In).stacked(),
];

/// The same with inputs before outputs, as they are published. What transformers 5 saves of such a
/// model has outputs first, and contradicts the lengths of the configuration.
const TRANSPOSED_EXPERTS: &[Line] = &[
    line("**.mlp.experts.gate_up_proj*", Take::GateUp).stacked().transposed(),
    line("**.mlp.experts.down_proj*", Take::In).stacked().transposed(),
];

const MIXTRAL_EXPERTS: &[Line] = &[
    line("**.(mlp|block_sparse_moe).gate.*", Take::Whole),
    line("**.block_sparse_moe.experts.{e}.(w1|w3).*", Take::Out).expert(),
    line("**.block_sparse_moe.experts.{e}.w2.*", Take::In).expert(),
];

const GPT_OSS: &[Line] = &[
    line("**.self_attn.sinks", Take::Query),
    line("**.mlp.router.*", Take::Whole),
    line("**.mlp.experts.gate_up_proj*", Take::Pairs).stacked().transposed(),
    line("**.mlp.experts.down_proj*", Take::In).stacked().transposed(),
    // As MLX stores them.
    line("**.mlp.experts.(gate|up)_proj.*", Take::Out).stacked(),
    line("**.mlp.experts.down_proj.*", Take::In).stacked(),
];

const LLAMA4_EXPERTS: &[Line] = &[
    line("**.feed_forward.router.*", Take::Whole),
    line("**.feed_forward.experts.gate_up_proj*", Take::GateUp).stacked().transposed(),
    line("**.feed_forward.experts.down_proj*", Take::In).stacked().transposed(),
    line("**.feed_forward.experts.{e}.(gate|up)_proj.*", Take::Out).expert(),
    line("**.feed_forward.experts.{e}.down_proj.*", Take::In).expert(),
    // As MLX stores them.
    line("**.feed_forward.experts.(gate|up)_proj.*", Take::Out).stacked(),
    line("**.feed_forward.experts.down_proj.*", Take::In).stacked(),
    line("**.feed_forward.(gate|up)_proj.*", Take::Out),
    line("**.feed_forward.down_proj.*", Take::In),
    line("**.feed_forward.shared_expert.(gate|up)_proj.*", Take::Out),
    line("**.feed_forward.shared_expert.down_proj.*", Take::In),
];

/// Heads with their query, key and value rows together, as in GPT-NeoX and its descendants.
const TOGETHER: &[Line] = &[
    line("**.(attention|self_attention).dense.*", Take::FromHeads),
    line("**.mlp.dense_h_to_4h.*", Take::Out),
    line("**.mlp.dense_4h_to_h.*", Take::In),
];

const GPT_NEOX: &[Line] = &[
    line("**.embed_in.*", Take::Vocab).embedding(),
    line("**.(embed_out|lm_head).*", Take::Vocab).on(Pp::Last),
    line("**.final_layer_norm.*", Take::Whole).on(Pp::Last),
    line("**.attention.query_key_value.*", Take::Together),
    line("**.attention.(bias|masked_bias)", Take::Whole),
];

/// Embedding, last norm and head of models with layers named `h`.
const H_ENDS: &[Line] = &[
    line("**.(wte|word_embeddings).*", Take::Vocab).embedding(),
    line("**.(wpe|word_embeddings_layernorm).*", Take::Whole).on(Pp::First),
    line("**.ln_f.*", Take::Whole).on(Pp::Last),
    line("**.lm_head.*", Take::Vocab).on(Pp::Last),
];

const BLOOM: &[Line] = &[line("**.self_attention.query_key_value.*", Take::Together)];

const FALCON: &[Line] = &[
    line("**.self_attention.query_key_value.*", Take::FalconQkv),
    line("**.(ln_attn|ln_mlp).*", Take::Whole),
];

const GPT2: &[Line] = &[
    line("**.attn.c_attn.*", Take::Qkv).transposed(),
    line("**.attn.c_proj.*", Take::FromHeads).transposed(),
    line("**.mlp.c_fc.*", Take::Out).transposed(),
    line("**.mlp.c_proj.*", Take::In).transposed(),
    line("**.(ln_1|ln_2).*", Take::Whole),
    line("**.attn.(bias|masked_bias)", Take::Whole),
];

/// The families, by the first of their names.
pub(super) const FAMILIES: &[Family] = &[
    Family { model_types: &["bloom"], tied: true, lists: &[H_ENDS, BLOOM, TOGETHER, NORMS] },
    Family {
        model_types: &["deepseek_v2", "deepseek_v3"],
        tied: false,
        lists: &[EXTRA_LAYERS, ENDS, LATENT_ATTENTION, MLP, EXPERTS, STACKED_EXPERTS, NORMS],
    },
    Family { model_types: &["falcon"], tied: true, lists: &[H_ENDS, FALCON, TOGETHER, NORMS] },
    Family {
        model_types: &["gemma", "gemma2", "gemma3", "gemma3_text"],
        tied: true,
        lists: &[OTHER_SENSES, ENDS, ATTENTION, MLP, NORMS],
    },
    Family {
        model_types: &["glm4", "phi3"],
        tied: false,
        lists: &[ENDS, FUSED_ATTENTION, ATTENTION, MLP, NORMS],
    },
    Family { model_types: &["gpt2"], tied: true, lists: &[H_ENDS, GPT2] },
    Family { model_types: &["gpt_neox"], tied: false, lists: &[GPT_NEOX, TOGETHER, NORMS] },
    Family { model_types: &["gpt_oss"], tied: false, lists: &[ENDS, ATTENTION, GPT_OSS, NORMS] },
    Family {
        model_types: &["llama", "mistral", "qwen2", "qwen3"],
        tied: false,
        lists: &[ENDS, ATTENTION, MLP, NORMS],
    },
    Family {
        model_types: &["llama4", "llama4_text"],
        tied: false,
        lists: &[OTHER_SENSES, ENDS, ATTENTION, LLAMA4_EXPERTS, NORMS],
    },
    Family {
        model_types: &["mixtral"],
        tied: false,
        lists: &[ENDS, ATTENTION, MIXTRAL_EXPERTS, STACKED_EXPERTS, NORMS],
    },
    Family {
        model_types: &["qwen2_moe", "qwen3_moe"],
        tied: false,
        lists: &[ENDS, ATTENTION, MLP, EXPERTS, STACKED_EXPERTS, NORMS],
    },
    Family {
        model_types: &["starcoder2"],
        tied: true,
        lists: &[ENDS, ATTENTION, PLAIN_MLP, NORMS],
    },
];

/// Language models that only occur within others.
pub(super) const INNER: &[Family] = &[Family {
    model_types: &["qwen3_vl_moe_text"],
    tied: false,
    lists: &[ENDS, ATTENTION, MLP, TRANSPOSED_EXPERTS, EXPERTS, NORMS],
}];
