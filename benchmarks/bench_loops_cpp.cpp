// Loops of a plan by par_loop and as their author would write them, for bench_loops_cpp.py: a line
// `NAME THREADS FORM ELEMENTS ...` each, with the seconds of calls by the author's loop, a slash,
// and those of par_loop; calls take turns.
//
//     bench_loops_cpp PLAN SECONDS THREADS NAME ...
#define MESHPREP_PLAN_IMPLEMENTATION
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "meshprep.hpp"

namespace {

using namespace meshprep;
constexpr auto reading = meshprep::read;
constexpr auto writing = meshprep::write;

struct Upwind {
  template <class U, class R, class G>
  void operator()(U l, U q, R rl, R rq, G g) const {
    using T = std::decay_t<decltype(l[0])>;
    const T vn = g[0] + T(0.2) * g[1];
    const T f = T(0.5) * (vn * (l[0] + q[0]) - std::abs(vn) * (q[0] - l[0])) -
                T(1e-3) * g[2] * (q[0] - l[0]);
    rl[0] -= f;
    rq[0] += f;
  }
};

struct Degree {
  template <class N>
  void operator()(N a, N b) const {
    a[0] += 1;
    b[0] += 1;
  }
};

template <int Dim>
struct Smooth {
  template <class X, class Y>
  void operator()(X xa, X xb, Y ya, Y yb) const {
    for (int i = 0; i < Dim; ++i) {
      const double d = 0.5 * (xb[i] - xa[i]);
      ya[i] += d;
      yb[i] -= d;
    }
  }
};

struct Euler {
  template <class Q, class R, class N>
  void operator()(Q l, Q r, R rl, R rr, N n) const {
    const double pl = 0.4 * (l[3] - 0.5 * (l[1] * l[1] + l[2] * l[2]) / l[0]);
    const double pr = 0.4 * (r[3] - 0.5 * (r[1] * r[1] + r[2] * r[2]) / r[0]);
    const double vl = (l[1] * n[0] + l[2] * n[1]) / l[0], vr = (r[1] * n[0] + r[2] * n[1]) / r[0];
    const double c =
        0.5 * (std::abs(vl) + std::abs(vr)) + std::sqrt(0.7 * (pl / l[0] + pr / r[0]));
    const double f0 = 0.5 * (vl * l[0] + vr * r[0]) - 0.5 * c * (r[0] - l[0]);
    const double f1 =
        0.5 * (vl * l[1] + pl * n[0] + vr * r[1] + pr * n[0]) - 0.5 * c * (r[1] - l[1]);
    const double f2 =
        0.5 * (vl * l[2] + pl * n[1] + vr * r[2] + pr * n[1]) - 0.5 * c * (r[2] - l[2]);
    const double f3 = 0.5 * (vl * (l[3] + pl) + vr * (r[3] + pr)) - 0.5 * c * (r[3] - l[3]);
    rl[0] -= f0, rr[0] += f0;
    rl[1] -= f1, rr[1] += f1;
    rl[2] -= f2, rr[2] += f2;
    rl[3] -= f3, rr[3] += f3;
  }
};

struct Species {
  template <class Y, class W>
  void operator()(Y l, Y r, W w) const {
    for (int i = 0; i < 16; ++i) {
      l[i] += w[i];
      r[i] -= w[i];
    }
  }
};

struct Average {
  template <class X, class Y>
  void operator()(X a, X b, X c, Y y) const {
    y[0] = (a[0] + b[0] + c[0]) / 3;
  }
};

struct Lumped {
  template <class M, class A>
  void operator()(M m0, M m1, M m2, A a) const {
    m0[0] += a[0];
    m1[0] += a[0];
    m2[0] += a[0];
  }
};

struct Axpy {
  template <class X, class Y>
  void operator()(X x, Y y) const {
    y[0] += 0.5 * x[0];
  }
};

struct Dot {
  template <class X, class S>
  void operator()(X x, X y, S s) const {
    s[0] += x[0] * y[0];
  }
};

struct Step {
  template <class X, class Y, class S>
  void operator()(X x, Y y, S s) const {
    const double t = y[0] / x[0];
    s[0] = t < s[0] ? t : s[0];
  }
};

// Values of points of cells and of cells beside edges, added to cells.
struct TwoMaps {
  template <class X, class U, class R>
  void operator()(X a, X b, U ul, U ur, R rl, R rr) const {
    const double dx = b[0] - a[0], dy = b[1] - a[1];
    const double f = (ur[0] - ul[0]) * std::sqrt(dx * dx + dy * dy);
    rl[0] += f;
    rr[0] -= f;
  }
};

struct Gradient {
  template <class U, class N, class G>
  void operator()(U ul, U ur, N n, G gl, G gr) const {
    const double mean = 0.5 * (ul[0] + ur[0]);
    for (int i = 0; i < 3; ++i) {
      gl[i] += mean * n[i];
      gr[i] -= mean * n[i];
    }
  }
};

// A dense matrix an edge, times both ends.
struct Matvec {
  template <class X, class K, class Y>
  void operator()(X xl, X xr, K k, Y yl, Y yr) const {
    for (int i = 0; i < 4; ++i) {
      double l = 0, r = 0;
      for (int j = 0; j < 4; ++j) {
        l += k[4 * i + j] * xr[j];
        r += k[4 * i + j] * xl[j];
      }
      yl[i] += l;
      yr[i] += r;
    }
  }
};

// One end is read, the other added to.
struct Push {
  template <class Q, class S>
  void operator()(Q q, S s) const {
    s[0] += 0.25 * q[0];
  }
};

// The mean of the points of a cell pulls each.
template <int Dim>
struct Pull {
  template <class... P>
  void operator()(P... p) const {
    const auto all = std::forward_as_tuple(p...);
    run(all, std::make_index_sequence<sizeof...(p) / 2>());
  }
  template <class All, std::size_t... I>
  void run(const All& all, std::index_sequence<I...>) const {
    constexpr std::size_t n = sizeof...(I);
    for (int i = 0; i < Dim; ++i) {
      const double mean = (std::get<I>(all)[i] + ...) * (1.0 / double(n));
      ((std::get<n + I>(all)[i] += mean), ...);
    }
  }
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Bench {
  Plan& plan;
  double seconds;
  std::vector<std::string> names;

  template <class Own, class Par>
  void operator()(const std::string& name, const Own& own, const Par& par) {
    if (std::find(names.begin(), names.end(), name) == names.end()) return;
    std::vector<double> took[2];
    const auto call = [&](int way) {
      const double start = now();
      if (way) par();
      else own();
      return now() - start;
    };
    for (double end = now() + seconds / 2; now() < end;) call(1);
    for (int i = 0; i < 20; ++i) par();
    const double end = now() + seconds;
    while (now() < end || took[0].size() < 7)
      for (int way = 0; way < 2; ++way) {
        call(way);
        took[way].push_back(call(way));
      }
    const Loop& loop = plan.loop(name);
    std::printf("%s %s %lld", name.c_str(), std::array{"simple", "chunk", "ahead"}[std::size_t(loop.trial.form())],
                (long long)plan.set(loop.over).size);
    for (int way = 0; way < 2; ++way) {
      std::sort(took[way].begin(), took[way].end());
      std::printf(" %.3e %.3e", took[way][0], took[way][took[way].size() / 2]);
    }
    std::puts("");
    std::fflush(stdout);
  }
};

template <class T, int Dim>
struct Values {
  Values(Plan& plan, const char* name, const char* set)
      : values(std::size_t(plan.set(set).size * Dim)), dat(name, values) {
    std::mt19937 random(1);
    for (T& value : values) value = T(1 + double(random() % 1000) / 1000);
    for (std::size_t i = 3; Dim == 4 && i < values.size(); i += 4) values[i] += T(5);
  }
  T* data() { return values.data(); }
  std::vector<T> values;
  Dat<T, Dim> dat;
};

template <class Kernel, int A, int B, int C, class T>
__attribute__((noinline, flatten)) void own_edges(std::int64_t n, const std::int32_t* t, const T* u,
                                                  T* r, const T* g) {
  for (std::int64_t e = 0; e < n; ++e) {
    const std::int32_t a = t[2 * e], b = t[2 * e + 1];
    if constexpr (C > 0 && A > 0) Kernel()(u + a * A, u + b * A, r + a * B, r + b * B, g + e * C);
    else if constexpr (C > 0) Kernel()(r + a * B, r + b * B, g + e * C);
    else if constexpr (A > 0) Kernel()(u + a * A, u + b * A, r + a * B, r + b * B);
    else Kernel()(r + a * B, r + b * B);
  }
}

template <int Dim, std::size_t... I>
__attribute__((noinline, flatten)) void own_pull(std::int64_t n, const std::int32_t* t,
                                                 const double* x, double* y,
                                                 std::index_sequence<I...>) {
  constexpr std::size_t many = sizeof...(I);
  for (std::int64_t e = 0; e < n; ++e)
    Pull<Dim>()((x + t[many * e + I] * Dim)..., (y + t[many * e + I] * Dim)...);
}

template <int Dim, Run run, std::size_t... I>
void bench_pull(Bench& bench, Plan& plan, std::index_sequence<I...> all) {
  const char* map = "cells->nodes";
  Values<double, Dim> x(plan, "x", "nodes"), y(plan, "y", "nodes");
  const std::string name = "pull" + std::to_string(Dim);
  const std::int64_t n = plan.set("cells").size;
  bench(
      name,
      [&] { own_pull<Dim>(n, plan.map(map).data->table, x.data(), y.data(), all); },
      [&] {
        par_loop<run>(plan, name, Pull<Dim>(), arg(x.dat, map, int(I), reading)...,
                      arg(y.dat, map, int(I), inc)...);
      });
}

template <int Dim, Run run>
void bench_smooth(Bench& bench, Plan& plan) {
  const char* map = "edges->cells";
  Values<double, Dim> x(plan, "x", "cells"), y(plan, "y", "cells");
  const std::string name = "smooth" + std::to_string(Dim);
  const std::int64_t n = plan.set("edges").size;
  bench(
      name,
      [&] {
        own_edges<Smooth<Dim>, Dim, Dim, 0>(n, plan.map(map).data->table, x.data(), y.data(),
                                            x.data());
      },
      [&] {
        par_loop<run>(plan, name, Smooth<Dim>(), arg(x.dat, map, 0, reading),
                      arg(x.dat, map, 1, reading), arg(y.dat, map, 0, inc),
                      arg(y.dat, map, 1, inc));
      });
}

template <class T, Run run>
void bench_upwind(Bench& bench, Plan& plan, const char* name) {
  const char* map = "edges->cells";
  Values<T, 1> u(plan, "u", "cells"), r(plan, "r", "cells");
  Values<T, 3> g(plan, "g", "edges");
  const std::int64_t n = plan.set("edges").size;
  bench(
      name,
      [&] {
        own_edges<Upwind, 1, 1, 3>(n, plan.map(map).data->table, u.data(), r.data(), g.data());
      },
      [&] {
        par_loop<run>(plan, name, Upwind(), arg(u.dat, map, 0, reading),
                      arg(u.dat, map, 1, reading),
                      arg(r.dat, map, 0, inc), arg(r.dat, map, 1, inc), arg(g.dat, reading));
      });
}

__attribute__((noinline, flatten)) void own_average(std::int64_t n, const std::int32_t* t,
                                                    const double* x, double* y) {
  for (std::int64_t e = 0; e < n; ++e)
    Average()(x + t[3 * e], x + t[3 * e + 1], x + t[3 * e + 2], y + e);
}

__attribute__((noinline, flatten)) void own_lumped(std::int64_t n, const std::int32_t* t, double* m,
                                                   const double* a) {
  for (std::int64_t e = 0; e < n; ++e)
    Lumped()(m + t[3 * e], m + t[3 * e + 1], m + t[3 * e + 2], a + e);
}

__attribute__((noinline, flatten)) void own_axpy(std::int64_t n, const double* x, double* y) {
  for (std::int64_t e = 0; e < n; ++e) Axpy()(x + e, y + e);
}

__attribute__((noinline, flatten)) void own_dot(std::int64_t n, const double* x, const double* y,
                                                double* s) {
  double sum = *s;
  for (std::int64_t e = 0; e < n; ++e) Dot()(x + e, y + e, &sum);
  *s = sum;
}

__attribute__((noinline, flatten)) void own_step(std::int64_t n, const double* x, const double* y,
                                                 double* s) {
  double least = *s;
  for (std::int64_t e = 0; e < n; ++e) Step()(x + e, y + e, &least);
  *s = least;
}

template <class Kernel, int A, int B, int C>
__attribute__((noinline, flatten)) void own_between(std::int64_t n, const std::int32_t* t,
                                                    const double* u, const double* g, double* r) {
  for (std::int64_t e = 0; e < n; ++e) {
    const std::int32_t a = t[2 * e], b = t[2 * e + 1];
    if constexpr (C > 0) Kernel()(u + a * A, u + b * A, g + e * C, r + a * B, r + b * B);
    else Kernel()(u + a * A, r + b * B);
  }
}

template <class Kernel, int A, int B, int C, Run run>
void bench_between(Bench& bench, Plan& plan, const char* name) {
  const char* map = "edges->cells";
  Values<double, A> u(plan, "u", "cells");
  Values<double, B> r(plan, "r", "cells");
  Values<double, C> g(plan, "g", "edges");
  const std::int64_t n = plan.set("edges").size;
  bench(
      name,
      [&] {
        own_between<Kernel, A, B, C>(n, plan.map(map).data->table, u.data(), g.data(), r.data());
      },
      [&] {
        par_loop<run>(plan, name, Kernel(), arg(u.dat, map, 0, reading),
                      arg(u.dat, map, 1, reading),
                      arg(g.dat, reading), arg(r.dat, map, 0, inc), arg(r.dat, map, 1, inc));
      });
}

template <Run run>
void bench_push(Bench& bench, Plan& plan) {
  const char* map = "edges->cells";
  Values<double, 1> u(plan, "u", "cells"), r(plan, "r", "cells");
  const std::int64_t n = plan.set("edges").size;
  bench(
      "push",
      [&] { own_between<Push, 1, 1, 0>(n, plan.map(map).data->table, u.data(), nullptr, r.data()); },
      [&] {
        par_loop<run>(plan, "push", Push(), arg(u.dat, map, 0, reading), arg(r.dat, map, 1, inc));
      });
}

__attribute__((noinline, flatten)) void own_two(std::int64_t n, const std::int32_t* t,
                                                const std::int32_t* p, const double* x,
                                                const double* u, double* r) {
  for (std::int64_t e = 0; e < n; ++e)
    TwoMaps()(x + 2 * p[2 * e + 1], x + 2 * p[2 * e], u + t[2 * e], u + t[2 * e + 1], r + t[2 * e],
              r + t[2 * e + 1]);
}

template <Run run>
void bench_triangles(Bench& bench, Plan& plan) {
  const char *map = "edges->cells", *nodes = "cells->nodes";
  const std::int64_t edges = plan.set("edges").size, cells = plan.set("cells").size;
  const std::int32_t *t = plan.map(map).data->table, *tn = plan.map(nodes).data->table;
  bench_upwind<double, run>(bench, plan, "upwind");
  bench_upwind<float, run>(bench, plan, "upwind4");
  {
    Values<int, 1> n(plan, "n", "cells");
    bench(
        "degree", [&] { own_edges<Degree, 0, 1, 0>(edges, t, n.data(), n.data(), n.data()); },
        [&] { par_loop<run>(plan, "degree", Degree(), arg(n.dat, map, 0, inc), arg(n.dat, map, 1, inc)); });
  }
  bench_smooth<2, run>(bench, plan);
  bench_smooth<4, run>(bench, plan);
  bench_smooth<8, run>(bench, plan);
  bench_smooth<16, run>(bench, plan);
  bench_smooth<32, run>(bench, plan);
  bench_smooth<64, run>(bench, plan);
  {
    Values<double, 4> q(plan, "q", "cells"), r(plan, "r", "cells");
    Values<double, 2> n(plan, "n", "edges");
    bench(
        "euler", [&] { own_edges<Euler, 4, 4, 2>(edges, t, q.data(), r.data(), n.data()); },
        [&] {
          par_loop<run>(plan, "euler", Euler(), arg(q.dat, map, 0, reading), arg(q.dat, map, 1, reading),
                        arg(r.dat, map, 0, inc), arg(r.dat, map, 1, inc), arg(n.dat, reading));
        });
  }
  {
    Values<double, 16> y(plan, "y", "cells"), w(plan, "w", "edges");
    bench(
        "species", [&] { own_edges<Species, 0, 16, 16>(edges, t, w.data(), y.data(), w.data()); },
        [&] {
          par_loop<run>(plan, "species", Species(), arg(y.dat, map, 0, inc), arg(y.dat, map, 1, inc),
                        arg(w.dat, reading));
        });
  }
  Values<double, 1> at(plan, "x", "nodes"), m(plan, "m", "nodes"), y(plan, "y", "cells"),
      x(plan, "x", "cells"), u(plan, "u", "cells");
  Values<double, 2> p(plan, "p", "nodes");
  bench(
      "average", [&] { own_average(cells, tn, at.data(), y.data()); },
      [&] {
        par_loop<run>(plan, "average", Average(), arg(at.dat, nodes, 0, reading),
                      arg(at.dat, nodes, 1, reading), arg(at.dat, nodes, 2, reading),
                      arg(y.dat, writing));
      });
  bench(
      "lumped", [&] { own_lumped(cells, tn, m.data(), x.data()); },
      [&] {
        par_loop<run>(plan, "lumped", Lumped(), arg(m.dat, nodes, 0, inc), arg(m.dat, nodes, 1, inc),
                      arg(m.dat, nodes, 2, inc), arg(x.dat, reading));
      });
  bench(
      "axpy", [&] { own_axpy(cells, x.data(), y.data()); },
      [&] { par_loop<run>(plan, "axpy", Axpy(), arg(x.dat, reading), arg(y.dat, rw)); });
  double sum = 0, least = 10;
  const Global<double> s{"s", &sum}, low{"s", &least};
  bench(
      "dot", [&] { own_dot(cells, x.data(), y.data(), &sum); },
      [&] { par_loop<run>(plan, "dot", Dot(), arg(x.dat, reading), arg(y.dat, reading), arg(s, inc)); });
  bench(
      "step", [&] { own_step(cells, x.data(), y.data(), &least); },
      [&] {
        par_loop<run>(plan, "step", Step(), arg(x.dat, reading), arg(y.dat, reading),
                      arg(low, meshprep::min));
      });
  bench_between<Gradient, 1, 3, 3, run>(bench, plan, "gradient");
  bench_between<Matvec, 4, 4, 16, run>(bench, plan, "matvec");
  bench_push<run>(bench, plan);
  const char* ends = "edges->nodes";
  Values<double, 1> r(plan, "r", "cells");
  bench(
      "two_maps",
      [&] { own_two(edges, t, plan.map(ends).data->table, p.data(), u.data(), r.data()); },
      [&] {
        par_loop<run>(plan, "two_maps", TwoMaps(), arg(p.dat, ends, 1, reading),
                      arg(p.dat, ends, 0, reading), arg(u.dat, map, 0, reading),
                      arg(u.dat, map, 1, reading), arg(r.dat, map, 0, inc), arg(r.dat, map, 1, inc));
      });
}

template <Run run>
void bench_all(Bench& bench, Plan& plan, const std::string& kind) {
  if (kind == "triangles") bench_triangles<run>(bench, plan);
  const auto pull = [&](auto all) {
    bench_pull<1, run>(bench, plan, all);
    bench_pull<4, run>(bench, plan, all);
    bench_pull<16, run>(bench, plan, all);
    bench_pull<32, run>(bench, plan, all);
    bench_pull<64, run>(bench, plan, all);
  };
  if (kind == "tetrahedra") pull(std::make_index_sequence<4>());
  if (kind == "hexahedra") pull(std::make_index_sequence<8>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  Plan plan(argv[1]);
  Bench bench{plan, std::atof(argv[2]), {argv + 5, argv + argc}};
  if (std::atoi(argv[3]) == 1) bench_all<Run::sequential>(bench, plan, argv[4]);
  else bench_all<Run::openmp>(bench, plan, argv[4]);
}
