// Part of meshprep.hpp: loops on the host, never slower than the loop that their author would
// write.
//
// Forms of one loop, which all give the same bits: elements in the order of a range, and the rows
// of an element in that of the arguments.
//   simple: one element after the other, on the rows where they lie; but what is added through maps
//       is summed in a local row first, unless an element adds to many components, or to whole
//       numbers, which fractions are cut off to.
//   chunk: `lanes` elements at once in vectors, from rows gathered before; then their sums go
//       into the dats element by element.
// A function that adds to one component twice rounds in another way in a local row than in the dat:
// a loop that adds in place therefore never runs in chunks. Where both forms are possible the first
// calls time them; of large dats they also time the simple form with rows asked for ahead.
#ifndef MESHPREP_CPU_HPP
#define MESHPREP_CPU_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>

#if defined(__clang__)
#define MESHPREP_SIMD _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define MESHPREP_SIMD _Pragma("GCC ivdep")
#else
#define MESHPREP_SIMD
#endif

// A loop of few instructions takes up to twice as long where they lie across two lines of 32 bytes.
// GCC contracts a * b + c where it happens to see it, which is not the same in both forms: not
// where a clock chooses between them.
#if defined(__clang__)
#define MESHPREP_BODY __attribute__((noinline, flatten))
#define MESHPREP_SAME_BITS MESHPREP_BODY
#elif defined(__GNUC__)
#define MESHPREP_BODY __attribute__((noinline, flatten, optimize("align-loops=32")))
#define MESHPREP_SAME_BITS \
  __attribute__((noinline, flatten, optimize("align-loops=32", "fp-contract=off")))
#else
#define MESHPREP_BODY
#define MESHPREP_SAME_BITS
#endif

#if defined(__GNUC__)
#define MESHPREP_INLINE inline __attribute__((always_inline))
#define MESHPREP_INLINED __attribute__((always_inline))
#else
#define MESHPREP_INLINE inline
#define MESHPREP_INLINED
#endif

namespace meshprep {

// Elements of a chunk, which are also the partial results of a reduction.
constexpr int lanes = 8;
// Components of a row, and of all rows of an element, up to which there are chunks; and of all rows
// that an element adds to, up to which these are summed beside their dats.
constexpr int wide_row = 16, wide_element = 64, wide_sums = 128;

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

// Where arguments come in groups of `Size`, each from one dat and through one map: the indices of
// an element are read once for the first `Split` groups, and once for the others.
template <int Size, int Split, int Groups>
struct GroupedTables {
  static constexpr int parts = Split < Groups ? 2 : 1;
  // Groups of many use all columns of their map, in order: one pointer is enough for these.
  static constexpr int pointers = Size > 3 ? 1 : Size;
  std::array<std::array<const std::int32_t*, pointers>, parts> table;
  struct Element {
    std::int32_t row[parts][Size];
  };
  MESHPREP_INLINE Element element(std::int64_t e) const {
    Element found;
    for (int part = 0; part < parts; ++part)
      for (int k = 0; k < Size; ++k)
        found.row[part][k] = pointers == 1
                                 ? table[std::size_t(part)][0][e * Size + k]
                                 : table[std::size_t(part)][std::size_t(k)][e * Size];
    return found;
  }
  template <int J, class A>
  static MESHPREP_INLINE std::int64_t row(const Element& of, const A&) {
    return of.row[J / Size < Split ? 0 : parts - 1][J % Size];
  }
  // The argument whose dat that of number j is, too.
  static constexpr int first(int j) { return j / Size * Size; }

  // Whether arguments are so; then their tables are kept.
  template <class... Args>
  bool take(const Args&... args) {
    int j = 0;
    bool fits = true;
    const void* values = nullptr;
    const auto look = [&](const auto& arg) {
      if (arg.reach != Reach::mapped) return;
      const int group = j / Size, k = j % Size;
      const std::size_t part = group < Split ? 0 : parts - 1;
      if (k == 0) values = arg.values;
      if ((group == 0 || group == Split) && k < pointers) table[part][std::size_t(k)] = arg.table;
      const std::int32_t* of =
          pointers == 1 ? table[part][0] + k : table[part][std::size_t(k)];
      fits = fits && arg.arity == Size && arg.values == values && arg.table == of;
      ++j;
    };
    (look(args), ...);
    return fits;
  }
};

// Any maps and columns: each argument reads its own.
struct OwnTables {
  using Element = std::int64_t;
  MESHPREP_INLINE Element element(std::int64_t e) const { return e; }
  template <int J, class A>
  static MESHPREP_INLINE std::int64_t row(Element e, const A& arg) {
    return arg.table[e * arg.arity];
  }
  static constexpr int first(int j) { return j; }
};

template <class A>
MESHPREP_INLINE typename A::Value* row_of(const A& arg, std::int64_t element) {
  if constexpr (A::reach == Reach::mapped) element = arg.table[element * arg.arity];
  return arg.values + element * A::Dim;
}

// What leaves every number as it is when it is added to it.
template <class T>
constexpr T nothing = std::is_floating_point_v<T> ? T(-0.0) : T(0);

// The compiler finds no good way between rows and chunks: four rows at a time are transposed here.
#if defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 12) && !defined(__CUDACC__)
#define MESHPREP_TRANSPOSE 1
template <class T, int N>
struct Packed {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Pack = typename Packed<T, N>::type;

// Not by memcpy: of stores of 16 bytes, as for AMD's Zen, a load of 32 waits until they are done.
template <class P, class T>
MESHPREP_INLINE void load_pack(P& to, const T* from) {
  typedef P Loose __attribute__((aligned(alignof(T)), may_alias));
  to = *reinterpret_cast<const Loose*>(from);
}

template <class P, class T>
MESHPREP_INLINE void store_pack(T* to, const P& values) {
  typedef P Loose __attribute__((aligned(alignof(T)), may_alias));
  *reinterpret_cast<Loose*>(to) = values;
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

// Four elements of a chunk as rows.
template <int K, int Dim, class T>
MESHPREP_INLINE void store_rows(T (&rows)[4][Dim], const T* chunk) {
#ifdef MESHPREP_TRANSPOSE
  if constexpr (K + 4 <= Dim) {
    Pack<T, 4> r[4];
    for (int k = 0; k < 4; ++k) load_pack(r[k], chunk + (K + k) * lanes);
    transpose(r);
    for (int i = 0; i < 4; ++i) store_pack(rows[i] + K, r[i]);
    store_rows<K + 4, Dim>(rows, chunk);
    return;
  }
#endif
  for (int i = 0; i < 4; ++i)
    for (int k = K; k < Dim; ++k) rows[i][k] = chunk[k * lanes + i];
}

template <int K, int Dim, class T>
MESHPREP_INLINE void add_row(T* row, const T* sum) {
#ifdef MESHPREP_TRANSPOSE
  if constexpr (K + 4 <= Dim) {
    Pack<T, 4> total, more;
    load_pack(total, row + K);
    load_pack(more, sum + K);
    total += more;
    store_pack(row + K, total);
    add_row<K + 4, Dim>(row, sum);
    return;
  }
#endif
  for (int k = K; k < Dim; ++k) row[k] += sum[k];
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

// What holds for all arguments of a loop.
template <class... Args>
struct Traits {
  static constexpr bool conflicts = (Args::conflicts || ...);
  static constexpr bool reduces = (Args::reduces || ...);
  static constexpr bool mapped = ((Args::reach == Reach::mapped) || ...);
  static constexpr int gathered = ((Args::reach == Reach::mapped ? Args::Dim : 0) + ... + 0);
  static constexpr int many = ((Args::reach == Reach::mapped) + ... + 0);
  static constexpr int summed = ((Args::conflicts ? Args::Dim : 0) + ... + 0);
  // A fraction is cut off otherwise where it is added to a whole number than beside it: 5 and -0.3
  // make 4, 0 and -0.3 make 0.
  static constexpr bool whole = ((Args::conflicts && std::is_integral_v<typename Args::Value>) ||
                                 ...);
  static constexpr bool in_place = (Args::in_turn || ...) || summed > wide_sums || whole;
  static constexpr bool wide =
      ((Args::reach == Reach::mapped && Args::Dim > wide_row) || ...) || gathered > wide_element;
  // Loops over numbers alone move too little for chunks, whatever they compute.
  static constexpr bool scalars = !((Args::reach == Reach::mapped && Args::Dim > 1) || ...);
  static constexpr bool can_chunk = !in_place && !wide && (mapped ? !scalars : reduces);
  // Where rows may be asked for ahead; shorter ones come by themselves, with others of their line.
  static constexpr bool can_ask =
      ((Args::reach == Reach::mapped && Args::Dim * sizeof(typename Args::Value) >= 16) || ...);
  // Nothing of an element depends on another one, so that the compiler may make vectors.
  static constexpr bool apart = !mapped && !reduces;
};

// An argument of one element, by what becomes of it: `parameter` is for the function, `close` is
// called after it.
template <class A>
struct InPlace {
  typename A::Value* row;
  MESHPREP_INLINE auto parameter() const {
    if constexpr (A::access == Access::read) return (const typename A::Value*)row;
    else return row;
  }
  MESHPREP_INLINE void close() const {}
};

template <class A>
struct InLane {
  typename A::Value* at;
  MESHPREP_INLINE Lane<typename A::Value> parameter() const { return {at}; }
  MESHPREP_INLINE void close() const {}
};

template <class A>
struct Summed {
  typename A::Value* row;
  typename A::Value sum[A::Dim];
  MESHPREP_INLINE explicit Summed(typename A::Value* row) : row(row) {
    for (int k = 0; k < A::Dim; ++k) sum[k] = nothing<typename A::Value>;
  }
  MESHPREP_INLINE auto parameter() { return (typename A::Value*)sum; }
  MESHPREP_INLINE void close() const {
    for (int k = 0; k < A::Dim; ++k) row[k] += sum[k];
  }
};

// Arguments of a range: dats as they are; of globals a copy, which no write to a dat can alias, or
// the partial results of a reduction.
template <class A>
struct Held {
  using T = typename A::Value;
  static constexpr int size = A::reduces ? A::Dim * lanes : A::reach == Reach::global ? A::Dim : 1;
  A arg;
  alignas(64) T values[size];
  explicit Held(const A& arg) : arg(arg) {
    if constexpr (A::reach == Reach::global)
      for (int i = 0; i < size; ++i)
        values[i] = A::reduces ? neutral(arg, i / lanes) : arg.values[i];
  }
  MESHPREP_INLINE void keep(const Held& of) {
    if constexpr (A::reduces) std::copy_n(of.values, size, values);
  }
  void close(T* partial) const {
    if constexpr (A::reduces)
      for (int k = 0; k < A::Dim; ++k)
        for (int i = 0; i < lanes; ++i) join<A>(partial[k], values[k * lanes + i]);
  }
};

template <class A, bool Sums, int J, class Tables>
MESHPREP_INLINE auto open(Held<A>& held, typename A::Value* values, std::int64_t e,
                          const typename Tables::Element& of, int lane) {
  if constexpr (A::reduces) return InLane<A>{held.values + lane};
  else if constexpr (A::reach == Reach::global) return InPlace<A>{held.values};
  else if constexpr (A::reach == Reach::direct) return InPlace<A>{values + e * A::Dim};
  else {
    const auto row = values + Tables::template row<J>(of, held.arg) * A::Dim;
    if constexpr (A::conflicts && Sums) return Summed<A>(row);
    else return InPlace<A>{row};
  }
}

// How many of the arguments before each go through maps, and where the j-th of those stands.
template <class... Args>
struct Mapped {
  static constexpr std::size_t size = sizeof...(Args);
  static constexpr std::array<bool, size> is{(Args::reach == Reach::mapped)...};
  static constexpr int before(std::size_t i) {
    int found = 0;
    for (std::size_t k = 0; k < i; ++k) found += is[k];
    return found;
  }
  static constexpr std::size_t place(int j) {
    std::size_t i = 0;
    while (!is[i] || before(i) != j) ++i;
    return i;
  }
  // The argument whose pointer argument i takes.
  template <class Tables>
  static constexpr std::size_t lender(std::size_t i) {
    return is[i] ? place(Tables::first(before(i))) : i;
  }
};

// Elements that rows are asked for before they are used; and bytes of dats, one for each argument,
// from which on that may pay, as no cache holds them.
constexpr std::int64_t elements_ahead = 32;
inline std::int64_t fetched_bytes = 24'000'000;

template <class A, int J, class Tables>
MESHPREP_INLINE void fetch(const Held<A>& held, const typename A::Value* values,
                           const typename Tables::Element& of) {
#if defined(__GNUC__)
  if constexpr (A::reach == Reach::mapped) {
    const auto row = values + Tables::template row<J>(of, held.arg) * A::Dim;
    for (std::size_t at = 0; at < A::Dim * sizeof(*row); at += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(row) + at, A::access != Access::read);
  }
#endif
}

template <bool Ahead, class Tables, bool Listed, class Kernel, class... Args, std::size_t... I>
MESHPREP_INLINE void run_elements_simply(std::index_sequence<I...>, Tables tables,
                                         Places<Listed> places, std::int64_t first,
                                         std::int64_t begin, std::int64_t end,
                                         const Kernel& kernel, Held<Args>&... held) {
  using Of = Mapped<Args...>;
  constexpr bool sums = !Traits<Args...>::in_place;
  const auto run = [&](auto... one) MESHPREP_INLINED {
    kernel(one.parameter()...);
    (one.close(), ...);
  };
  // Copies, whose address nothing else has.
  std::tuple<Held<Args>...> own(held...);
  const auto element = [&](std::int64_t p) MESHPREP_INLINED {
    if constexpr (Ahead) {
      const auto next = tables.element(places[std::min(p + elements_ahead, end - 1)]);
      (fetch<Args, Of::before(I), Tables>(
           std::get<I>(own), std::get<Of::template lender<Tables>(I)>(own).arg.values, next),
       ...);
    }
    const std::int64_t e = places[p];
    const auto of = tables.element(e);
    run(open<Args, sums, Of::before(I), Tables>(
        std::get<I>(own), std::get<Of::template lender<Tables>(I)>(own).arg.values, e, of,
        int(p - first) % lanes)...);
  };
  if constexpr (Traits<Args...>::apart && !Listed) {
    MESHPREP_SIMD
    for (std::int64_t p = begin; p < end; ++p) element(p);
  } else {
    for (std::int64_t p = begin; p < end; ++p) element(p);
  }
  (held.keep(std::get<I>(own)), ...);
}

// A dat whose rows are brought into the chunk, or from it.
template <class A, bool Listed>
struct Gathered {
  using T = typename A::Value;
  const A arg;
  alignas(64) T buffer[A::Dim * lanes];
  T sums[4][A::Dim];
  explicit Gathered(const Held<A>& held) : arg(held.arg) {}

  MESHPREP_INLINE void fill(Places<Listed> places, std::int64_t place) {
    if constexpr (A::access == Access::inc) {
      std::fill_n(buffer, A::Dim * lanes, nothing<T>);
    } else {
      for (int i = 0; i < lanes; i += 4) {
        const T* const rows[4] = {row_at(places, place + i), row_at(places, place + i + 1),
                                  row_at(places, place + i + 2), row_at(places, place + i + 3)};
        load_rows<0, A::Dim>(buffer + i, rows);
      }
    }
  }

  MESHPREP_INLINE Lane<T> lane(Places<Listed>, std::int64_t, int i) { return {buffer + i}; }

  // The sums of elements i to i + 3 as rows.
  MESHPREP_INLINE void make_rows(int i) {
    if constexpr (A::access == Access::inc) store_rows<0, A::Dim>(sums, buffer + i);
  }

  MESHPREP_INLINE void add(Places<Listed> places, std::int64_t place, int i) {
    if constexpr (A::access == Access::inc) add_row<0, A::Dim>(row_at(places, place), sums[i]);
  }

  MESHPREP_INLINE void keep(Held<A>&) const {}

 private:
  MESHPREP_INLINE T* row_at(Places<Listed> places, std::int64_t place) const {
    return row_of(arg, places[place]);
  }
};

// An argument of a chunk that the function finds where it lies.
template <class A, bool Listed>
struct Direct {
  Held<A> held;
  explicit Direct(const Held<A>& held) : held(held) {}
  MESHPREP_INLINE void fill(Places<Listed>, std::int64_t) {}
  MESHPREP_INLINE auto lane(Places<Listed> places, std::int64_t place, int i) {
    const std::int64_t e = places[place + i];
    return open<A, false, 0, OwnTables>(held, held.arg.values, e, e, i).parameter();
  }
  MESHPREP_INLINE void make_rows(int) {}
  MESHPREP_INLINE void add(Places<Listed>, std::int64_t, int) {}
  MESHPREP_INLINE void keep(Held<A>& to) const { to.keep(held); }
};

template <class A, bool Listed>
using InChunk =
    std::conditional_t<A::reach == Reach::mapped, Gathered<A, Listed>, Direct<A, Listed>>;

// Whole chunks; returns the place behind them.
template <bool Listed, class Kernel, class... H>
MESHPREP_INLINE std::int64_t run_whole_chunks(Places<Listed> places, std::int64_t begin,
                                              std::int64_t end, const Kernel& kernel,
                                              H&... held) {
  std::int64_t p = begin;
  for (; p + lanes <= end; p += lanes) {
    (held.fill(places, p), ...);
    MESHPREP_SIMD
    for (int i = 0; i < lanes; ++i) kernel(held.lane(places, p, i)...);
    for (int i = 0; i < lanes; i += 4) {
      (held.make_rows(i), ...);
      for (int k = 0; k < 4; ++k) (held.add(places, p + i + k, k), ...);
    }
  }
  return p;
}

// Of a loop that may run in either form, in this one; of another, as the compiler likes it best.
template <bool Ahead, class Tables, bool Listed, class Kernel, class... Args>
MESHPREP_SAME_BITS void run_simply(Tables tables, Places<Listed> places, std::int64_t first,
                                   std::int64_t begin, std::int64_t end, const Kernel& kernel,
                                   Held<Args>&... held) {
  run_elements_simply<Ahead, Tables, Listed, Kernel, Args...>(
      std::index_sequence_for<Args...>(), tables, places, first, begin, end, kernel, held...);
}

template <class Tables, bool Listed, class Kernel, class... Args>
MESHPREP_BODY void run_only_simply(Tables tables, Places<Listed> places, std::int64_t first,
                                   std::int64_t begin, std::int64_t end, const Kernel& kernel,
                                   Held<Args>&... held) {
  run_elements_simply<false, Tables, Listed, Kernel, Args...>(
      std::index_sequence_for<Args...>(), tables, places, first, begin, end, kernel, held...);
}

template <bool Listed, class Kernel, class... Args>
MESHPREP_SAME_BITS std::int64_t run_chunks(Places<Listed> places, std::int64_t begin,
                                           std::int64_t end, const Kernel& kernel,
                                           Held<Args>&... held) {
  const auto run = [&](auto&&... own) MESHPREP_INLINED {
    const std::int64_t rest = run_whole_chunks<Listed>(places, begin, end, kernel, own...);
    (own.keep(held), ...);
    return rest;
  };
  return run(InChunk<Args, Listed>(held)...);
}

// Places begin to end in one form; results of reductions go to `partials`.
template <class Tables, bool Listed, class Kernel, class... Args>
void run_range(Form form, Tables tables, Places<Listed> places, std::int64_t begin,
               std::int64_t end, const Kernel& kernel, const Args&... args,
               typename Args::Value*... partials) {
  const auto run = [&](auto&&... held) {
    using Of = Traits<Args...>;
    std::int64_t rest = begin;
    if constexpr (Of::can_chunk)
      if (form == Form::chunk)
        rest = run_chunks<Listed, Kernel, Args...>(places, begin, end, kernel, held...);
    if (rest == end) {
    } else if constexpr (Of::can_chunk || Of::can_ask) {
      const auto simply = [&](auto ahead) {
        run_simply<ahead(), Tables, Listed, Kernel, Args...>(tables, places, begin, rest, end,
                                                             kernel, held...);
      };
      if (Of::can_ask && form == Form::ahead) simply(std::bool_constant<Of::can_ask>());
      else simply(std::false_type());
    } else {
      run_only_simply<Tables, Listed, Kernel, Args...>(tables, places, begin, begin, end, kernel,
                                                       held...);
    }
    (held.close(partials), ...);
  };
  run(Held<Args>(args)...);
}

// Results of a reduction, one a range, joined in the order of the ranges.
template <class A>
struct Partials {
  using T = typename A::Value;
  std::vector<T> values;
  Partials(const A& arg, std::int64_t ranges) {
    if (A::reduces) values.resize(std::size_t(ranges * A::Dim));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = neutral(arg, int(i % A::Dim));
  }
  T* of(std::int64_t range) { return A::reduces ? values.data() + range * A::Dim : nullptr; }
  void finish(const A& arg) const {
    for (std::size_t i = 0; i < values.size(); ++i) join<A>(arg.values[i % A::Dim], values[i]);
  }
};

template <bool Parallel, bool Listed, class Tables, class Kernel, class... Args>
void run_ranges(const Loop& loop, Tables tables, const Kernel& kernel, Partials<Args>&... partials,
                const Args&... args) {
  using Of = Traits<Args...>;
  static const char instance = 0;
  const Places<Listed> places{Listed ? loop.blocks->elements : nullptr};
  const Ranges& ranges = *loop.ranges;
  const auto run = [&](Form form, std::int64_t begin, std::int64_t end, std::int64_t range) {
    run_range<Tables, Listed, Kernel, Args...>(form, tables, places, begin, end, kernel, args...,
                                               partials.of(range)...);
  };
  const auto at = [&](std::int64_t range) { return ranges.offset[std::size_t(range)]; };
  const auto in_form = [&](Form form, std::int64_t range) {
    run(form, at(range), at(range + 1), range);
  };
  Form form = loop.form == Form::timed ? Form::simple : loop.form;
  if constexpr (Of::can_chunk || Of::can_ask) {
    const std::int64_t bytes = ((args.size * std::int64_t(sizeof(typename Args::Value))) + ... + 0);
    Trial& trial = loop.trial;
    trial.is_of(&instance, {true, Of::can_chunk, Of::can_ask && bytes >= fetched_bytes});
    if (loop.form == Form::timed && !trial.decided()) {
      for (const std::int32_t range : ranges.order) {
        const auto one = [&](Form form) { in_form(form, range); };
        if (trial.decided()) one(trial.form());
        else trial.time(at(range + 1) - at(range), one);
      }
      trial.end_call();
      return;
    }
    if (loop.form == Form::timed) form = trial.form();
  }
  const auto alone = [&] {
    for (const auto& [first, end] : ranges.runs)
      if constexpr (Of::reduces)
        for (std::int32_t range = first; range < end; ++range) in_form(form, range);
      else run(form, at(first), at(end), 0);
  };
  if constexpr (Parallel)
    run_in_turns(loop.team, ranges, [&](std::int64_t range) { in_form(form, range); }, alone);
  else
    alone();
}

template <class... Args, bool Parallel, bool Listed, class Tables, class Kernel>
void run_with_partials(const Loop& loop, std::bool_constant<Parallel>, std::bool_constant<Listed>,
                       Tables tables, const Kernel& kernel, const Args&... args) {
  const auto run = [&](auto&&... partials) {
    run_ranges<Parallel, Listed, Tables, Kernel, Args...>(loop, tables, kernel, partials...,
                                                          args...);
    (partials.finish(args), ...);
  };
  run(Partials<Args>(args, std::int64_t(loop.ranges->order.size()))...);
}

// Whether arguments of one group can be of one dat: they have one type.
template <int Size, class... Args, std::size_t... I>
constexpr bool may_be_grouped(std::index_sequence<I...>) {
  using Of = Mapped<Args...>;
  return (std::is_same_v<std::tuple_element_t<I, std::tuple<Args...>>,
                         std::tuple_element_t<
                             Of::is[I] ? Of::place(Of::before(I) / Size * Size) : I,
                             std::tuple<Args...>>> &&
          ...);
}

// Run with the tables of the arguments, found in groups of `Size` or less if they are so.
template <int Size, class... Args, class Run>
void run_with_tables(const Run& run, const Args&... args) {
  constexpr int many = Traits<Args...>::many;
  if constexpr (Size == 0 || many == 0) {
    run(OwnTables());
  } else {
    if constexpr (many % Size == 0 &&
                  may_be_grouped<Size, Args...>(std::index_sequence_for<Args...>())) {
      constexpr int groups = many / Size;
      const auto fit = [&](auto tables) { return tables.take(args...) && (run(tables), true); };
      if (fit(GroupedTables<Size, groups, groups>())) return;
      if constexpr (Size > 1 && groups > 1)
        if (fit(GroupedTables<Size, 1, groups>()) || fit(GroupedTables<Size, groups - 1, groups>()))
          return;
    }
    run_with_tables<Size - 1>(run, args...);
  }
}

// Places of blocks only where elements conflict: other loops run in the order of their set.
template <bool Parallel, class Kernel, class... Args>
void run_on_host(const Loop& loop, const Kernel& kernel, const Args&... args) {
  constexpr std::bool_constant<Parallel> parallel;
  if (Traits<Args...>::conflicts && loop.blocks && loop.blocks->elements)
    return run_with_partials<Args...>(loop, parallel, std::true_type(), OwnTables(), kernel,
                                      args...);
  run_with_tables<8>(
      [&](auto tables) {
        run_with_partials<Args...>(loop, parallel, std::false_type(), tables, kernel, args...);
      },
      args...);
}

}  // namespace meshprep

#endif  // MESHPREP_CPU_HPP
