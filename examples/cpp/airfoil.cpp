// Airfoil whole, from a plan: two stages an iteration, on all cores or, compiled by nvcc, on a GPU.
//
//     airfoil PREFIX ITERATIONS [EVERY]
//
// Reads the files of prepare.py. Prints the root mean square of the change of the second stage,
// every so many iterations, then the seconds of each loop; on a GPU those of its calls, and those
// that the GPU took.
#define MESHPREP_PLAN_IMPLEMENTATION
#ifdef __CUDACC__
#include "meshprep_cuda.hpp"
#else
#include "meshprep.hpp"
#endif

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "airfoil_kernels.hpp"

namespace airfoil {

using meshprep::arg;
using meshprep::Dat;
using meshprep::inc;
using meshprep::par_loop;
using meshprep::read;
using meshprep::rw;
using meshprep::write;

// Memory for values, that a GPU reaches, too, where there is one.
template <class T>
T* allocate(std::int64_t n) {
#ifdef __CUDACC__
  T* values = nullptr;
  if (cudaMallocManaged(&values, n * sizeof(T)) != cudaSuccess)
    throw meshprep::Error("the GPU has no memory left: take fewer cells");
  return values;
#else
  return new T[std::size_t(n)];
#endif
}

template <class T>
T* from_file(const std::string& path, std::int64_t n) {
  T* values = allocate<T>(n);
  std::ifstream file(path, std::ios::binary);
  const auto bytes = std::streamsize(n * std::int64_t(sizeof(T)));
  if (!file.read(reinterpret_cast<char*>(values), bytes) || file.peek() != EOF)
    throw meshprep::Error(path + ": must hold " + std::to_string(n) + " values: see prepare.py");
  return values;
}

#ifdef __CUDACC__
// Seconds by the clock of the GPU: between events before and after what a loop queues.
class GpuTimes {
 public:
  void begin(const char* name) { queued_.push_back({name, mark(), nullptr}); }

  void end() { queued_.back().end = mark(); }

  // Waits for all that is queued.
  void collect() {
    for (const Queued& loop : queued_) {
      float milliseconds = 0;
      meshprep::succeed(cudaEventSynchronize(loop.end));
      meshprep::succeed(cudaEventElapsedTime(&milliseconds, loop.begin, loop.end));
      seconds[loop.name] += 1e-3 * double(milliseconds);
      meshprep::succeed(cudaEventDestroy(loop.begin));
      meshprep::succeed(cudaEventDestroy(loop.end));
    }
    queued_.clear();
  }

  std::map<std::string, double> seconds;

 private:
  struct Queued {
    const char* name;
    cudaEvent_t begin, end;
  };

  static cudaEvent_t mark() {
    cudaEvent_t event;
    meshprep::succeed(cudaEventCreate(&event));
    meshprep::succeed(cudaEventRecord(event));
    return event;
  }

  std::vector<Queued> queued_;
};
#else
struct GpuTimes {
  void begin(const char*) {}
  void end() {}
  void collect() {}
  std::map<std::string, double> seconds;
};
#endif

// The memory lasts as long as the program.
class Flow {
 public:
  explicit Flow(const std::string& prefix)
      : plan_(prefix + ".plan.h5"), cells_(plan_.set("cells").size),
        nodes_(plan_.set("nodes").size), bounds_(plan_.set("boundary_edges").size),
        x("x", from_file<double>(prefix + ".x.bin", 2 * nodes_), nodes_),
        q("q", allocate<double>(4 * cells_), cells_),
        qold("qold", allocate<double>(4 * cells_), cells_),
        adt("adt", allocate<double>(cells_), cells_),
        res("res", allocate<double>(4 * cells_), cells_),
        bound("bound", from_file<std::int64_t>(prefix + ".bound.bin", bounds_), bounds_) {
    const State s = free_stream();
    const double start[4] = {s.rho, s.mx, s.my, s.energy};
    for (std::int64_t i = 0; i < 4 * cells_; ++i) {
      q.values[i] = start[i % 4];
      res.values[i] = 0.0;
    }
  }

  // One iteration; returns the root mean square.
  double step() {
    double sum = 0.0;
    save();
    for (int stage = 0; stage < 2; ++stage) {
      sum = 0.0;
      sides();
      fluxes();
      bounds();
      change(sum);
    }
    // The sum was waited for, and so was all that was queued before it.
    on_gpu.collect();
    return std::sqrt(sum / double(cells_));
  }

  std::map<std::string, double> seconds;
  GpuTimes on_gpu;

 private:
  template <class... Args>
  void run(const char* name, const Args&... args) {
    const auto start = std::chrono::steady_clock::now();
    on_gpu.begin(name);
    par_loop(plan_, name, args...);
    on_gpu.end();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    seconds[name] += passed.count();
  }

  void save() { run("save_soln", SaveSoln(), arg(q, read), arg(qold, write)); }

  void sides() {
    const char* map = "cells->nodes";
    run("adt_calc", AdtCalc(), arg(x, map, 0, read), arg(x, map, 1, read), arg(x, map, 2, read),
        arg(x, map, 3, read), arg(q, read), arg(adt, write));
  }

  void fluxes() {
    const char *nodes = "edges->nodes", *cells = "edges->cells";
    run("res_calc", ResCalc(), arg(x, nodes, 1, read), arg(x, nodes, 0, read),
        arg(q, cells, 0, read), arg(q, cells, 1, read), arg(adt, cells, 0, read),
        arg(adt, cells, 1, read), arg(res, cells, 0, inc), arg(res, cells, 1, inc));
  }

  void bounds() {
    const char *nodes = "boundary_edges->nodes", *cells = "boundary_edges->cells";
    run("bres_calc", BresCalc(), arg(x, nodes, 1, read), arg(x, nodes, 0, read),
        arg(q, cells, 0, read), arg(adt, cells, 0, read), arg(res, cells, 0, inc),
        arg(bound, read));
  }

  void change(double& sum) {
    const meshprep::Global<double> rms{"rms", &sum};
    run("update", Update(), arg(qold, read), arg(q, write), arg(res, rw), arg(adt, read),
        arg(rms, inc));
  }

  meshprep::Plan plan_;
  std::int64_t cells_, nodes_, bounds_;
  Dat<double, 2> x;
  Dat<double, 4> q, qold;
  Dat<double> adt;
  Dat<double, 4> res;
  Dat<std::int64_t> bound;
};

void run(const std::string& prefix, long iterations, long every) {
  Flow flow(prefix);
  for (long i = 1; i <= iterations; ++i) {
    const double rms = flow.step();
    if (i % every == 0) std::printf("%6ld %.5e\n", i, rms);
  }
  for (const auto& [name, seconds] : flow.seconds) {
    std::printf("%s %.4f s", name.c_str(), seconds);
    const auto found = flow.on_gpu.seconds.find(name);
    if (found != flow.on_gpu.seconds.end()) std::printf(", %.4f s on the GPU", found->second);
    std::puts("");
  }
}

}  // namespace airfoil

int main(int argc, char** argv) {
  const long iterations = argc > 2 ? std::atol(argv[2]) : 0;
  const long every = argc > 3 ? std::atol(argv[3]) : 100;
  if (iterations < 1 || every < 1) {
    std::fprintf(stderr, "usage: airfoil PREFIX ITERATIONS [EVERY]\n");
    return 2;
  }
  try {
    airfoil::run(argv[1], iterations, every);
  } catch (const meshprep::Error& error) {
    std::fprintf(stderr, "airfoil: error: %s\n", error.what());
    return 2;
  }
  return 0;
}
