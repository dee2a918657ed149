// Whole-number loops over every kind of argument, for test_cpp.py.
//
//     loops PLAN RUN RESULT     runs them and writes what they made
//     loops PLAN wrong          prints what par_loop says of calls that do not fit the plan
//     loops PLAN ranges LOOP..  prints the ranges of loops
#define MESHPREP_PLAN_IMPLEMENTATION
#ifdef CHECKED
#include "cuda_checked.hpp"
#include "meshprep_cuda.hpp"
#else
#include "meshprep.hpp"
#endif

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>

namespace {

using namespace meshprep;
using Long = std::int64_t;
constexpr auto reading = meshprep::read;

template <class T>
std::vector<T> numbers(Long n, Long factor, Long modulus) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (Long i = 0; i < n; ++i) values[std::size_t(i)] = T(i * factor % modulus);
  return values;
}

const auto mix = [](auto q1, auto q2, auto w, auto res1, auto res2, auto seen, auto scale,
                    auto total, auto low, auto high) {
  for (int k = 0; k < 5; ++k) {
    res1[k] += scale[0] * q2[k % 2] + w[k % 3];
    res2[k] -= scale[1] * q1[k % 2];
  }
  if (w[0] % 3 != 0) seen[0] = int(q1[0] + w[0]);
  total[0] += w[0];
  total[1] += q1[1];
  low[0] = q2[0] - w[1] < low[0] ? q2[0] - w[1] : low[0];
  high[0] = int(w[2]) > high[0] ? int(w[2]) : high[0];
};

// Reads one end of an edge, adds to the other; some edges leave a NaN.
const auto push = [](auto q1, auto sum2, auto worst) {
  sum2[0] += float(q1[0]);
  worst[0] = q1[0] == 50 ? std::nan("") : worst[0];
};

// Keeps the largest at both ends: each element must see what those before it wrote.
const auto largest = [](auto w, auto a, auto b) {
  a[0] = w[0] > a[0] ? w[0] : a[0];
  b[0] = w[0] > b[0] ? w[0] : b[0];
};

struct State {
  explicit State(Plan& plan)
      : cells(plan.set("cells").size), edges(plan.set("edges").size),
        q_values(numbers<Long>(2 * cells, 37, 101)), w_values(numbers<Long>(3 * edges, 53, 997)),
        res_values(numbers<Long>(5 * cells, 1, 7)), top_values(std::size_t(cells), 0),
        seen_values(std::size_t(edges), -7), sum_values(std::size_t(cells), 0) {}
  Long cells, edges;
  std::vector<Long> q_values, w_values, res_values, top_values;
  std::vector<int> seen_values;
  std::vector<float> sum_values;
  Long scale_value[2] = {3, 5}, total_value[2] = {11, 0}, low_value = 400;
  int high_value = 1000000;
  double worst_value = 1;
  Dat<Long, 2> q{"q", q_values};
  Dat<Long, 3> w{"w", w_values};
  Dat<Long, 5> res{"res", res_values};
  Dat<Long> top{"top", top_values};
  Dat<int> seen{"seen", seen_values};
  Dat<float> sum{"sum", sum_values};
  Global<Long, 2> scale{"scale", scale_value}, total{"total", total_value};
  Global<Long> low{"low", &low_value};
  Global<int> high{"high", &high_value};
  Global<double> worst{"worst", &worst_value};
};

const char* map = "edges->cells";

template <Run run>
void run_all(Plan& plan, State& s) {
  par_loop<run>(plan, "mix", mix, arg(s.q, map, 0, reading), arg(s.q, map, 1, reading),
                arg(s.w, reading), arg(s.res, map, all<2>, inc), arg(s.seen, meshprep::write),
                arg(s.scale, reading), arg(s.total, inc),
                arg(s.low, meshprep::min), arg(s.high, meshprep::max));
  par_loop<run>(plan, "push", push, arg(s.q, map, 0, reading), arg(s.sum, map, 1, inc),
                arg(s.worst, meshprep::max));
  // Atomics only add.
  constexpr Run turns = run == Run::atomics ? Run::hierarchical : run;
  par_loop<turns>(plan, "largest", largest, arg(s.w, reading), arg(s.top, map, 0, rw),
                  arg(s.top, map, 1, rw));
}

#ifndef CHECKED
// As after calls that took a second on one thread: the next one takes several.
void try_several(Plan& plan, const char* name) {
  for (int call = 0; call < 3; ++call) plan.loop(name).team.note(false, 1.0);
}

// Each end of each edge takes a fraction from a whole number, as a plain loop does: 1000 and -0.3
// make 999, and nothing and -0.3 would make nothing.
bool whole_numbers_take_fractions(Plan& plan, State& s) {
  std::vector<int> count_values(std::size_t(2 * s.cells), 1000);
  std::vector<double> weight_values(std::size_t(s.cells), 0.0);
  const Dat<int, 2> count("count", count_values);
  const Dat<double> weight("weight", weight_values);
  bool same = true;
  for (const Form form : {Form::simple, Form::chunk, Form::timed}) {
    std::fill(count_values.begin(), count_values.end(), 1000);
    std::fill(weight_values.begin(), weight_values.end(), 0.0);
    plan.loop("fractions").form = form;
    par_loop<Run::sequential>(
        plan, "fractions",
        [](auto a, auto b, auto c, auto d) {
          for (int k = 0; k < 2; ++k) a[k] -= 0.3, b[k] -= 0.3;
          c[0] += 1, d[0] += 1;
        },
        arg(count, map, 0, inc), arg(count, map, 1, inc), arg(weight, map, 0, inc),
        arg(weight, map, 1, inc));
    for (std::size_t i = 0; i < count_values.size(); ++i)
      same = same && count_values[i] == 1000 - int(weight_values[i / 2]);
  }
  return same;
}

// The ranges of each loop as the headers make them, a line an array; those of the plan are the
// same.
void print_ranges(Plan& plan, int count, char** names) {
  for (int i = 0; i < count; ++i) {
    const Ranges r = build_ranges(plan, plan.loop(names[i]));
    const Ranges& read = ranges_of(plan, plan.loop(names[i]));
    if (std::tie(r.offset, r.order, r.wait_offset, r.waits) !=
        std::tie(read.offset, read.order, read.wait_offset, read.waits))
      std::puts("the plan has others");
    const auto line = [](const auto& values) {
      for (const Long value : values) std::printf("%lld ", static_cast<long long>(value));
      std::puts("");
    };
    line(r.offset), line(r.order), line(r.wait_offset), line(r.waits);
  }
}
#endif

template <class T>
void put(std::ofstream& file, const T* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const Long value = Long(values[i]);
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

void save(const State& s, const char* path) {
  std::ofstream file(path, std::ios::binary);
  put(file, s.res_values.data(), s.res_values.size());
  put(file, s.seen_values.data(), s.seen_values.size());
  put(file, s.sum_values.data(), s.sum_values.size());
  put(file, s.top_values.data(), s.top_values.size());
  put(file, s.total_value, 2);
  put(file, &s.low_value, 1);
  put(file, &s.high_value, 1);
  const Long lost = std::isnan(s.worst_value);
  put(file, &lost, 1);
}

void wrong(Plan& plan, State& s) {
  Dat<int> narrow{"top", s.seen_values};
  Dat<Long, 2> wide{"top", s.q_values};
  Dat<Long> few{"top", s.top_values.data(), s.cells - 1};
  Global<Long> global{"top", s.top_values.data()};
  const auto call = [&](const char* loop, const auto& w, const auto&... tops) {
    try {
      par_loop<Run::sequential>(plan, loop, [](auto...) {}, w, tops...);
      std::puts("nothing is wrong");
    } catch (const Error& error) {
      std::puts(error.what());
    }
  };
  const auto w = arg(s.w, reading);
  const auto a = arg(s.top, map, 0, rw), b = arg(s.top, map, 1, rw);
  call("largest", w, a, b);
  call("none", w, a, b);
  call("largest", w, a);
  call("largest", arg(s.q, reading), a, b);
  call("largest", w, b, a);
  call("largest", w, arg(s.top, "cells->nodes", 0, rw), b);
  call("largest", w, arg(s.top, map, 0, inc), b);
  call("largest", w, arg(narrow, map, 0, rw), b);
  call("largest", w, arg(wide, map, 0, rw), b);
  call("largest", w, arg(few, map, 0, rw), b);
  call("largest", w, arg(global, inc), b);
  Dat<Long> other{"top", s.w_values.data(), s.cells};
  call("largest", w, a, arg(other, map, 1, rw));
  call("largest", w, arg(other, map, 0, rw), arg(other, map, 1, rw));
}

}  // namespace

int main(int argc, char** argv) {
  fetched_bytes = 0;  // rows are asked for ahead of small dats, too
  try {
    Plan plan(argv[1]);
    const std::string run = argv[2];
#ifndef CHECKED
    if (run == "ranges") return print_ranges(plan, argc - 3, argv + 3), 0;
#endif
    (void)argc;
    State s(plan);
    if (run == "wrong") return wrong(plan, s), 0;
#ifdef CHECKED
    if (run == "hierarchical") run_all<Run::hierarchical>(plan, s);
    if (run == "atomics") run_all<Run::atomics>(plan, s);
#else
    if (run == "simple" || run == "chunk")
      for (const char* name : {"mix", "push", "largest"})
        plan.loop(name).form = run == "chunk" ? Form::chunk : Form::simple;
    if (run == "sequential" || run == "simple" || run == "chunk") run_all<Run::sequential>(plan, s);
    if (run == "one thread") run_all<Run::openmp>(plan, s);
    if (run == "fractions") return whole_numbers_take_fractions(plan, s) ? 0 : 1;
    for (const char* name : {"mix", "push", "largest"}) try_several(plan, name);
    if (run == "openmp") run_all<Run::openmp>(plan, s);
#endif
    save(s, argv[3]);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
