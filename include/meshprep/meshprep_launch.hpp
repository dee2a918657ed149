// Part of meshprep_cuda.hpp: brings a plan to the GPU, once, and launches.
#ifndef MESHPREP_LAUNCH_HPP
#define MESHPREP_LAUNCH_HPP

namespace meshprep {

constexpr std::int64_t most_shared = 48 * 1024;

inline void succeed(cudaError_t result) {
  if (result != cudaSuccess) throw Error(std::string("CUDA: ") + cudaGetErrorString(result));
}

inline std::shared_ptr<void> device_memory(std::int64_t bytes) {
  void* memory = nullptr;
  succeed(cudaMalloc(&memory, std::size_t(std::max<std::int64_t>(bytes, 1))));
  return {memory, [](void* p) { cudaFree(p); }};
}

// An array of the plan on the GPU; it stays there, under this name.
template <class T, class Host>
const T* upload(Plan& plan, const std::string& name, const Host* values, std::int64_t n) {
  static_assert(sizeof(T) == sizeof(Host), "the same values, under another name of their type");
  std::shared_ptr<void>& kept = plan.kept[name];
  if (!kept) {
    std::shared_ptr<void> memory = device_memory(n * std::int64_t(sizeof(T)));
    succeed(cudaMemcpy(memory.get(), values, std::size_t(n) * sizeof(T), cudaMemcpyHostToDevice));
    kept = memory;
  }
  return static_cast<const T*>(kept.get());
}

// How the elements of a block name the points that an argument adds to.
struct Staged {
  const unsigned short* local = nullptr;
  const Index* point_offset = nullptr;
  const int* points = nullptr;
  const unsigned char* added = nullptr;
  std::int64_t loads = 0, most = 0;
};

inline std::string key_of(const Loop& loop, const std::string& what) {
  return loop.name + "/" + loop.variant + "/" + what;
}

using LocalMap = std::unique_ptr<std::uint16_t, decltype(&std::free)>;

inline LocalMap local_map(Plan& plan, const Loop& loop, const std::string& map) {
  char error[MP_ERROR] = "";
  LocalMap found(
      mp_read_local(plan.file(), loop.name.c_str(), loop.variant.c_str(), map.c_str(), error),
      std::free);
  if (!found) throw Error(error);
  return found;
}

// Which points of each block of a set the block adds to, through any argument.
inline std::vector<unsigned char> points_added_to(Plan& plan, const Loop& loop,
                                                  const std::string& set, const mp_staging& s) {
  std::vector<unsigned char> added(std::size_t(s.loads), 0);
  for (const Described& a : loop.arguments) {
    if (a.map.empty() || a.access != "inc" || plan.map(a.map).to_set != set) continue;
    const LocalMap map = local_map(plan, loop, a.map);
    const std::uint16_t* column = map.get() + a.column * loop.blocks->size;
    for (std::int64_t b = 0; b < loop.blocks->n_blocks; ++b)
      for (std::int64_t p = loop.blocks->block_offset[b]; p < loop.blocks->block_offset[b + 1]; ++p)
        added[std::size_t(s.point_offset[b] + column[p])] = 1;
  }
  return added;
}

inline Staged read_staged(Plan& plan, const Loop& loop, const std::string& map, int column) {
  char error[MP_ERROR] = "";
  const std::string set = plan.map(map).to_set;
  const std::unique_ptr<mp_staging, decltype(&mp_free_staging)> s(
      mp_read_staging(plan.file(), loop.name.c_str(), loop.variant.c_str(), set.c_str(), error),
      mp_free_staging);
  if (!s) throw Error(error);
  const std::int64_t n = loop.blocks->size, arity = plan.map(map).data->arity;
  Staged staged;
  staged.local = upload<unsigned short>(plan, key_of(loop, "local/" + map),
                                        local_map(plan, loop, map).get(), n * arity) + column * n;
  staged.point_offset = upload<Index>(plan, key_of(loop, "point_offset/" + set), s->point_offset,
                                      s->n_blocks + 1);
  staged.points = upload<int>(plan, key_of(loop, "points/" + set), s->points, s->loads);
  const std::vector<unsigned char> added = points_added_to(plan, loop, set, *s);
  staged.added = upload<unsigned char>(plan, key_of(loop, "added/" + set), added.data(), s->loads);
  staged.loads = s->loads;
  for (std::int64_t b = 0; b < s->n_blocks; ++b)
    staged.most = std::max(staged.most, s->point_offset[b + 1] - s->point_offset[b]);
  return staged;
}

inline const Staged& staged(Plan& plan, const Loop& loop, const std::string& map, int column) {
  auto& kept = plan.kept[key_of(loop, map + "/" + std::to_string(column))];
  if (!kept) kept = std::make_shared<Staged>(read_staged(plan, loop, map, column));
  return *static_cast<const Staged*>(kept.get());
}

inline DeviceBlocks blocks_on_device(Plan& plan, const Loop& loop) {
  const mp_loop& b = *loop.blocks;
  const auto up = [&](auto as, const char* name, const auto* values, std::int64_t n) {
    return upload<decltype(as)>(plan, key_of(loop, name), values, n);
  };
  DeviceBlocks to;
  to.listed = b.elements != nullptr;
  const int* elements = to.listed ? up(int(), "elements", b.elements, b.size) : nullptr;
  to.elements = MP_HAND_IN(int, elements, to.listed ? b.size : 0, "elements");
  to.order = MP_HAND_IN(int, up(int(), "order", b.block_order, b.n_blocks), b.n_blocks, "order");
  to.offset = MP_HAND_IN(Index, up(Index(), "offset", b.block_offset, b.n_blocks + 1),
                         b.n_blocks + 1, "offset");
  to.colour = MP_HAND_IN(unsigned short,
                         up((unsigned short)0, "colour", b.thread_colour, b.size), b.size,
                         "colour");
  to.colours = MP_HAND_IN(int, up(int(), "colours", b.thread_colours, b.n_blocks), b.n_blocks,
                          "colours");
  return to;
}

// What one call needs on its way to the GPU: shared memory and results as they are handed out.
struct Call {
  Plan& plan;
  const Loop& loop;
  std::int64_t thread_blocks;
  int threads;
  bool in_blocks;
  std::int64_t shared = 0;
  std::map<const void*, int> sums{};
  std::vector<std::shared_ptr<void>> results{};
};

// Room in shared memory, for values of up to 8 bytes.
inline int reserve(Call& call, std::int64_t bytes) {
  const std::int64_t begin = call.shared;
  call.shared += (bytes + 7) / 8 * 8;
  if (call.shared > most_shared)
    throw Error("loop '" + call.loop.name + "': a block needs more than " +
                std::to_string(most_shared) + " bytes of shared memory: take smaller blocks");
  return int(begin);
}

template <class A>
void hand_sums(Call& call, const A& arg, DeviceArg<A>& to) {
  using T = typename A::Value;
  const Staged& s = staged(call.plan, call.loop, arg.map, arg.column);
  const std::int64_t n = call.loop.blocks->size;
  to.local = MP_HAND_IN(unsigned short, s.local, n, "local");
  to.point_offset = MP_HAND_IN(Index, s.point_offset, call.loop.blocks->n_blocks + 1, "offset");
  to.points = MP_HAND_IN(int, s.points, s.loads, "points");
  to.added = MP_HAND_IN(unsigned char, s.added, s.loads, "added");
  const auto [place, first] = call.sums.try_emplace(arg.values, 0);
  if (first) place->second = reserve(call, s.most * A::Dim * std::int64_t(sizeof(T)));
  to.begin = place->second;
  to.owner = first;
}

template <class A>
DeviceArg<A> hand(Call& call, const A& arg) {
  using T = typename A::Value;
  DeviceArg<A> to{};
  to.full = arg.full;
  if constexpr (A::reach == Reach::global)
    for (int k = 0; k < A::Dim; ++k) to.held[k] = A::reduces ? neutral(arg, k) : arg.values[k];
  if constexpr (A::reduces) {
    const std::int64_t n = call.thread_blocks * A::Dim;
    call.results.push_back(device_memory(n * std::int64_t(sizeof(T))));
    to.values = MP_HAND_OUT(T, static_cast<T*>(call.results.back().get()), n, arg.name);
    to.begin = reserve(call, A::Dim * call.threads * std::int64_t(sizeof(T)));
  } else if constexpr (A::reach != Reach::global && A::access == Access::read) {
    to.values = MP_HAND_IN(T, arg.values, arg.size, arg.name);
  } else if constexpr (A::reach != Reach::global) {
    to.values = MP_HAND_OUT(T, arg.values, arg.size, arg.name);
  }
  if constexpr (A::reach == Reach::mapped) {
    const mp_map& map = *call.plan.map(arg.map).data;
    const std::int64_t n = map.size * map.arity;
    const int* table = upload<int>(call.plan, std::string("table/") + arg.map, map.table, n);
    to.table = MP_HAND_IN(int, table, n, arg.map);
    to.arity = int(map.arity);
    to.column = arg.column;
  }
  if constexpr (takes_sums<A>)
    if (call.in_blocks) hand_sums(call, arg, to);
  return to;
}

// The results of the thread blocks, in their order; waits for them.
template <class A>
void collect(const Call& call, std::size_t& next, const A& arg) {
  if constexpr (A::reduces) {
    std::vector<typename A::Value> found(std::size_t(call.thread_blocks * A::Dim));
    succeed(cudaMemcpy(found.data(), call.results[next++].get(),
                       found.size() * sizeof(typename A::Value), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < found.size(); ++i) join<A>(arg.values[i % A::Dim], found[i]);
  }
}

template <bool InTurn, class Kernel, class... D>
void launch_blocks(const Call& call, int half, const Kernel& kernel, const D&... args) {
  const mp_loop& b = *call.loop.blocks;
  const DeviceBlocks blocks = blocks_on_device(call.plan, call.loop);
  for (std::int64_t c = 0; c < b.n_block_colours; ++c) {
    const Index first = b.block_colour_offset[c], many = b.block_colour_offset[c + 1] - first;
    MP_LAUNCH((run_blocks<InTurn, Kernel, D...>), many, call.threads, call.shared, kernel, blocks,
              first, half, args...);
    succeed(cudaGetLastError());
  }
}

template <Run run, class Kernel, class... Args>
void run_on_device(Plan& plan, const Loop& loop, std::int64_t n, Kernel kernel, Args... args) {
  constexpr bool in_turn = (Args::in_turn || ...);
  constexpr bool in_blocks = run == Run::hierarchical && (Args::conflicts || ...);
  static_assert(run != Run::atomics || !in_turn, "atomics add only: run this loop hierarchical");
  if (n == 0) return;
  int threads = MESHPREP_THREADS;
  if (in_blocks && loop.blocks->block_size < threads)
    threads = std::min(threads, int((loop.blocks->block_size + 31) / 32 * 32));
  Call call{plan, loop, in_blocks ? loop.blocks->n_blocks : (n + threads - 1) / threads, threads,
            in_blocks};
  int half = 0;
  if constexpr ((Args::reduces || ...))
    for (half = 1; half * 2 < threads;) half *= 2;
  const auto launch = [&](const auto&... handed) {
    if constexpr (in_blocks)
      launch_blocks<in_turn>(call, half, kernel, handed...);
    else
      MP_LAUNCH((run_elements<Kernel, std::decay_t<decltype(handed)>...>), call.thread_blocks,
                threads, call.shared, kernel, Index(n), half, handed...);
    succeed(cudaGetLastError());
  };
  // Braces hand out from left to right, so that results are collected in the same order.
  const std::tuple<DeviceArg<Args>...> handed{hand(call, args)...};
  std::apply(launch, handed);
  std::size_t next = 0;
  (collect(call, next, args), ...);
}

}  // namespace meshprep

#endif  // MESHPREP_LAUNCH_HPP
