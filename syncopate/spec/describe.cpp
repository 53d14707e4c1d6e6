// Every setting of a run: name, help and flag.
#include "syncopate/spec/fault.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::spec {

void RunSpec::Task::describe(Fields& fields) {
  fields.add("name", name, "what to learn", "task").takes("TASK").one_of(task_names());
  fields.add("data", data, "the data (default: the built-in data of the task)", "data").takes("PATH");
  fields.add("text", text, "csv, mlm, clm: the column with the text", "text").takes("COLUMN");
  fields.add("text_pair", text_pair, "csv: the column with a second text, if there is one", "text-pair")
      .takes("COLUMN");
  fields.add("label", label, "csv: the column with the label", "label").takes("COLUMN");
  fields
      .add("encoding", encoding,
           "of text files: utf-8, another that iconv knows (latin-1, windows-1252, utf-16), or replace: "
           "UTF-8 with "
           "U+FFFD for other bytes, which are counted",
           "encoding")
      .takes("ENCODING");
  fields
      .add("separator", separator,
           "of a table's columns: one character, tab, or auto (.csv: comma, semicolon or tab, as its header "
           "has it)",
           "separator")
      .takes("CHARACTER");
  fields
      .add("max_length", max_length,
           "tokens per example, special tokens included (auto: 128, for questions 320)", "max-length")
      .zero_is("auto");
  fields.add("shuffle", shuffle, "a new order every epoch; false keeps the file's order");
  fields.add("limit", limit, "train on a seeded subset of this many examples", "limit").zero_is("all");
  fields.add("test_limit", test_limit, "evaluate on N of the test examples, the same for every seed")
      .zero_is("all");
  fields
      .add("validation", validation,
           "what patience, plateaus and --keep best look at: a share of the training data (0.1), a file, "
           "off, or "
           "auto (0.05 if something looks, else off)",
           "validation")
      .takes("SHARE|FILE");
  fields.add("mask_rate", mask_rate, "mlm: fraction of the words that are masked");
  fields.add("whole_words", whole_words, "mlm: mask all pieces of a word together");
  fields
      .add("documents", documents,
           "mlm, clm: how documents are separated (line: each line is one; blank: by blank lines; auto: as "
           "found)")
      .one_of({"auto", "line", "blank"});
  fields
      .add("cache", cache,
           "mlm, clm, csv, GLUE: where the tokens of the data are kept for all workers and for later runs: a "
           "folder, off, or auto (.token-cache beside the run's folder, for 32 MiB of text or more)",
           "cache")
      .takes("FOLDER");
  fields.add("stride", stride, "squad: tokens by which the windows of a long text overlap");
  fields.add("augment", augment, "images: random crops and flips in training");
}

void RunSpec::Model::describe(Fields& fields) {
  fields
      .add("name", name, "a Hugging Face folder, or a preset (default: the smallest preset of the task)",
           "model")
      .takes("MODEL")
      .one_of(model_names());
  fields
      .add("init_from", init_from,
           "start from this run or model folder with a fresh head; --model may be left out", "init-from")
      .takes("FOLDER");
  fields
      .add("vocab", vocab,
           "vocab.txt, for GPT vocab.json, or tokenizer.json (default: the model folder's, or one built from "
           "the training text)",
           "vocab")
      .takes("FILE");
  fields.add("vocab_size", vocab_size, "size of a vocabulary built from the training text");
  fields.add("dropout", dropout, "dropout probability", "dropout");
  fields.add("inner_dropout", inner_dropout, "dropout inside the feed-forward block; BERT has none");
  fields
      .add("batch_norm", batch_norm,
           "images: whose batch-norm statistics (local: each worker's own; broadcast: rank 0's; sync: those "
           "of all)")
      .one_of({"local", "broadcast", "sync"});
}

void RunSpec::Strategy::describe(Fields& fields) {
  fields.add("name", name, "how workers synchronise", "strategy").takes("STRATEGY").one_of(strategy_names());
  fields.add("whole", whole,
             "gather-scatter, all-reduce: one call for all gradients instead of one per parameter");
  fields.add("bucket_mib", bucket_mib, "ddp, data-parallel: bucket size");
  fields.add("first_bucket_mib", first_bucket_mib,
             "ddp, data-parallel: size of the first bucket; small, so that its exchange starts early");
  fields.add("sparse_rows", sparse_rows,
             "ddp, parameter-server: exchange only the embedding rows that were read");
  fields.add("overlap", overlap, "ddp: start buckets during the backward pass");
  fields.add(
      "share_update", share_update,
      "all-reduce, ddp, data-parallel: workers that share memory keep parameters and optimizer state once, "
      "and each updates a part");
  fields.add("every", every, "local-sgd, diloco: optimizer steps between averages");
  fields.add("overlap_average", overlap_average,
             "local-sgd: average while training goes on (for strategy.delay steps; default: half of "
             "strategy.every)");
  fields.add("post_local_start", post_local_start,
             "local-sgd: first local step; the steps before it are synchronous");
  fields.add("moments", moments, "local-sgd, diloco: the optimizer's moments at an average")
      .one_of({"keep", "average", "reset"});
  fields.add("outer_lr", outer_lr, "diloco: learning rate of the outer optimizer");
  fields.add("outer_momentum", outer_momentum, "diloco: momentum of the outer optimizer");
  fields.add("outer_nesterov", outer_nesterov, "diloco: Nesterov momentum; false: plain momentum (BMUF)");
  fields.add("fragments", fragments, "diloco: number of fragments of the model, averaged in turn");
  fields.add("delay", delay,
             "local-sgd, diloco: steps from the start of an average to its use; 0: workers wait for it");
  fields.add("mixing", mixing, "diloco: weight of the local values when an average arrives");
  fields
      .add("staleness", staleness,
           "parameter-server: how many updates a worker may be ahead of the slowest, or inf")
      .takes("INT");
  fields.add("staleness_lr", staleness_lr,
             "parameter-server: divide the learning rate of an update by its staleness");
  fields.add("servers", servers, "parameter-server: number of server processes");
  fields.add("state", state, "hogwild: optimizer state: one per process, or shared")
      .one_of({"own", "shared"});
}

void RunSpec::Codec::describe(Fields& fields) {
  fields.add("name", name, "compression of what is exchanged", "codec").takes("CODEC").one_of(codec_names());
  fields.add("ratio", ratio, "top-k, random-k: fraction of the values that is sent");
  fields.add("rank", rank, "power-sgd: rank of the approximation");
  fields.add(
      "warmup", warmup,
      "one-bit, power-sgd: uncompressed steps at the start: a fraction of all, or a number if 1 or more");
  fields
      .add("error_feedback", error_feedback,
           "add the compression error to the next gradient (auto: where it is needed)")
      .one_of({"auto", "true", "false"});
}

void RunSpec::Optim::describe(Fields& fields) {
  fields.add("name", name, "how gradients become updates", "optimizer")
      .takes("OPTIMIZER")
      .one_of(optimizer_names());
  fields.add("lr", lr, "peak learning rate", "lr");
  fields.add("weight_decay", weight_decay, "weight decay, of matrices but not of biases and norms",
             "weight-decay");
  fields.add("beta1", beta1, "adamw, lamb: decay of the first moment");
  fields.add("beta2", beta2, "adamw, lamb: decay of the second moment");
  fields.add("eps", eps, "adamw, lamb: added to the root of the second moment; lars: to a norm");
  fields.add("momentum", momentum, "sgd, lars: momentum");
  fields.add("nesterov", nesterov, "sgd: Nesterov momentum");
  fields.add("trust", trust, "lars: trust coefficient");
  fields.add("warmup", warmup, "linear warm-up: a fraction of the steps, or a number of steps if above 1",
             "warmup");
  fields.add("schedule", schedule, "learning-rate schedule after the warm-up", "schedule")
      .takes("SCHEDULE")
      .one_of(schedule_names());
  fields
      .add("milestones", milestones, "schedule step: where the rate drops: fractions of the steps, or steps")
      .takes("LIST");
  fields.add("gamma", gamma, "schedule step: factor of each drop");
  fields.add("cycle", cycle, "schedule cyclic: period: a fraction of the steps, or steps");
  fields.add("cycle_ratio", cycle_ratio, "schedule cyclic: highest over lowest rate");
  fields.add("power", power, "schedule polynomial: its power");
  fields.add("final_share", final_share, "schedule polynomial: final rate as a fraction of the peak");
  fields.add("scaling", scaling, "scale the peak rate with batch / base-batch", "lr-scaling")
      .takes("SCALING")
      .one_of(scaling_names());
  fields.add("base_batch", base_batch, "examples per step that --lr is meant for", "base-batch");
  fields.add("clip", clip, "clip the global gradient norm to this", "clip").zero_is("off");
  fields.add("label_smoothing", label_smoothing, "label smoothing", "label-smoothing");
  fields.add("plateau_factor", plateau_factor,
             "multiply the learning rate by this when the validation loss stops improving; 1: off");
  fields.add("plateau_patience", plateau_patience, "evaluations without improvement before that");
}

void RunSpec::Train::describe(Fields& fields) {
  fields
      .add("batch_size", batch_size, "examples per worker and micro-batch (auto: 16, or from --global-batch)",
           "batch-size")
      .zero_is("auto");
  fields
      .add("global_batch", global_batch, "examples per step over all workers (auto: from --batch-size)",
           "global-batch")
      .zero_is("auto");
  fields.add("accumulate", accumulate, "micro-batches per optimizer step", "accumulate");
  fields
      .add("epochs", epochs, "passes over the training data (auto: 1, or as many as --steps needs)", "epochs")
      .zero_is("auto");
  fields.add("steps", steps, "optimizer steps, instead of --epochs (auto: from --epochs)", "steps")
      .zero_is("auto");
  fields.add("seed", seed, "random seed: initial weights, order of examples, dropout", "seed");
  fields.add("eval_every", eval_every, "steps between evaluations, or epoch", "eval-every").takes("STEPS");
  fields
      .add("save_every", save_every,
           "a checkpoint every so many steps, so often (90s, 10m, 2h), every epoch, or auto (every epoch and "
           "every "
           "10 minutes)",
           "save-every")
      .takes("STEPS|TIME");
  fields.add("eval_batch", eval_batch, "batch size of evaluations (auto: depends on the task)")
      .zero_is("auto");
  fields.add("patience", patience, "stop after N evaluations without improvement", "patience").zero_is("off");
  fields
      .add("keep", keep,
           "which model is the result (best: by the validation split; auto: best with --patience, else last)",
           "keep")
      .takes("WHICH")
      .one_of({"auto", "last", "best"});
  fields.add("time_limit", time_limit, "stop after so long, with a checkpoint", "time-limit")
      .takes("SECONDS")
      .zero_is("off");
  fields.add("arrange", arrange,
             "spread the texts of a step over workers and micro-batches by length; false: in order");
  fields.add("balance", balance, "give each worker a share of the global batch that fits its speed",
             "balance");
  fields.add("balance_every", balance_every, "balance: steps between measurements of the workers' speed");
  fields.add("tensorboard", tensorboard, "also write event files for TensorBoard, below the run's folder",
             "tensorboard");
  fields.add("noise_scale", noise_scale,
             "estimate the gradient noise scale (McCandlish et al. 2018) from the workers' gradients");
  fields.add("worker_evals", worker_evals,
             "local-sgd, diloco: also score each worker's own model at the end");
}

void RunSpec::Comm::describe(Fields& fields) {
  fields.add("workers", workers, "number of workers", "workers");
  fields
      .add(
          "backend", backend,
          "how workers exchange (shm: memory that the workers of one host share; shm+gloo: that within hosts "
          "and gloo between them; mpi: for workers that mpirun starts; nccl: between GPUs; auto: shm where "
          "all "
          "are on one host, shm+gloo where some share one, else gloo, and nccl between GPUs)",
          "backend")
      .takes("BACKEND")
      .one_of({"auto", "gloo", "shm", "shm+gloo", "mpi", "nccl"});
  fields.add("timeout", timeout, "how long until a worker that does not answer counts as lost", "timeout")
      .takes("SECONDS");
  fields.add("fault", fault, "fault injection: makes that worker fail there")
      .takes(kFaultForm);
  fields.add("slow", slow, "slow that worker down, so that its steps take FACTOR times as long")
      .takes("RANK:FACTOR");
}

void RunSpec::Pipeline::describe(Fields& fields) {
  fields.add("stages", stages, "number of pipeline stages (workers = stages x replicas)", "stages");
  fields
      .add("cut", cut,
           "blocks of each stage, such as 3,5,4 (default: stages as even as their measured times)")
      .takes("LIST");
  fields.add("schedule", schedule, "order of a stage's forward and backward passes")
      .one_of({"1f1b", "gpipe"});
  fields
      .add("micro_batches", micro_batches,
           "micro-batches that flow through the stages (auto: two per stage, at most one per example)")
      .zero_is("auto");
  fields
      .add("layout", layout,
           "ranks of each stage, such as 0,2/1,3 (default: the stages of a replica are neighbours)")
      .takes("RANKS/RANKS/...");
}

void RunSpec::Activation::describe(Fields& fields) {
  fields.add("codec", codec, "compression of what travels between stages", "activation-codec")
      .takes("CODEC")
      .one_of(activation_codec_names());
  fields.add("forward_bits", forward_bits, "direct, ac-sgd: bits of an activation, 1 to 8");
  fields.add("backward_bits", backward_bits, "direct, ac-sgd: bits of an activation's gradient, 1 to 8");
  fields.add("rounding", rounding, "direct, ac-sgd: rounding to those bits")
      .one_of({"nearest", "stochastic"});
  fields.add("first_visit", first_visit, "ac-sgd: precision of an example's first transfer")
      .one_of({"full", "half", "int8"});
  fields.add("buffer", buffer, "ac-sgd: where both sides remember examples").one_of({"memory", "file"});
  fields.add("store", store, "ac-sgd: precision of what they remember")
      .one_of({"fp32", "fp16", "int8", "int4"});
  fields.add(
      "buffer_gib", buffer_gib,
      "ac-sgd: buffer budget per end of a cut; examples beyond it are always sent as on a first visit");
  fields
      .add("eval", eval,
           "compress during evaluation: plain (no), coded (yes), both (no, but the final one is scored both "
           "ways)")
      .one_of({"plain", "coded", "both"});
}

void RunSpec::Network::describe(Fields& fields) {
  fields
      .add("name", name, "run the workers on this network, on one machine: a cluster file or a preset",
           "network")
      .takes("FILE|PRESET");
  fields
      .add("hosts", hosts,
           "hosts of the network that take part; b:2 is two devices of b (default: taken from its regions in "
           "turn)",
           "hosts")
      .takes("A,B,...");
  fields.add("scale", scale, "divide all bandwidths of the network by this", "scale");
}

void RunSpec::Compute::describe(Fields& fields) {
  fields
      .add("threads", threads, "threads per worker (auto: one if workers share the machine, else all cores)",
           "threads")
      .zero_is("auto");
  fields.add("device", device, "cpu, cuda or cuda:1", "device").takes("DEVICE");
  fields.add("precision", precision, "precision of matrix products; weights stay fp32", "precision")
      .takes("PRECISION")
      .one_of(precision_names());
  fields.add("loader_threads", loader_threads, "threads that prepare batches");
  fields.add("recompute", recompute,
             "activation checkpointing: compute each block again in the backward pass instead of keeping it");
  fields.add("graphs", graphs,
             "on a GPU: record the passes of a step as CUDA graphs and launch them as a whole");
  fields.add(
      "autotune", autotune,
      "on a GPU in half precision: convolutions by the algorithms that are fastest in a trial; false: by "
      "the same ones in every run");
  fields.add(
      "mps", mps,
      "workers that share a GPU: start NVIDIA's Multi-Process Service for them, where it is installed");
}

void RunSpec::describe(Fields& fields) {
  fields.group("task", task);
  fields.group("model", model);
  fields.group("strategy", strategy);
  fields.group("codec", codec);
  fields.group("optim", optim);
  fields.group("train", train);
  fields.group("comm", comm);
  fields.group("pipeline", pipeline);
  fields.group("activation", activation);
  fields.group("network", network);
  fields.group("compute", compute);
}

Fields RunSpec::fields() {
  Fields fields;
  describe(fields);
  return fields;
}

}  // namespace syncopate::spec
