// The k elements of largest magnitude, of equal ones the first: codec/top_k.cpp, byte for byte.
//
// A magnitude's bits order it. Its digits are looked at from the highest: a histogram of the first digit says
// which value of it the k-th largest has and how many are above; then the next digit of those that have this
// value; three digits tell the k-th largest, `least`, and how many of those equal to it travel. Then tiles of
// the array count what they send, a scan says where each of them writes, and all write.
#include "syncopate/gpu/cuda/numbers.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int64_t kStretch = 1 << 16;

constexpr int kDigits = 3, kBins = 2048;
constexpr int kShifts[kDigits + 1] = {20, 10, 0, 31};  // of the digits; the first one ends at bit 31
constexpr int kTileWarps = 8, kEach = 32, kTile = kTileWarps * kWarp * kEach;
constexpr int kScanThreads = 1024;
static_assert(kStretch % kTile == 0);

/// What is known of the k-th largest.
struct Choice {
  uint32_t bits;  ///< its highest digits
  uint32_t left;  ///< how many travel of those that have these
};

/// What a tile has above `least` and of it; then where it writes and how many of the latter come before.
struct Tile {
  uint32_t first, equal;
};

int64_t tiles_of(int64_t count) { return (count + kTile - 1) / kTile; }
__host__ __device__ int64_t stretches_of(int64_t count) { return (count + kStretch - 1) / kStretch; }

/// Of the words of room that a job has.
struct Room {
  explicit Room(uint32_t* words)
      : choices(reinterpret_cast<Choice*>(words)),
        bins(words + 2 * (kDigits + 1)),
        tiles(reinterpret_cast<Tile*>(bins + kDigits * kBins)) {}
  static constexpr int64_t kFixed = 2 * (kDigits + 1) + kDigits * kBins;
  Choice* choices;  ///< before each digit, and after the last
  uint32_t* bins;   ///< [kDigits, kBins]
  Tile* tiles;
};

/// The inclusive sum over the threads up to this one.
template <typename Count>
__device__ Count scan_of_block(Count value) {
  __shared__ Count sums[kScanThreads / kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const Count before = __shfl_up_sync(kAll, value, offset);
    if (lane >= offset) value += before;
  }
  __syncthreads();  // who called before has read its sums
  if (lane == kWarp - 1) sums[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; ++w) value += sums[w];
  return value;
}

/// The histogram of digit `digit` among those whose higher ones are known. Bin 0 is not counted: often nearly
/// all numbers are zero, and it is what the others leave.
__global__ void count_digits(TopKJob job, const Choice* choice, uint32_t* bins, int shift, int until) {
  __shared__ uint32_t mine[kBins];
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += static_cast<int>(blockDim.x)) mine[b] = 0;
  __syncthreads();
  const uint32_t known = choice->bits, mask = (1u << (until - shift)) - 1;
  const auto stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 8
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < job.count; i += stride) {
    const uint32_t size = magnitude(job.from[i]), bin = size >> shift & mask;
    if (bin != 0 && (until == 31 || size >> until == known)) atomicAdd(mine + bin, 1u);
  }
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += static_cast<int>(blockDim.x)) {
    if (mine[b] != 0) atomicAdd(bins + b, mine[b]);
  }
}

/// Finds the digit of the k-th largest; one block.
__global__ void choose_digit(const uint32_t* bins, Choice* choice, int width) {
  constexpr int kOf = kBins / kScanThreads;  // bins of a thread, from the highest down
  const Choice before = choice[0];
  const int highest = kBins - 1 - static_cast<int>(threadIdx.x) * kOf;
  uint32_t mine = 0;
  for (int b = 0; b < kOf; ++b) mine += bins[highest - b];
  const uint32_t until = scan_of_block(mine);
  uint32_t above = until - mine;
  if (above < before.left && before.left <= until) {
    for (int bin = highest;; --bin) {
      if (before.left <= above + bins[bin]) {
        choice[1] = {before.bits << width | static_cast<uint32_t>(bin), before.left - above};
        return;
      }
      above += bins[bin];
    }
  }
  // The last thread has the sum of all: what they leave is in bin 0.
  if (threadIdx.x == kScanThreads - 1 && until < before.left)
    choice[1] = {before.bits << width, before.left - until};
}

/// The numbers of a warp in its tile: element begin + 32 k + lane.
struct Span {
  __device__ Span(const float* from, int64_t count)
      : begin((static_cast<int64_t>(blockIdx.x) * kTileWarps + threadIdx.x / kWarp) * kWarp * kEach +
              threadIdx.x % kWarp) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int64_t i = begin + k * kWarp;
      there[k] = i < count;
      at[k] = there[k] ? from[i] : 0;
    }
  }
  __device__ bool above(int k, uint32_t least) const { return there[k] && magnitude(at[k]) > least; }
  __device__ bool equal(int k, uint32_t least) const { return there[k] && magnitude(at[k]) == least; }
  /// How many of the warp's are above and how many equal.
  __device__ Tile counted(uint32_t least) const {
    Tile made{};
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      made.first += __popc(__ballot_sync(kAll, above(k, least)));
      made.equal += __popc(__ballot_sync(kAll, equal(k, least)));
    }
    return made;
  }
  int64_t begin;
  float at[kEach];
  bool there[kEach];
};

__global__ void count_tiles(TopKJob job, const Choice* choice, Tile* tiles) {
  __shared__ Tile sum;
  if (threadIdx.x == 0) sum = {};
  __syncthreads();
  const Tile mine = Span(job.from, job.count).counted(choice->bits);
  if (threadIdx.x % kWarp == 0) {
    atomicAdd(&sum.first, mine.first);
    atomicAdd(&sum.equal, mine.equal);
  }
  __syncthreads();
  if (threadIdx.x == 0) tiles[blockIdx.x] = sum;
}

/// How many of `equal` travel, with so many before them.
__device__ uint32_t taken(uint32_t equal, uint32_t before, uint32_t left) {
  return before >= left ? 0 : min(equal, left - before);
}

/// Where each tile writes, and what each stretch sends; one block.
__global__ void place_tiles(TopKJob job, const Choice* choice, Tile* tiles, int64_t count) {
  const uint32_t left = choice->left;
  auto* const sent = reinterpret_cast<uint32_t*>(job.packed);
  __shared__ Tile until;  // of the tiles so far
  if (threadIdx.x == 0) until = {};
  __syncthreads();
  for (int64_t first = 0; first < count; first += kScanThreads) {
    const int64_t i = first + threadIdx.x;
    const Tile mine = i < count ? tiles[i] : Tile{};
    const Tile before = until;
    const uint32_t equal = before.equal + scan_of_block(mine.equal);
    const uint32_t sends = mine.first + taken(mine.equal, equal - mine.equal, left);
    const uint32_t end = before.first + scan_of_block(sends);
    if (i < count) {
      tiles[i] = {end - sends, equal - mine.equal};
      if (sends != 0) atomicAdd(sent + i / (kStretch / kTile), sends);
    }
    __syncthreads();
    if (threadIdx.x == kScanThreads - 1) until = {end, equal};
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kTileWarps* kWarp)
    write_tiles(TopKJob job, const Choice* choice, const Tile* tiles) {
  const uint32_t least = choice->bits, left = choice->left;
  const Span span(job.from, job.count);
  __shared__ Tile warps[kTileWarps];
  const Tile mine = span.counted(least);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) warps[warp] = mine;
  __syncthreads();
  Tile at = tiles[blockIdx.x];
  for (int w = 0; w < warp; ++w) {
    at.first += warps[w].first + taken(warps[w].equal, at.equal, left);
    at.equal += warps[w].equal;
  }
  const bool keeps = job.rest != nullptr && (job.strange[0] | job.strange[1]) == 0;
  uint8_t* const places = job.packed + 4 * stretches_of(job.count);
  uint8_t* const values = places + 2 * job.kept;
  const uint32_t before = (1u << (threadIdx.x % kWarp)) - 1;  // lanes
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const uint32_t equals = __ballot_sync(kAll, span.equal(k, least));
    const bool travels =
        span.above(k, least) || (span.equal(k, least) && at.equal + __popc(equals & before) < left);
    const uint32_t all = __ballot_sync(kAll, travels);
    const int64_t i = span.begin + k * kWarp;
    if (travels) {
      const int64_t number = at.first + __popc(all & before);
      reinterpret_cast<uint16_t*>(places)[number] = static_cast<uint16_t>(i % kStretch);
      store_value(values + 4 * number, span.at[k]);
    }
    if (keeps && span.there[k]) job.rest[i] = travels ? 0 : span.at[k];
    at.first += __popc(all);
    at.equal += __popc(equals);
  }
}

/// Where each stretch's elements begin in the message; one block.
__global__ void place_stretches(UntopJob job) {
  const auto* const sent = reinterpret_cast<const uint32_t*>(job.packed);
  const int64_t count = stretches_of(job.count);
  __shared__ uint64_t until;
  if (threadIdx.x == 0) until = 0;
  __syncthreads();
  for (int64_t first = 0; first < count; first += kScanThreads) {
    const int64_t i = first + threadIdx.x;
    const uint64_t mine = i < count ? sent[i] : 0;
    const uint64_t end = until + scan_of_block(mine);
    if (i < count) job.room[i] = static_cast<uint32_t>(min(end - mine, static_cast<uint64_t>(job.kept)));
    if (end > static_cast<uint64_t>(job.kept)) *job.strange = 1;
    __syncthreads();
    if (threadIdx.x == kScanThreads - 1) until = end;
    __syncthreads();
  }
  if (threadIdx.x == 0) job.room[count] = static_cast<uint32_t>(min(until, static_cast<uint64_t>(job.kept)));
}

__global__ void scatter(UntopJob job) {
  const int64_t stretches = stretches_of(job.count);
  const int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= job.room[stretches]) return;
  int64_t low = 0, high = stretches;  // room[low] <= number < room[high]
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (job.room[middle] <= number ? low : high) = middle;
  }
  const uint8_t* const places = job.packed + 4 * stretches;
  const int64_t at = low * kStretch + reinterpret_cast<const uint16_t*>(places)[number];
  if (at >= job.count) {
    *job.strange = 1;
    return;
  }
  const float value = load_value(places + 2 * job.kept + 4 * number);
  job.into[at] = job.adds ? __fadd_rn(job.into[at], value) : value;
}

__global__ void begin_choice(Choice* choice, uint32_t kept) { *choice = {0, kept}; }

}  // namespace

int64_t top_k_room(int64_t count) { return Room::kFixed + 2 * tiles_of(count) + stretches_of(count) + 1; }

void launch(const TopKJob& job, void* stream) {
  constexpr int kThreads = 512;
  const auto on = static_cast<cudaStream_t>(stream);
  const Room room(job.room);
  const unsigned blocks = min(blocks_for(job.count, kThreads * 16), 1024u);
  const auto tiles = static_cast<unsigned>(tiles_of(job.count));
  begin_choice<<<1, 1, 0, on>>>(room.choices, static_cast<uint32_t>(job.kept));
  (void)cudaMemsetAsync(room.bins, 0, sizeof(uint32_t) * kDigits * kBins, on);
  (void)cudaMemsetAsync(job.packed, 0, static_cast<size_t>(4 * stretches_of(job.count)), on);
  for (int d = 0; d < kDigits; ++d) {
    const int until = d == 0 ? kShifts[kDigits] : kShifts[d - 1];
    uint32_t* const bins = room.bins + d * kBins;
    count_digits<<<blocks, kThreads, 0, on>>>(job, room.choices + d, bins, kShifts[d], until);
    choose_digit<<<1, kScanThreads, 0, on>>>(bins, room.choices + d, until - kShifts[d]);
  }
  const Choice* const chosen = room.choices + kDigits;
  count_tiles<<<tiles, kTileWarps * kWarp, 0, on>>>(job, chosen, room.tiles);
  place_tiles<<<1, kScanThreads, 0, on>>>(job, chosen, room.tiles, tiles);
  write_tiles<<<tiles, kTileWarps * kWarp, 0, on>>>(job, chosen, room.tiles);
}

void launch(const UntopJob& job, void* stream) {
  constexpr int kThreads = 256;
  const auto on = static_cast<cudaStream_t>(stream);
  place_stretches<<<1, kScanThreads, 0, on>>>(job);
  scatter<<<blocks_for(job.kept, kThreads), kThreads, 0, on>>>(job);
}

}  // namespace syncopate::gpu
