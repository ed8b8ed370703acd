#include "trainer/config/keys.h"

#include <array>

namespace tern::trainer {
namespace {

using enum KeyKind;
constexpr std::string_view kFp32Only = "tern-train computes in fp32; leave it out or disabled";
constexpr std::string_view kIgnored = "accepted as Hugging Face writes it, without effect";

constexpr auto kKeys = std::to_array<Key>({
    // The model: Hugging Face's Llama config.json.
    {"model.vocab_size", kInteger, "256", "1..2147483647", "ids that the embedding and the head know"},
    {"model.hidden_size", kInteger, "384", "1..1048576", "width of the residual stream"},
    {"model.intermediate_size", kInteger, "1024", "1..4194304", "width inside the SwiGLU block"},
    {"model.num_hidden_layers", kInteger, "6", "1..100000", "layers"},
    {"model.num_attention_heads", kInteger, "6", "1..65536", "query heads"},
    {"model.num_key_value_heads", kInteger, "null", "1..65536",
     "key and value heads; absent: as many as query heads"},
    {"model.head_dim", kInteger, "null", "1..65536",
     "width of a head; absent: hidden_size / num_attention_heads"},
    {"model.max_position_embeddings", kInteger, "2048", "1..1073741824", "longest sequence"},
    {"model.rms_norm_eps", kNumber, "1e-5", "0..1", "added to the mean square in RMSNorm"},
    {"model.rope_theta", kNumber, "10000.0", "1..1e12", "base of the rotary frequencies"},
    {"model.rope_scaling.rope_type", kChoice, "null", "linear|llama3|default",
     "how rotary frequencies are stretched"},
    {"model.rope_scaling.type", kChoice, "null", "linear|llama3|default", "older name of rope_type"},
    {"model.rope_scaling.factor", kNumber, "1.0", "1..1e6", "stretch"},
    {"model.rope_scaling.low_freq_factor", kNumber, "1.0", "1e-6..1e6", "llama3 only"},
    {"model.rope_scaling.high_freq_factor", kNumber, "4.0", "1e-6..1e6", "llama3 only"},
    {"model.rope_scaling.original_max_position_embeddings", kInteger, "8192", "1..1073741824", "llama3 only"},
    {"model.tie_word_embeddings", kFlag, "false", "", "the head is the embedding"},
    {"model.initializer_range", kNumber, "0.02", "0..10", "standard deviation of the first weights"},
    {"model.hidden_act", kChoice, "\"silu\"", "silu", "the activation; only SwiGLU exists"},
    {"model.model_type", kChoice, "\"llama\"", "llama", "the architecture; only llama exists"},
    {"model.attention_bias", kChoice, "false", "false", "biases in attention do not exist here"},
    {"model.mlp_bias", kChoice, "false", "false", "biases in the MLP do not exist here"},
    {"model.attention_dropout", kChoice, "0.0", "0.0", "dropout does not exist here"},
    {"model.pretraining_tp", kChoice, "1", "1", "only 1"},
    {"model.architectures", kAny, "null", "", kIgnored},
    {"model.bos_token_id", kAny, "null", "", kIgnored},
    {"model.eos_token_id", kAny, "null", "", kIgnored},
    {"model.pad_token_id", kAny, "null", "", kIgnored},
    {"model.torch_dtype", kAny, "null", "", kIgnored},
    {"model.use_cache", kAny, "null", "", kIgnored},
    {"model.transformers_version", kAny, "null", "", kIgnored},
    {"model._name_or_path", kAny, "null", "", kIgnored},
    // The data.
    {"data.text", kText, "null", "path of a text file", "the text to learn"},
    {"data.tokenizer", kChoice, "\"bytes\"", "bytes", "bytes: every byte is a token, vocabulary 256"},
    {"data.sequence_length", kInteger, "256", "1..16777216", "tokens per sequence"},
    {"data.validation_fraction", kNumber, "0.05", "0..0.9", "end of the text that is kept for validation"},
    {"data.shuffle_seed", kInteger, "1", "0..9007199254740992", "order of the training sequences"},
    {"data.prefetch_threads", kInteger, "1", "1..64", "threads that read batches ahead"},
    {"data.cache_dir", kText, "\"\"", "a directory; empty: beside the text", "where the token file is kept"},
    // DeepSpeed's JSON.
    {"deepspeed.train_batch_size", kInteger, "null", "1..1000000000",
     "sequences per optimiser step, all ranks"},
    {"deepspeed.train_micro_batch_size_per_gpu", kInteger, "null", "1..1000000",
     "sequences per pass of one rank"},
    {"deepspeed.gradient_accumulation_steps", kInteger, "null", "1..1000000", "passes per optimiser step"},
    {"deepspeed.gradient_clipping", kNumber, "0.0", "0..1e30", "largest global gradient norm; 0: off"},
    {"deepspeed.steps_per_print", kInteger, "10", "1..1000000000", "steps between plain progress lines"},
    {"deepspeed.zero_optimization.stage", kChoice, "0", "0|2",
     "0: every rank updates everything; 2: gradients and optimiser state are sharded"},
    {"deepspeed.zero_optimization.reduce_bucket_size", kInteger, "500000000", "1..1000000000000",
     "elements reduced together"},
    {"deepspeed.zero_optimization.allgather_bucket_size", kInteger, "500000000", "1..1000000000000",
     "accepted; updated parameters are gathered in the buckets that were reduced"},
    {"deepspeed.zero_optimization.overlap_comm", kFlag, "true", "",
     "reduce buckets while backward still runs"},
    {"deepspeed.zero_optimization.contiguous_gradients", kChoice, "true", "true",
     "gradients are always contiguous"},
    {"deepspeed.zero_optimization.reduce_scatter", kChoice, "true", "true", "stage 2 always reduce-scatters"},
    {"deepspeed.zero_optimization.allgather_partitions", kChoice, "true", "true",
     "parameters are always gathered"},
    {"deepspeed.zero_optimization.round_robin_gradients", kChoice, "false", "false",
     "buckets have a fixed order"},
    {"deepspeed.optimizer.type", kChoice, "\"AdamW\"", "AdamW|Adam",
     "both are AdamW, as in DeepSpeed's default mode"},
    {"deepspeed.optimizer.params.lr", kNumber, "1e-3", "0..1000", "learning rate"},
    {"deepspeed.optimizer.params.betas", kNumbers, "[0.9, 0.999]", "0..0.9999999", "decay of the moments"},
    {"deepspeed.optimizer.params.eps", kNumber, "1e-8", "0..1", "added to the root of the second moment"},
    {"deepspeed.optimizer.params.weight_decay", kNumber, "0.0", "0..1000",
     "decoupled decay of all parameters"},
    {"deepspeed.optimizer.params.adam_w_mode", kChoice, "true", "true", "decay is always decoupled"},
    {"deepspeed.optimizer.params.torch_adam", kAny, "null", "", "accepted; there is one implementation"},
    {"deepspeed.optimizer.params.bias_correction", kChoice, "true", "true", "moments are always corrected"},
    {"deepspeed.scheduler.type", kChoice, "null", "WarmupLR|WarmupDecayLR|WarmupCosineLR",
     "absent: constant"},
    {"deepspeed.scheduler.params.warmup_min_lr", kNumber, "0.0", "0..1000", "rate before the first update"},
    {"deepspeed.scheduler.params.warmup_max_lr", kNumber, "null", "0..1000",
     "rate after warm-up; absent: optimizer's lr"},
    {"deepspeed.scheduler.params.warmup_num_steps", kInteger, "1000", "0..1000000000", "updates of warm-up"},
    {"deepspeed.scheduler.params.warmup_type", kChoice, "\"log\"", "log|linear", "shape of the warm-up"},
    {"deepspeed.scheduler.params.total_num_steps", kInteger, "null", "1..1000000000", "end of the decay"},
    {"deepspeed.scheduler.params.warmup_min_ratio", kNumber, "0.0", "0..1", "WarmupCosineLR only"},
    {"deepspeed.scheduler.params.cos_min_ratio", kNumber, "1e-4", "0..1", "WarmupCosineLR only"},
    {"deepspeed.scheduler.params.last_batch_iteration", kChoice, "-1", "-1",
     "a resumed run knows its place itself"},
    {"deepspeed.fp16.enabled", kChoice, "false", "false", kFp32Only},
    {"deepspeed.bf16.enabled", kChoice, "false", "false", kFp32Only},
    {"deepspeed.prescale_gradients", kChoice, "false", "false", "gradients are summed, then scaled"},
    {"deepspeed.gradient_predivide_factor", kChoice, "1.0", "1.0", "gradients are summed, then scaled"},
    {"deepspeed.communication_data_type", kChoice, "null", "fp32",
     "the codec chooses the bytes: see communication.codec"},
    {"deepspeed.wall_clock_breakdown", kAny, "null", "", "accepted; metrics.jsonl holds the times"},
    {"deepspeed.zero_allow_untested_optimizer", kAny, "null", "", "accepted, without effect"},
    // How gradients travel.
    {"communication.codec", kText, "\"none\"", "none or NAME[:key=value,...], see tern info",
     "codec of gradients"},
    {"communication.residual", kFlag, "null", "", "error feedback; absent: as the codec demands"},
    {"communication.dense_steps", kInteger, "null", "0..1000000000",
     "first steps without the codec; absent: max(100, 2 % of the steps), 10 % for codecs that need a "
     "residual"},
    // The run.
    {"run.steps", kInteger, "100", "1..1000000000", "optimiser steps in all"},
    {"run.seed", kInteger, "1", "0..9007199254740992", "first weights and sampling"},
    {"run.output_dir", kText, "\"tern-run\"", "a directory that all ranks see",
     "metrics, summary, checkpoints"},
    {"run.checkpoint_every", kInteger, "0", "0..1000000000", "steps between checkpoints; 0: only at the end"},
    {"run.checkpoint_keep", kInteger, "2", "0..1000000", "newest checkpoints kept; 0: all"},
    {"run.resume", kText, "\"\"", "empty, latest, or a checkpoint's directory",
     "where to go on from; latest: the newest checkpoint in output_dir, step 0 when there is none; a "
     "checkpoint at "
     "run.steps leaves nothing to do"},
    {"run.overwrite", kFlag, "false", "",
     "delete checkpoints in output_dir that this run does not go on from; false: they are an error"},
    {"run.val_every", kInteger, "0", "0..1000000000", "steps between validations; 0: only at the end"},
    {"run.val_batches", kInteger, "4", "0..1000000",
     "batches of train_batch_size sequences per validation; 0: none"},
    {"run.sample_prompt", kText, "\"In the beginning\"", "any text",
     "start of the sample written at the end"},
    {"run.sample_tokens", kInteger, "200", "0..100000", "tokens of the sample; 0: none"},
    {"run.sample_temperature", kNumber, "0.8", "0..100", "0: always the likeliest token"},
    {"run.measure_peak", kFlag, "true", "",
     "measure the matrix-product peak at the start, to state MFU against it"},
    {"run.threads", kInteger, "0", "0..1024",
     "compute threads per rank; 0: TERN_THREADS, else cores / ranks here"},
});

}  // namespace

std::span<const Key> run_keys() {
  return kKeys;
}

}  // namespace tern::trainer
