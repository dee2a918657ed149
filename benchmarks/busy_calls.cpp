// Calls of a loop over edges->cells, for bench_busy.py: a line `WAY MICROSECONDS ...` each for the
// loop on threads, on one thread, and as a solver without meshprep writes it, which take turns.
//
//     busy_calls PLAN SECONDS
#define MESHPREP_PLAN_IMPLEMENTATION
#include <chrono>
#include <cstdio>
#include <functional>

#include "meshprep.hpp"

struct Flux {
  template <class A, class B, class C, class D>
  void operator()(A t1, B t2, C r1, D r2) const {
    const double f = t2[0] - t1[0];
    r1[0] += f;
    r2[0] -= f;
  }
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int, char** argv) {
  using namespace meshprep;
  Plan plan(argv[1]);
  const char* map = "edges->cells";
  const std::int32_t* table = plan.map(map).data->table;
  const auto cells = plan.set("cells").size, edges = plan.set("edges").size;
  std::vector<double> t_values(cells), r_values(cells);
  for (std::int64_t i = 0; i < cells; ++i) t_values[i] = double(i % 7);
  Dat<double> t("t", t_values), r("r", r_values);
  const auto loop = [&](auto run) {
    par_loop<decltype(run)::value>(plan, "flux", Flux(), arg(t, map, 0, read), arg(t, map, 1, read),
                                   arg(r, map, 0, inc), arg(r, map, 1, inc));
  };
  const std::function<void()> works[] = {
      [&] { loop(std::integral_constant<Run, Run::openmp>()); },
      [&] { loop(std::integral_constant<Run, Run::sequential>()); },
      [&] {
        for (std::int64_t e = 0; e < edges; ++e) {
          const std::int32_t a = table[2 * e], b = table[2 * e + 1];
          Flux()(&t_values[a], &t_values[b], &r_values[a], &r_values[b]);
        }
      }};
  std::vector<double> took[3];
  const double end = now() + std::atof(argv[2]);
  for (int turn = 0; now() < end; ++turn)
    for (int way = 0; way < 3; ++way)
      for (int call = 0; call < (edges < 50000 ? 40 : 8); ++call) {
        const double start = now();
        works[way]();
        if (turn) took[way].push_back(1e6 * (now() - start));
      }
  const char* names[] = {"threads", "one", "plain"};
  for (int way = 0; way < 3; ++way) {
    std::printf("%s", names[way]);
    for (double one : took[way]) std::printf(" %.2f", one);
    std::printf("\n");
  }
}
