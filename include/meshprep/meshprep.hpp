// Runs the loops of a meshprep plan in C++17: par_loop() with the functions of the solver.
//
//     meshprep::Plan plan("wing.plan.h5");
//     meshprep::Dat<double, 4> q("q", q_values), res("res", res_values);   // std::vector<double>
//     par_loop(plan, "res_calc", res_calc, arg(q, "edges->cells", 0, meshprep::read), ...);
//
// The function of an element is an object with a templated operator(), or a generic lambda: it
// takes one parameter an argument and sees components as q[0], q[1], ... Arguments are those of the
// loop in the plan, one a column of a map; names, sizes, dims and types are checked at each call.
// A function that takes pointers is called with load<4>(q), see there.
//
// Runs: sequential; openmp (compiled with -fopenmp; ranges of elements that wait for their
// neighbours, on threads that sleep while they wait, see meshprep_threads.hpp); with
// meshprep_cuda.hpp hierarchical and atomics. One source file of the program defines
// MESHPREP_PLAN_IMPLEMENTATION before it includes this header.
#ifndef MESHPREP_HPP
#define MESHPREP_HPP

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshprep_plan.h"
#include "meshprep_threads.hpp"

namespace meshprep {

// One line: what is wrong, where.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Access { read, write, rw, inc, min, max };
enum class Reach { direct, mapped, global };
enum class Run { sequential, openmp, hierarchical, atomics };

template <Access A>
using Tag = std::integral_constant<Access, A>;
inline constexpr Tag<Access::read> read{};
inline constexpr Tag<Access::write> write{};
inline constexpr Tag<Access::rw> rw{};
inline constexpr Tag<Access::inc> inc{};
inline constexpr Tag<Access::min> min{};
inline constexpr Tag<Access::max> max{};

inline const char* name_of(Access access) {
  constexpr const char* names[] = {"read", "write", "rw", "inc", "min", "max"};
  return names[static_cast<int>(access)];
}

template <class T>
constexpr const char* dtype_of() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4, "use float, double, or 32 or 64 bits");
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? "f4" : "f8";
  if constexpr (std::is_signed_v<T>) return sizeof(T) == 4 ? "i4" : "i8";
  return sizeof(T) == 4 ? "u4" : "u8";
}

// An argument as the plan describes it; one a column of a map.
struct Described {
  std::string name, map, dtype, access;
  bool is_global = false, full = false;
  std::int64_t column = 0, dim = 1;
  std::size_t first = 0;  // argument of the same name
  // Of the arguments that were checked last.
  mutable const void* kind = nullptr;
  mutable std::int64_t values = 0, arity = 0;
  mutable const std::int32_t* table = nullptr;
};

// A map with its sets, and a loop with its arguments; a loop that needs no blocks may have none.
struct Map {
  std::string from_set, to_set;
  std::unique_ptr<mp_map, decltype(&mp_free_map)> data{nullptr, mp_free_map};
};

struct Loop {
  std::string name, over, variant;
  std::vector<Described> arguments;
  std::unique_ptr<mp_loop, decltype(&mp_free_loop)> blocks{nullptr, mp_free_loop};
  bool usual = true;  // the plan's default variant
  // Of the host: how a call runs, whatever the result.
  mutable std::int64_t size = -1;
  mutable Form form = Form::timed;
  mutable std::unique_ptr<const Ranges> ranges;
  mutable Team team;
  mutable Trial trial;
};

std::vector<Described> described(const std::string& json);

// A plan file; what is asked for is read once and kept. Not for several threads at once.
class Plan {
 public:
  explicit Plan(const std::string& path) : file_(mp_open(path.c_str(), error_), mp_close) {
    if (!file_) throw Error(error_);
  }

  const mp_set& set(const std::string& name) {
    auto& kept = sets_.try_emplace(name, nullptr, mp_free_set).first->second;
    if (!kept) kept.reset(mp_read_set(file_.get(), name.c_str(), error_));
    if (!kept) throw Error(error_);
    return *kept;
  }

  const Map& map(const std::string& name) {
    Map& kept = maps_[name];
    if (kept.data) return kept;
    kept.from_set = text("maps", name, "from_set");
    kept.to_set = text("maps", name, "to_set");
    kept.data.reset(mp_read_map(file_.get(), name.c_str(), error_));
    if (!kept.data) throw Error(error_);
    return kept;
  }

  // The group number of each element of a derived set, such as "physical" of "boundary_edges": the
  // first where it has several.
  std::vector<std::int64_t> tag(const std::string& set, const std::string& name) {
    std::int64_t size = 0;
    std::int64_t* found = mp_read_tag(file_.get(), set.c_str(), name.c_str(), &size, error_);
    return numbers(found, size);
  }

  // The number of a group in that tag, such as "wall".
  std::int64_t group(const std::string& set, const std::string& tag, const std::string& name) {
    std::int64_t number = 0;
    if (!mp_read_group(file_.get(), set.c_str(), tag.c_str(), name.c_str(), &number, error_))
      throw Error(error_);
    return number;
  }

  // The elements of a group in that tag, ascending.
  std::vector<std::int64_t> members(const std::string& set, const std::string& tag,
                                    std::int64_t group) {
    std::int64_t size = 0;
    std::int64_t* found =
        mp_read_members(file_.get(), set.c_str(), tag.c_str(), group, &size, error_);
    return numbers(found, size);
  }

  // The loop with its default blocks, or those that choose() named.
  const Loop& loop(const std::string& name) {
    const auto found = loops_.find(name);
    if (found != loops_.end()) return found->second;
    choose(name, text("loops", name, "default"));
    return loops_.at(name);
  }

  // Take other blocks of a loop, such as "s256".
  void choose(const std::string& name, const std::string& variant) {
    Loop loop;
    loop.name = name;
    loop.over = text("loops", name, "over");
    loop.variant = variant;
    loop.usual = variant == text("loops", name, "default");
    loop.arguments = described(text("loops", name, "arguments"));
    for (Described& a : loop.arguments)
      while (loop.arguments[a.first].name != a.name) ++a.first;
    if (!variant.empty()) {
      loop.blocks.reset(mp_read_loop(file_.get(), name.c_str(), variant.c_str(), error_));
      if (!loop.blocks) throw Error(error_);
    }
    loops_[name] = std::move(loop);
  }

  mp_plan* file() const { return file_.get(); }

  // What back-ends made from the plan, under a name.
  std::map<std::string, std::shared_ptr<void>> kept;

 private:
  std::vector<std::int64_t> numbers(std::int64_t* values, std::int64_t size) {
    const std::unique_ptr<std::int64_t, decltype(&std::free)> found(values, std::free);
    if (!found) throw Error(error_);
    return {found.get(), found.get() + size};
  }

  std::string text(const char* group, const std::string& name, const char* attribute) {
    char* found = mp_read_text(file_.get(), group, name.c_str(), attribute, error_);
    if (!found) throw Error(error_);
    const std::string copy(found);
    std::free(found);
    return copy;
  }

  char error_[MP_ERROR] = "";
  std::unique_ptr<mp_plan, decltype(&mp_close)> file_;
  std::map<std::string, std::unique_ptr<mp_set, decltype(&mp_free_set)>> sets_;
  std::map<std::string, Map> maps_;
  std::map<std::string, Loop> loops_;
};

// Values of the solver on a set, in the plan's numbering: Dim components an element, side by side.
template <class T, int Dim = 1>
struct Dat {
  Dat(std::string name, T* values, std::int64_t rows)
      : name(std::move(name)), values(values), size(rows * Dim) {}
  Dat(std::string name, std::vector<T>& of)
      : name(std::move(name)), values(of.data()), size(std::int64_t(of.size())) {}
  std::string name;
  T* values;
  std::int64_t size;
};

// Values of a whole loop, in the memory of the host: a constant (read), or a sum, minimum, maximum.
template <class T, int Dim = 1>
struct Global {
  std::string name;
  T* values;
};

// One parameter of the function; `table` belongs to a map.
template <class T, int Dim_, Access A, Reach R>
struct Arg {
  using Value = T;
  static constexpr int Dim = Dim_;
  static constexpr Access access = A;
  static constexpr Reach reach = R;
  static constexpr bool conflicts = R == Reach::mapped && A != Access::read;
  static constexpr bool in_turn = conflicts && A != Access::inc;
  static constexpr bool reduces = R == Reach::global && A != Access::read;
  const char* name;
  T* values;
  std::int64_t size;
  const char* map;
  int column;
  const std::int32_t* table = nullptr;
  std::int64_t arity = 0;
  bool full = false;  // every element sets all of its values: what was there does not matter
};

template <class T, int Dim, Access A>
Arg<T, Dim, A, Reach::mapped> arg(const Dat<T, Dim>& dat, const char* map, int column, Tag<A>) {
  static_assert(A != Access::min && A != Access::max, "min and max are for globals");
  return {dat.name.c_str(), dat.values, dat.size, map, column};
}

template <class T, int Dim, Access A>
Arg<T, Dim, A, Reach::direct> arg(const Dat<T, Dim>& dat, Tag<A>) {
  static_assert(A != Access::min && A != Access::max, "min and max are for globals");
  return {dat.name.c_str(), dat.values, dat.size, "", 0};
}

template <class T, int Dim, Access A>
Arg<T, Dim, A, Reach::global> arg(const Global<T, Dim>& global, Tag<A>) {
  static_assert(A != Access::write && A != Access::rw, "a global is read, or inc, min, max");
  return {global.name.c_str(), global.values, Dim, "", 0};
}

// All N columns of a map at once: `arg(q, "cells->nodes", all<3>, read)` stands for three arguments.
template <int N>
struct All {};
template <int N>
inline constexpr All<N> all{};

template <class T, int Dim, int N, Access A>
std::array<Arg<T, Dim, A, Reach::mapped>, N> arg(const Dat<T, Dim>& dat, const char* map, All<N>,
                                                 Tag<A> access) {
  static_assert(N > 0, "a map has at least one column");
  std::array<Arg<T, Dim, A, Reach::mapped>, N> args{};
  for (int column = 0; column < N; column++) args[column] = arg(dat, map, column, access);
  return args;
}

#if defined(__CUDACC__)
#define MESHPREP_ANYWHERE __host__ __device__
#else
#define MESHPREP_ANYWHERE
#endif

// For functions that take pointers: the first N components of a row, side by side, and back.
template <int N, class Row>
MESHPREP_ANYWHERE auto load(const Row& row) {
  struct Values {
    std::decay_t<decltype(row[0])> values[N];
    MESHPREP_ANYWHERE operator const std::decay_t<decltype(row[0])> *() const { return values; }
  };
  Values loaded;
  for (int k = 0; k < N; k++) loaded.values[k] = row[k];
  return loaded;
}

template <class Row, class T, int N>
MESHPREP_ANYWHERE void store(const Row& row, const T (&values)[N]) {
  for (int k = 0; k < N; k++) row[k] = values[k];
}

template <class Row, class T, int N>
MESHPREP_ANYWHERE void add(const Row& row, const T (&values)[N]) {
  for (int k = 0; k < N; k++) row[k] += values[k];
}

}  // namespace meshprep

#include "meshprep_check.hpp"
#include "meshprep_cpu.hpp"

namespace meshprep {

#if defined(MESHPREP_CUDA_HPP)
inline constexpr Run usual_run = Run::hierarchical;
#elif defined(_OPENMP)
inline constexpr Run usual_run = Run::openmp;
#else
inline constexpr Run usual_run = Run::sequential;
#endif

template <Run run, class Kernel, class... Args>
void run_on_device(Plan& plan, const Loop& loop, std::int64_t n, Kernel kernel, Args... args);

// One argument, or those of all columns of a map, as a tuple.
template <class A>
std::tuple<A> each(const A& one) {
  return {one};
}

template <class A, std::size_t N>
auto each(const std::array<A, N>& columns) {
  return std::apply([](const auto&... one) { return std::make_tuple(one...); }, columns);
}

template <Run run, class Kernel, class... Args>
void run_loop(Plan& plan, const std::string& name, const Kernel& kernel, Args... args) {
  const Loop& loop = plan.loop(name);
  const std::int64_t n = check(plan, loop, args...);
  if constexpr (run == Run::sequential || run == Run::openmp) {
    ranges_of(plan, loop);
    run_on_host<run == Run::openmp>(loop, kernel, args...);
  } else {
    if ((Args::conflicts || ...) && run != Run::atomics && !loop.blocks)
      throw Error("loop '" + name +
                  "': the plan has no blocks of it: make them, or run sequential");
    run_on_device<run>(plan, loop, n, kernel, args...);
  }
}

// Run a loop of the plan. Throws Error where the arguments are not those of the plan.
template <Run run = usual_run, class Kernel, class... Args>
void par_loop(Plan& plan, const std::string& name, const Kernel& kernel, const Args&... args) {
  std::apply([&](const auto&... each_arg) { run_loop<run>(plan, name, kernel, each_arg...); },
             std::tuple_cat(each(args)...));
}

}  // namespace meshprep

#endif  // MESHPREP_HPP
