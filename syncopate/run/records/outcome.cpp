#include "syncopate/run/records/outcome.h"

#include "syncopate/comm/metering/payload.h"

namespace syncopate::run {

void note_traffic(const comm::Meter& sent, double made, record::RunRecord& record) {
  for (int p = 0; p < comm::kPayloads; ++p) {
    record.bytes_by_kind[comm::name_of(static_cast<comm::Payload>(p))] =
        static_cast<double>(sent.carried[static_cast<size_t>(p)]) / made;
  }
  for (int k = 0; k < comm::kKinds; ++k) {
    const comm::Count& count = sent.kinds[static_cast<size_t>(k)];
    if (count.transfers == 0) continue;
    record.collectives.push_back({.name = comm::name_of(static_cast<comm::Kind>(k)),
                                  .calls = static_cast<double>(count.transfers) / made,
                                  .bytes = static_cast<double>(count.size) / made,
                                  .seconds = count.in_flight / made});
  }
}

void keep_circumstances(const record::RunRecord& before, record::RunRecord& record) {
  record.provenance = before.provenance;
  record.cpu = before.cpu;
  record.cores = before.cores;
  record.threads = before.threads;
  record.outside_load = before.outside_load;
  record.peak_memory = before.peak_memory;
  record.noise_scale = before.noise_scale;
  record.network = before.network;
  record.stages = before.stages;
  record.predicted = before.predicted;
  if (!before.worker_evals.empty()) record.worker_evals = before.worker_evals;
}

}  // namespace syncopate::run
