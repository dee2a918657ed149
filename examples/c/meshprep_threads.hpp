// Part of meshprep.hpp: threads that sleep until there is work, and how many of them a loop takes.
//
// OpenMP's threads spin while they wait for each other, at the cost of the thread that they wait
// for where another process has the core. These sleep; a loop begins at once on the calling thread
// and takes back what no other has begun when it is done, so that nobody waits for one that the
// system lets run late. OpenMP says how many there may be.
#ifndef MESHPREP_THREADS_HPP
#define MESHPREP_THREADS_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace meshprep {

// Cores' worth of time that one control group allows, of version 2 or 1; 0 where it says nothing.
inline double quota_of(const std::string& group) {
  std::string quota, period;
  if (!(std::ifstream(group + "/cpu.max") >> quota >> period)) {
    std::ifstream(group + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(group + "/cpu.cfs_period_us") >> period;
  }
  const double time = std::atof(quota.c_str()), of = std::atof(period.c_str());
  return time > 0 && of > 0 ? time / of : 0;
}

// The least that a control group of this process allows, as containers have one.
inline double read_quota() {
  double least = 0;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (!names.empty() && ("," + names + ",").find(",cpu,") == std::string::npos) continue;
    for (const std::string base : {"", "/unified", "/cpu", "/cpu,cpuacct"})
      for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
        const double quota = quota_of("/sys/fs/cgroup" + base + path);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        if (path.find_last_of('/') == std::string::npos) break;
      }
  }
  return least;
}

// Threads that this thread's loops may take: OMP_NUM_THREADS, or what omp_set_num_threads() said,
// at most the cores on which the process may run and its quota of their time, rounded up.
inline int thread_count() {
#ifdef _OPENMP
  if (omp_in_parallel()) return 1;
  const int most = omp_get_max_threads();
  if (std::getenv("OMP_NUM_THREADS")) return most;
  static const double quota = read_quota();
  const int cores = std::min(most, omp_get_num_procs());
  return quota > 0 && quota < cores ? std::max(1, int(quota + 0.999)) : cores;
#else
  return 1;
#endif
}

// The threads of the process that help with loops; they end with it.
class Pool {
 public:
  static Pool& of_process() {
    static Pool* const pool = new Pool;
    return *pool;
  }

  // Held while a loop has the pool; who does not get it works alone.
  std::mutex taken;

  // Run work() here and on sleeping threads; those that began have ended when it returns.
  void share(const std::function<void()>& work, int threads) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      try {
        for (; helpers_ < threads - 1; ++helpers_) std::thread([this] { serve(); }).detach();
      } catch (const std::system_error&) {  // a limit of threads: fewer do the same
      }
      work_ = &work;
      seats_ = std::min(helpers_, threads - 1);
    }
    for (int i = 1; i < threads; ++i) wake_.notify_one();
    work();
    std::unique_lock<std::mutex> lock(mutex_);
    seats_ = 0;
    ended_.wait(lock, [this] { return working_ == 0; });
  }

 private:
  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return seats_ > 0; });
      --seats_;
      ++working_;
      const std::function<void()>& work = *work_;
      lock.unlock();
      work();
      lock.lock();
      if (--working_ == 0) ended_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  const std::function<void()>* work_ = nullptr;
  int helpers_ = 0, seats_ = 0, working_ = 0;
};

// How many threads the calls of a loop take: one, or as many as there are, whichever took less in
// the last calls; the other is tried again now and then. The bits of a result are the same.
class Team {
 public:
  // A thread is woken for so much work, so that small loops run on one.
  static constexpr double worth = 20e-6;
  // Calls that are remembered of either way, those that are tried first, and how often what was
  // slower is tried again.
  static constexpr std::size_t recent = 9, first = 3;
  static constexpr std::int64_t again = 64;
  // What several threads must take at most of the time of one.
  static constexpr double gain = 0.95;

  int threads(std::int64_t blocks) {
    if (blocks < 2 || took_[0].empty()) return 1;
    const double least = *std::min_element(took_[0].begin(), took_[0].end());
    const std::int64_t most = std::min(blocks, std::int64_t(least / worth));
    if (most < 2) return 1;
    ++calls_;
    bool take = several_ != (again_ || calls_ % again == 0);
    if (std::min(took_[0].size(), took_[1].size()) < first) take = took_[1].size() < took_[0].size();
    return take ? int(std::min<std::int64_t>(most, thread_count())) : 1;
  }

  void note(bool on_several, double seconds) {
    std::vector<double>& took = took_[on_several];
    if (took.size() == recent) took.erase(took.begin());
    took.push_back(seconds);
    if (took_[1].empty()) return;
    const std::vector<double>& other = took_[!on_several];
    const bool better = !other.empty() && seconds < median(other);
    several_ = median(took_[1]) < gain * median(took_[0]);
    // What is better than usual is tried at once again, until it is usual.
    again_ = better && on_several != several_;
  }

 private:
  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  std::vector<double> took_[2];  // seconds, by one thread and by several
  bool several_ = false, again_ = false;
  std::int64_t calls_ = 0;
};

// Runs one(0) .. one(n - 1) on threads. Before one(k) all of those before barrier(k) are done: k are
// taken in order, so that whatever a thread waits for is being run by another one. One thread takes
// them in the order of alone(k).
template <class One, class Barrier, class Alone>
void run_in_order(Team& team, std::int64_t n, const One& one, const Barrier& barrier,
                  const Alone& alone) {
  const std::unique_lock<std::mutex> mine(Pool::of_process().taken, std::try_to_lock);
  const int threads = mine ? team.threads(n) : 1;
  const auto start = std::chrono::steady_clock::now();
  if (threads == 1) {
    for (std::int64_t k = 0; k < n; ++k) one(alone(k));
  } else {
    alignas(64) std::atomic<std::int64_t> next{0};
    alignas(64) std::atomic<std::int64_t> done{0};
    alignas(64) std::atomic<bool> failed{false};
    std::exception_ptr error;
    Pool::of_process().share(
        [&] {
          for (std::int64_t k; (k = next.fetch_add(1)) < n;) {
            for (const std::int64_t before = barrier(k); done.load() < before;)
              std::this_thread::yield();
            try {
              if (!failed) one(k);
            } catch (...) {
              if (!failed.exchange(true)) error = std::current_exception();
            }
            done.fetch_add(1);
          }
        },
        threads);
    if (error) std::rethrow_exception(error);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (mine) team.note(threads > 1, took.count());
}

}  // namespace meshprep

#endif  // MESHPREP_THREADS_HPP
