// A loop whose floats are rounded, for test_cpp.py: apart from loops.cpp, since the optimiser, whose
// work on it counts, takes a second for each loop of a program.
//
//     rounded PLAN     ends with 0 where every form gives the same bits
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

using namespace meshprep;
constexpr auto reading = meshprep::read;
const char* map = "edges->cells";

std::vector<double> numbers(std::int64_t n, std::int64_t factor, std::int64_t modulus) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) values[std::size_t(i)] = double(i * factor % modulus);
  return values;
}

// Sums and reductions of floats that are rounded, by a function that adds to a component twice,
// where elements are many enough for one to meet the other sums of its fellows.
struct Rounded {
  template <class Q, class W, class S, class T, class L>
  void operator()(Q q1, Q q2, W w, S s1, S s2, T total, L low) const {
    for (int k = 0; k < 3; ++k) {
      const double f = q1[k] * w[0] - q2[k] / 3;
      if (f > 0) s1[k] += f * w[1] + 0.1;
      s1[k] += q2[k] / 7;
      s2[k] -= f * f;
    }
    total[0] += q1[0] * w[1] / 3;
    low[0] = q2[1] - w[0] * w[1] < low[0] ? q2[1] - w[0] * w[1] : low[0];
  }
};

// The same bits in every form, timed or not, on one thread and on several.
bool same_bits(Plan& plan) {
  const std::int64_t cells = plan.set("cells").size, edges = plan.set("edges").size;
  std::vector<double> q_values = numbers(3 * cells, 37, 101);
  std::vector<double> w_values = numbers(2 * edges, 53, 997);
  for (double& q : q_values) q = 1 / (1 + q);
  for (double& w : w_values) w = std::sqrt(w);
  const Dat<double, 3> q("q", q_values);
  const Dat<double, 2> w("w", w_values);
  std::vector<double> first, found;
  double total_value, low_value;
  const Global<double> total{"total", &total_value}, low{"low", &low_value};
  const auto call = [&](auto run) {
    std::vector<double> sums(std::size_t(3 * cells), -0.0);
    const Dat<double, 3> sum("sum", sums);
    total_value = 0.5, low_value = 3;
    par_loop<decltype(run)::value>(
        plan, "rounded", Rounded(), arg(q, map, 0, reading), arg(q, map, 1, reading),
        arg(w, reading), arg(sum, map, 0, inc), arg(sum, map, 1, inc), arg(total, inc),
        arg(low, meshprep::min));
    found = sums;
    found.insert(found.end(), {total_value, low_value});
    if (first.empty()) first = found;
    return std::memcmp(first.data(), found.data(), found.size() * sizeof(double)) == 0;
  };
  const std::integral_constant<Run, Run::sequential> alone;
  const std::integral_constant<Run, Run::openmp> threads;
  const Loop& loop = plan.loop("rounded");
  bool same = true;
  for (const Form form : {Form::simple, Form::chunk, Form::timed}) {
    loop.form = form;
    for (int turn = 0; turn < 20; ++turn) same = call(alone) && same;
    if (form == Form::timed && !loop.trial.decided()) return false;
    for (int turn = 0; turn < 3; ++turn) {
      loop.team = Team();
      // As after calls that took a second on one thread: the next one takes several.
      for (int before = 0; before < 3; ++before) loop.team.note(false, 1.0);
      same = call(threads) && same;
    }
  }
  return same;
}

}  // namespace

int main(int, char** argv) {
  fetched_bytes = 0;  // rows are asked for ahead of small dats, too
  try {
    Plan plan(argv[1]);
    return same_bits(plan) ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
