// Part of meshprep.hpp: loops on the host, in chunks of elements that the compiler vectorises over.
#ifndef MESHPREP_CPU_HPP
#define MESHPREP_CPU_HPP

#include <algorithm>
#include <numeric>

#if defined(__clang__)
#define MESHPREP_SIMD _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define MESHPREP_SIMD _Pragma("GCC ivdep")
#else
#define MESHPREP_SIMD
#endif

#if defined(__GNUC__)
#define MESHPREP_INLINE inline __attribute__((always_inline))
#else
#define MESHPREP_INLINE inline
#endif

namespace meshprep {

// Elements a chunk, and elements that share partial sums where a loop has no blocks.
constexpr int lanes = 8;
constexpr std::int64_t piece = 4096;

// Components of one element of a chunk, in which elements lie side by side.
template <class T>
struct Lane {
  T* at;
  MESHPREP_INLINE T& operator[](int k) const { return at[k * lanes]; }
};

// Which element stands at a place; `elements` is a list, or null.
template <bool Listed>
struct Places {
  const std::int32_t* elements;
  MESHPREP_INLINE std::int64_t operator[](std::int64_t place) const {
    if constexpr (Listed) return elements[place];
    return place;
  }
};

template <class A>
MESHPREP_INLINE typename A::Value* row_of(const A& arg, std::int64_t element) {
  if constexpr (A::reach == Reach::mapped) element = arg.table[element * arg.arity];
  return arg.values + element * A::Dim;
}

// The compiler finds no good way between rows and chunks: four rows at a time are transposed here.
#if defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 12) && !defined(__CUDACC__)
#define MESHPREP_TRANSPOSE 1
template <class T, int N>
struct Packed {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Pack = typename Packed<T, N>::type;

template <class P, class T>
MESHPREP_INLINE void load_pack(P& to, const T* from) {
  __builtin_memcpy(&to, from, sizeof to);
}

template <class P, class T>
MESHPREP_INLINE void store_pack(T* to, const P& values) {
  __builtin_memcpy(to, &values, sizeof values);
}

template <class P>
MESHPREP_INLINE void transpose(P (&r)[4]) {
  const P a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6);
  const P b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
  const P c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6);
  const P d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#endif

// Four rows into a chunk, from their component K on.
template <int K, int Dim, class T>
MESHPREP_INLINE void load_rows(T* chunk, const T* const (&rows)[4]) {
#ifdef MESHPREP_TRANSPOSE
  using Four = Pack<T, 4>;
  if constexpr (K + 4 <= Dim) {
    Four r[4];
    for (int i = 0; i < 4; ++i) load_pack(r[i], rows[i] + K);
    transpose(r);
    for (int k = 0; k < 4; ++k) store_pack(chunk + (K + k) * lanes, r[k]);
    load_rows<K + 4, Dim>(chunk, rows);
  } else if constexpr (K + 2 <= Dim) {
    using Two = Pack<T, 2>;
    Two r[4];
    for (int i = 0; i < 4; ++i) load_pack(r[i], rows[i] + K);
    const Four a = __builtin_shufflevector(r[0], r[1], 0, 1, 2, 3);
    const Four b = __builtin_shufflevector(r[2], r[3], 0, 1, 2, 3);
    store_pack(chunk + K * lanes, Four(__builtin_shufflevector(a, b, 0, 2, 4, 6)));
    store_pack(chunk + (K + 1) * lanes, Four(__builtin_shufflevector(a, b, 1, 3, 5, 7)));
    load_rows<K + 2, Dim>(chunk, rows);
  } else if constexpr (K < Dim) {
    store_pack(chunk + K * lanes, Four{rows[0][K], rows[1][K], rows[2][K], rows[3][K]});
    load_rows<K + 1, Dim>(chunk, rows);
  }
#else
  for (int k = K; k < Dim; ++k)
    for (int i = 0; i < 4; ++i) chunk[k * lanes + i] = rows[i][k];
#endif
}

// Add four rows of a chunk to a dat, one after the other: they may be one and the same.
template <int K, int Dim, class T>
MESHPREP_INLINE void add_rows(T* const (&rows)[4], const T* chunk) {
#ifdef MESHPREP_TRANSPOSE
  using Four = Pack<T, 4>;
  if constexpr (K + 4 <= Dim) {
    Four r[4];
    for (int k = 0; k < 4; ++k) load_pack(r[k], chunk + (K + k) * lanes);
    transpose(r);
    for (int i = 0; i < 4; ++i) {
      Four sum;
      load_pack(sum, rows[i] + K);
      sum += r[i];
      store_pack(rows[i] + K, sum);
    }
    add_rows<K + 4, Dim>(rows, chunk);
    return;
  }
#endif
  for (int i = 0; i < 4; ++i)
    for (int k = K; k < Dim; ++k) rows[i][k] += chunk[k * lanes + i];
}

// What a reduction starts from: nothing added, or what the global holds.
template <class A>
typename A::Value neutral(const A& arg, int k) {
  return A::access == Access::inc ? typename A::Value(0) : arg.values[k];
}

// Where none of two values is less or equal, one is NaN, and so is their sum.
template <class A>
void join(typename A::Value& into, typename A::Value value) {
  if constexpr (A::access == Access::inc) into += value;
  if constexpr (A::access == Access::min)
    into = into <= value ? into : value < into ? value : into + value;
  if constexpr (A::access == Access::max)
    into = into >= value ? into : value > into ? value : into + value;
}

// An argument that the function finds where it lies: rows of a dat, constants.
template <class A, bool Listed>
struct InPlace {
  const A& arg;
  explicit InPlace(const A& arg) : arg(arg) {}
  MESHPREP_INLINE void fill(Places<Listed>, std::int64_t, int) {}
  MESHPREP_INLINE auto lane(Places<Listed> places, std::int64_t place, int i) const {
    if constexpr (A::reach == Reach::global) return (const typename A::Value*)arg.values;
    else if constexpr (A::access == Access::read)
      return (const typename A::Value*)row_of(arg, places[place + i]);
    else return row_of(arg, places[place + i]);
  }
  MESHPREP_INLINE void flush(Places<Listed>, std::int64_t, int) {}
  void close(typename A::Value*) const {}
};

// A dat whose rows are brought into the chunk, or from it.
template <class A, bool Listed>
struct Gathered {
  using T = typename A::Value;
  const A& arg;
  alignas(64) T buffer[A::Dim * lanes];
  explicit Gathered(const A& arg) : arg(arg) {}

  MESHPREP_INLINE void fill(Places<Listed> places, std::int64_t place, int n) {
    if constexpr (A::access == Access::inc) {
      std::fill_n(buffer, A::Dim * lanes, T(0));
    } else {
      if (arg.full) return;
      const A own = arg;
      int i = 0;
      for (; i + 4 <= n; i += 4)
        load_rows<0, A::Dim>(buffer + i, four<const T>(own, places, place + i).at);
      for (; i < n; ++i) {
        const T* row = row_of(own, places[place + i]);
        for (int k = 0; k < A::Dim; ++k) buffer[k * lanes + i] = row[k];
      }
    }
  }

  MESHPREP_INLINE Lane<T> lane(Places<Listed>, std::int64_t, int i) { return {buffer + i}; }

  MESHPREP_INLINE void flush(Places<Listed> places, std::int64_t place, int n) {
    if constexpr (A::access == Access::read) return;
    const A own = arg;
    int i = 0;
    if constexpr (A::access == Access::inc)
      for (; i + 4 <= n; i += 4)
        add_rows<0, A::Dim>(four<T>(own, places, place + i).at, buffer + i);
    for (; i < n; ++i) {
      T* row = row_of(own, places[place + i]);
      for (int k = 0; k < A::Dim; ++k)
        if constexpr (A::access == Access::inc) row[k] += buffer[k * lanes + i];
        else row[k] = buffer[k * lanes + i];
    }
  }

  void close(T*) const {}

 private:
  template <class Value>
  struct Rows {
    Value* at[4];
  };
  template <class Value>
  static MESHPREP_INLINE Rows<Value> four(const A& arg, Places<Listed> places, std::int64_t p) {
    if constexpr (A::reach == Reach::mapped && !Listed) {
      const std::int32_t* row = arg.table + p * arg.arity;
      const std::int64_t next = arg.arity;
      return {{arg.values + std::int64_t(row[0]) * A::Dim,
               arg.values + std::int64_t(row[next]) * A::Dim,
               arg.values + std::int64_t(row[2 * next]) * A::Dim,
               arg.values + std::int64_t(row[3 * next]) * A::Dim}};
    }
    return {{row_of(arg, places[p]), row_of(arg, places[p + 1]), row_of(arg, places[p + 2]),
             row_of(arg, places[p + 3])}};
  }
};

// A reduction: each lane has a result of its own until the block is done.
template <class A, bool Listed>
struct Reduced {
  using T = typename A::Value;
  alignas(64) T buffer[A::Dim * lanes];
  explicit Reduced(const A& arg) {
    for (int k = 0; k < A::Dim; ++k) std::fill_n(buffer + k * lanes, lanes, neutral(arg, k));
  }
  MESHPREP_INLINE void fill(Places<Listed>, std::int64_t, int) {}
  MESHPREP_INLINE Lane<T> lane(Places<Listed>, std::int64_t, int i) { return {buffer + i}; }
  MESHPREP_INLINE void flush(Places<Listed>, std::int64_t, int) {}
  void close(T* partial) const {
    for (int k = 0; k < A::Dim; ++k)
      for (int i = 0; i < lanes; ++i) join<A>(partial[k], buffer[k * lanes + i]);
  }
};

template <class A, bool Chunks, bool Listed>
using Held = std::conditional_t<
    A::reduces, Reduced<A, Listed>,
    std::conditional_t<Chunks && (A::reach == Reach::mapped ||
                                  (Listed && A::reach == Reach::direct)),
                       Gathered<A, Listed>, InPlace<A, Listed>>>;

// Elements that write to rows through maps must see each other's values: one by one, in place.
template <bool Listed, class Kernel, class... H>
MESHPREP_INLINE void run_one_by_one(Places<Listed> places, std::int64_t begin, std::int64_t end,
                                    const Kernel& kernel, H&... held) {
  for (std::int64_t p = begin; p < end; ++p) kernel(held.lane(places, p, 0)...);
}

template <bool Listed, class Kernel, class... H>
MESHPREP_INLINE void run_chunks(Places<Listed> places, std::int64_t begin, std::int64_t end,
                                const Kernel& kernel, H&... held) {
  std::int64_t p = begin;
  for (; p + lanes <= end; p += lanes) {
    (held.fill(places, p, lanes), ...);
    MESHPREP_SIMD
    for (int i = 0; i < lanes; ++i) kernel(held.lane(places, p, i)...);
    (held.flush(places, p, lanes), ...);
  }
  if (p == end) return;
  const int rest = int(end - p);
  (held.fill(places, p, rest), ...);
  for (int i = 0; i < rest; ++i) kernel(held.lane(places, p, i)...);
  (held.flush(places, p, rest), ...);
}

// One block: places begin to end. Each argument has an object that moves its values.
template <bool Listed, class Kernel, class... Args>
void run_block(Places<Listed> places, std::int64_t begin, std::int64_t end, const Kernel& kernel,
               const Args&... args, typename Args::Value*... partials) {
  constexpr bool chunks = !(Args::in_turn || ...);
  const auto run = [&](auto&&... held) {
    if constexpr (chunks) run_chunks(places, begin, end, kernel, held...);
    else run_one_by_one(places, begin, end, kernel, held...);
    (held.close(partials), ...);
  };
  run(Held<Args, chunks, Listed>(args)...);
}

// Results of a reduction, one a block, joined in the order of the blocks.
template <class A>
struct Partials {
  using T = typename A::Value;
  std::vector<T> values;
  Partials(const A& arg, std::int64_t blocks) {
    if (A::reduces) values.resize(std::size_t(blocks * A::Dim));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = neutral(arg, int(i % A::Dim));
  }
  T* of(std::int64_t block) { return A::reduces ? values.data() + block * A::Dim : nullptr; }
  void finish(const A& arg) const {
    for (std::size_t i = 0; i < values.size(); ++i) join<A>(arg.values[i % A::Dim], values[i]);
  }
};

// Blocks in the order of their colours: those of the plan, or pieces of a loop that needs none.
struct Schedule {
  Schedule(const mp_loop* blocks, std::int64_t n)
      : blocks(blocks), n(n), n_blocks(blocks ? blocks->n_blocks : (n + piece - 1) / piece) {}
  // Where the colour of the block at place k begins.
  std::int64_t before(std::int64_t k) const {
    if (!blocks) return 0;
    const auto* offset = blocks->block_colour_offset;
    return *(std::upper_bound(offset, offset + blocks->n_block_colours + 1, k) - 1);
  }
  std::int64_t block(std::int64_t k) const { return blocks ? blocks->block_order[k] : k; }
  std::int64_t begin(std::int64_t block) const {
    return blocks ? blocks->block_offset[block] : std::min(n, block * piece);
  }
  const mp_loop* blocks;
  std::int64_t n, n_blocks;
};

// The blocks in the order of the set, but each after those of lower colours that it meets: the sums
// of one colour after the other, while the set is read once and not once a colour.
template <class... Args>
std::vector<std::int64_t> order_alone(const mp_loop& blocks, const Args&... args) {
  std::vector<std::int64_t> place(std::size_t(blocks.n_blocks)), order(place.size());
  std::iota(place.begin(), place.end(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::map<const void*, std::vector<std::int64_t>> last;  // block at each row of a dat so far
  const auto meet = [&](std::int64_t b, bool before, const auto& arg) {
    using A = std::decay_t<decltype(arg)>;
    if constexpr (A::conflicts) {
      std::vector<std::int64_t>& found = last[arg.values];
      found.resize(std::size_t(arg.size / A::Dim));
      for (std::int64_t p = blocks.block_offset[b]; p < blocks.block_offset[b + 1]; ++p) {
        std::int64_t& row = found[std::size_t(arg.table[mp_element(&blocks, p) * arg.arity])];
        if (before) place[b] = std::max(place[b], row);
        else row = std::max(row, place[b]);
      }
    }
  };
  for (std::int64_t k = 0; k < blocks.n_blocks; ++k) {
    (meet(blocks.block_order[k], true, args), ...);
    (meet(blocks.block_order[k], false, args), ...);
  }
  const auto earlier = [&](std::int64_t i, std::int64_t k) {
    return place[blocks.block_order[i]] < place[blocks.block_order[k]];
  };
  std::stable_sort(order.begin(), order.end(), earlier);
  return order;
}

template <bool Parallel, bool Listed, class Kernel, class... Args>
void run_schedule(const Schedule& s, const Loop& loop, const Kernel& kernel,
                  Partials<Args>&... partials, const Args&... args) {
  const Places<Listed> places{Listed ? s.blocks->elements : nullptr};
  const auto one = [&](std::int64_t k) {
    const std::int64_t b = s.block(k);
    run_block<Listed, Kernel, Args...>(places, s.begin(b), s.begin(b + 1), kernel, args...,
                                       partials.of(b)...);
  };
  if constexpr (Parallel)
    run_in_order(
        loop.team, s.n_blocks, one, [&](std::int64_t k) { return s.before(k); },
        [&](std::int64_t k) { return s.blocks ? loop.alone[std::size_t(k)] : k; });
  else
    for (std::int64_t k = 0; k < s.n_blocks; ++k) one(k);
}

template <class... Args, bool Parallel, bool Listed, class Kernel>
void run_with_partials(const Schedule& s, const Loop& loop, std::bool_constant<Parallel>,
                       std::bool_constant<Listed>, const Kernel& kernel, const Args&... args) {
  const auto run = [&](auto&&... partials) {
    run_schedule<Parallel, Listed, Kernel, Args...>(s, loop, kernel, partials..., args...);
    (partials.finish(args), ...);
  };
  run(Partials<Args>(args, s.n_blocks)...);
}

// Blocks only where elements conflict and run at once: other loops run in the order of their set.
template <bool Parallel, class Kernel, class... Args>
void run_on_host(const Loop& loop, std::int64_t n, const Kernel& kernel, const Args&... args) {
  constexpr bool in_blocks = Parallel && (Args::conflicts || ...);
  const Schedule s(in_blocks ? loop.blocks.get() : nullptr, n);
  if (s.blocks && loop.alone.empty()) loop.alone = order_alone(*s.blocks, args...);
  constexpr std::bool_constant<Parallel> parallel;
  if (s.blocks && s.blocks->elements)
    run_with_partials<Args...>(s, loop, parallel, std::true_type(), kernel, args...);
  else
    run_with_partials<Args...>(s, loop, parallel, std::false_type(), kernel, args...);
}

}  // namespace meshprep

#endif  // MESHPREP_CPU_HPP
