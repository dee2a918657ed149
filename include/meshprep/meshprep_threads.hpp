// Part of meshprep.hpp: threads that sleep until there is work, and how many of them a loop takes.
//
// OpenMP's threads spin while they wait for each other, at the cost of the thread that they wait
// for where another process has the core. These sleep; a loop begins at once on the calling thread
// and takes back what no other has begun when it is done, so that nobody waits for one that the
// system lets run late. OpenMP says how many there may be.
#ifndef MESHPREP_THREADS_HPP
#define MESHPREP_THREADS_HPP

#include <algorithm>
#include <array>
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
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include "meshprep_ranges.hpp"

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

// The threads of the process that help with loops; they end with it. A forked process has none of
// its parent's threads, only locks and waiters as they stood: it gets a pool of its own.
class Pool {
 public:
  static Pool& of_process() {
    Pool* const pool = place().load(std::memory_order_acquire);
    return pool ? *pool : make();
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
  static std::atomic<Pool*>& place() {
    static std::atomic<Pool*> pool{nullptr};
    return pool;
  }

  static Pool& make() {
#if defined(__unix__) || defined(__APPLE__)
    // what the parent had is left as it is, since it may be in use
    static const int noted = pthread_atfork(nullptr, nullptr, [] { place() = nullptr; });
    static_cast<void>(noted);
#endif
    Pool* found = nullptr;
    Pool* const made = new Pool;
    if (place().compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
  }

  // Looks for the next loop before a helper sleeps, in which others may have the core: some hundred
  // microseconds.
  static constexpr int listen = 400;

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      // to be woken takes tens of microseconds
      lock.unlock();
      for (int looks = 0; looks < listen && seats_ == 0; ++looks) std::this_thread::yield();
      lock.lock();
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
  std::atomic<int> seats_{0};
  int helpers_ = 0, working_ = 0;
};

// How many threads the calls of a loop take: one, or as many as there are, whichever took less in
// the last calls; the other is tried again now and then. The bits of a result are the same.
class Team {
 public:
  // A thread is woken for so much work, so that small loops run on one.
  static constexpr double worth = 10e-6;
  // Calls that are remembered of either way, those that are tried first, and how often what was
  // slower is tried again.
  static constexpr std::size_t recent = 9, first = 3;
  static constexpr std::int64_t again = 128;
  // What several threads must take at most of the time of one.
  static constexpr double gain = 0.95;

  int threads(std::int64_t ranges) {
    ++calls_;
    if (ranges < 2 || took_[0].empty()) return 1;
    const double least = *std::min_element(took_[0].begin(), took_[0].end());
    const std::int64_t most = std::min(ranges, std::int64_t(least / worth));
    short_ = most < 2;
    if (short_) return 1;
    bool take = several_ != (again_ || calls_ % again >= again - 2);
    if (std::min(took_[0].size(), took_[1].size()) < first) take = took_[0].size() >= first;
    return take ? int(std::min<std::int64_t>(most, thread_count())) : 1;
  }

  // Whether this call's time matters: of a loop that is too short for two threads hardly ever.
  bool is_timed() const { return !short_ || took_[0].size() < recent || calls_ % again == 0; }

  // The first call of either way after the other does not count: it wakes threads, and finds the
  // dats in the caches of other cores.
  void note(bool on_several, double seconds) {
    if (std::exchange(last_, on_several) != on_several) return;
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
  bool several_ = false, again_ = false, short_ = false, last_ = false;
  std::int64_t calls_ = 0;
};

// Forms of a loop on the host: in place, in chunks, or in place with rows asked for ahead; `timed`
// is the fastest of those that it can run in.
enum class Form { simple, chunk, ahead, timed };

// Which way is the fastest: pieces of the first calls run in each, in turn. All give the same bits.
class Trial {
 public:
  // Pieces of each way, those that are not counted, and what another one must take at most of the
  // time of the simple way. One that takes so many times as long as the fastest after a few pieces
  // is not tried for several calls.
  static constexpr std::size_t enough = 8, cold = 2;
  static constexpr double gain = 0.97, clear = 1.25;
  static constexpr int calls = 4;

  // The trial of another function begins anew.
  void is_of(const void* instance, const std::array<bool, 3>& tried) {
    if (instance_ == instance) return;
    *this = Trial();
    instance_ = instance;
    forms_.clear();
    for (std::size_t form = 0; form < tried.size(); ++form)
      if (tried[form]) forms_.push_back(Form(form));
  }

  bool decided() const { return forms_.size() == 1; }
  Form form() const { return forms_.front(); }

  template <class Run>
  void time(std::int64_t elements, const Run& run) {
    const Form form = forms_[next_++ % forms_.size()];
    const auto start = std::chrono::steady_clock::now();
    run(form);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    auto& own = took_[std::size_t(form)];
    if (own.size() < most) own.push_back(took.count() / double(elements));
    if (form == forms_.back() && fewest() >= 2 * enough && own.size() % enough == 0) drop(clear);
  }

  // A call has ended: the next one begins with another way.
  void end_call() {
    next_ = std::size_t(++calls_);
    if (calls_ >= calls && fewest() >= enough) drop(0);
  }

 private:
  // Leave out what takes more than so many times the time of the fastest.
  void drop(double factor) {
    const auto cost = [&](Form form) {
      return median(took_[std::size_t(form)]) * (form == Form::simple ? gain : 1);
    };
    const Form best = *std::min_element(forms_.begin(), forms_.end(),
                                       [&](Form a, Form b) { return cost(a) < cost(b); });
    const double limit = factor * cost(best);
    const auto slow = [&](Form form) { return form != best && cost(form) > limit; };
    forms_.erase(std::remove_if(forms_.begin(), forms_.end(), slow), forms_.end());
  }

  std::size_t fewest() const {
    std::size_t found = most;
    for (const Form form : forms_) found = std::min(found, took_[std::size_t(form)].size());
    return found;
  }

  static constexpr std::size_t most = 256;
  static double median(std::vector<double> values) {
    values.erase(values.begin(), values.begin() + cold);
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  const void* instance_ = nullptr;
  std::vector<Form> forms_{Form::simple};
  std::array<std::vector<double>, 3> took_;  // seconds an element
  std::size_t next_ = 0;
  int calls_ = 0;
};

// Waits a moment for another thread; after a while, until the system has run others.
inline void wait_a_moment(int& waited) {
  if (++waited > 200) std::this_thread::yield();
#if defined(__x86_64__) && defined(__GNUC__)
  else __builtin_ia32_pause();
#endif
}

// Runs one(range) for all ranges on threads, or alone() on this one. Turns are taken in order, so
// that whatever a thread waits for is being run by another one.
template <class One, class Alone>
void run_in_turns(Team& team, const Ranges& ranges, const One& one, const Alone& alone) {
  Pool& pool = Pool::of_process();
  const std::unique_lock<std::mutex> mine(pool.taken, std::try_to_lock);
  const std::int64_t n = std::int64_t(ranges.order.size());
  const int threads = mine ? team.threads(n) : 1;
  if (mine && threads == 1 && !team.is_timed()) return alone();
  const auto start = std::chrono::steady_clock::now();
  if (threads == 1) {
    alone();
  } else {
    alignas(64) std::atomic<std::int64_t> next{0};
    alignas(64) std::atomic<bool> failed{false};
    std::exception_ptr error;
    // A byte a turn: those of one cache line are done at about the same time.
    std::vector<std::atomic<bool>> done(static_cast<std::size_t>(n));
    pool.share(
        [&] {
          for (std::int64_t k; (k = next.fetch_add(1)) < n;) {
            for (std::int64_t w = ranges.wait_offset[std::size_t(k)];
                 w < ranges.wait_offset[std::size_t(k) + 1]; ++w)
              for (int waited = 0; !done[std::size_t(ranges.waits[std::size_t(w)])];)
                wait_a_moment(waited);
            try {
              if (!failed) one(ranges.order[std::size_t(k)]);
            } catch (...) {
              if (!failed.exchange(true)) error = std::current_exception();
            }
            done[std::size_t(k)] = true;
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
