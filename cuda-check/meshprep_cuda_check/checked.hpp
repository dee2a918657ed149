// What the text of a loop is made of, on the CPU: each thread is a coroutine that stops at
// barriers, and every access is checked. A cell of memory remembers who touched it, so that a race
// is found whatever the order in which threads and blocks happen to run here.
#include <math.h>

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

typedef long long Index;
using std::max;
using std::min;

#define __device__
#define __host__
#define __forceinline__ inline
#define MP_KERNEL(threads) static mp::Task
#define MP_RETURN co_return
#define MP_EXTERN(name, ...) static void (*name)(__VA_ARGS__)
#define MP_AT(row, width) ((Index)(row) * (width))
#define MP_IN(T) mp::In<T>
#define MP_OUT(T) mp::Out<T>
#define MP_THREAD mp::now.thread
#define MP_THREADS mp::now.threads
#define MP_BLOCK mp::now.block
#define MP_BARRIER() co_yield __LINE__
// Threads wait for each other as at a barrier, but what they did in memory before is not ordered.
#define MP_SHUFFLE_DOWN(into, value, offset) \
  mp::lanes.put(value);                      \
  co_yield -__LINE__;                        \
  into = mp::lanes.down<decltype(into)>(offset)
#define MP_SHARED(T, name, begin, size) const mp::Shared<T> name(begin, size, #name)
#define MP_ADD(array, index, value) (array).add(index, value)
#define MP_ADD_ALL(n, array, index, values) mp::add_all<n>(array, index, values)
#define MP_LOAD(n, into, array, index) mp::load<n>(into, array, index)
#define MP_STORE(n, array, index, from) mp::store<n>(array, index, from)
#define MP_LOOP
#define MP_TALLY(part) ++mp::mine[part]
#define MP_EXPECT(condition) \
  if (!(condition)) mp::fail("wrong plan", #condition, -1)

namespace mp {

#ifdef MP_COUNTED
// How often each part of a text ran (benchmarks/executed.py): by threads, then by warps where any
// lane did.
constexpr int LANES = 32;
extern "C" {
Index mp_tally[2][MP_COUNTED];
}
// Of the running thread, and the most of any lane of its warp, since the last barrier.
static Index mine[MP_COUNTED], most[MP_COUNTED];

static void tally(int thread, int threads) {
  const bool last = thread % LANES == LANES - 1 || thread == threads - 1;
  for (int part = 0; part < MP_COUNTED; ++part) {
    mp_tally[0][part] += mine[part];
    most[part] = max(most[part], mine[part]);
    mine[part] = 0;
    if (!last) continue;
    mp_tally[1][part] += most[part];
    most[part] = 0;
  }
}
#endif

struct Now {
  int thread, threads, block;
  // One more at every barrier and for every block, never reset within a launch.
  Index epoch;
};
static Now now;
static char message[400];

struct Fault {};

[[noreturn]] static void fail(const char* check, const char* name, Index index) {
  std::snprintf(message, sizeof message, "%s: %s, index %lld, thread %d of block %d", check, name,
                index, now.thread, now.block);
  throw Fault();
}

// What the threads of a block hand on inside their warps. They run in turns, so that a thread reads
// before those after it can put again.
struct Lanes {
  struct Slot {
    alignas(16) unsigned char bytes[16];
  };
  std::vector<Slot> slots;
  template <class T>
  void put(T value) {
    if ((int)slots.size() < now.threads) slots.resize(now.threads);
    std::memcpy(slots[now.thread].bytes, &value, sizeof(T));
  }
  template <class T>
  T down(int offset) const {
    const bool inside = now.thread % 32 + offset < 32;
    const int from = inside ? now.thread + offset : now.thread;
    if (from >= now.threads) fail("no such thread", "shuffle", from);
    T value;
    std::memcpy(&value, slots[from].bytes, sizeof(T));
    return value;
  }
};
static Lanes lanes;

enum Kind { READ, WRITE, ATOMIC };
constexpr int NONE = -1, SEVERAL = -2;

struct Trace {
  int block = NONE, thread = NONE;
  Index epoch = -1;
};

struct Cell {
  Trace of[3];
};

static void touch(Cell& cell, Kind kind, bool shared, const char* name, Index index) {
  for (int other = READ; other <= ATOMIC; ++other) {
    const Trace& trace = cell.of[other];
    if (trace.block == NONE || (kind == other && kind != WRITE)) continue;
    if (!shared && trace.block != now.block) fail("race between blocks", name, index);
    if (trace.epoch == now.epoch && trace.thread != now.thread)
      fail("race inside a block", name, index);
  }
  Trace& own = cell.of[kind];
  own.block = own.block == NONE || own.block == now.block ? now.block : SEVERAL;
  const bool again = own.epoch == now.epoch && own.thread != now.thread;
  own.thread = again ? SEVERAL : now.thread;
  own.epoch = now.epoch;
}

// An element of an array that remembers who touched it; M is the memory it lies in.
template <class T, class M>
struct Ref {
  const M& memory;
  const Index index;
  operator T() const { return memory.load(index, READ); }
  Ref& operator=(T value) {
    memory.store(index, value, WRITE);
    return *this;
  }
  Ref& operator=(const Ref& other) { return *this = T(other); }
  Ref& operator+=(T value) { return *this = T(T(*this) + value); }
};

template <class T>
struct In {
  const T* values;
  Index size;
  const char* name;
  std::uintptr_t address(Index i) const { return (std::uintptr_t)(values + i); }
  void check(Index i) const {
    if (i < 0 || i >= size) fail("out of bounds", name, i);
  }
  T operator[](Index i) const {
    check(i);
    return values[i];
  }
};

template <class T>
struct Out {
  T* values;
  Index size;
  const char* name;
  Cell* cells;
  std::uintptr_t address(Index i) const { return (std::uintptr_t)(values + i); }
  T load(Index i, Kind kind) const {
    touch(cells[i], kind, false, name, i);
    return values[i];
  }
  void store(Index i, T value, Kind kind) const {
    touch(cells[i], kind, false, name, i);
    values[i] = value;
  }
  void check(Index i) const {
    if (i < 0 || i >= size) fail("out of bounds", name, i);
  }
  Ref<T, Out> operator[](Index i) const {
    check(i);
    return {*this, i};
  }
  void add(Index i, T value) const {
    check(i);
    store(i, T(load(i, ATOMIC) + value), ATOMIC);
  }
};

// Values that lie together and are moved at once: their place must be a multiple of their size.
template <int N, class T, class Array>
static void load(T* into, const Array& array, Index index) {
  array.check(index);
  if (array.address(index) % (N * sizeof(T))) fail("misaligned", array.name, index);
  for (int k = 0; k < N; ++k) into[k] = array[index + k];
}

template <int N, class T, class Array>
static void store(const Array& array, Index index, const T* from) {
  array.check(index);
  if (array.address(index) % (N * sizeof(T))) fail("misaligned", array.name, index);
  for (int k = 0; k < N; ++k) array[index + k] = from[k];
}

template <int N, class T, class Array>
static void add_all(const Array& array, Index index, const T* values) {
  array.check(index);
  if (array.address(index) % (N * sizeof(T))) fail("misaligned", array.name, index);
  for (int k = 0; k < N; ++k) array.add(index + k, values[k]);
}

struct Arena {
  std::vector<unsigned char> bytes;
  std::vector<Cell> cells;
  // The block that has set each byte, plus one.
  std::vector<int> set;
  void open(Index size) {
    bytes.assign(size, 0xA5);
    cells.assign(size, Cell());
    set.assign(size, 0);
  }
};
static Arena arena;

template <class T>
struct Shared {
  Index begin, size;
  const char* name;
  Shared(Index begin, Index size, const char* name) : begin(begin), size(size), name(name) {
    if (begin % sizeof(T)) fail("misaligned shared memory", name, begin);
  }
  // Shared memory begins at a multiple of whatever is moved at once.
  std::uintptr_t address(Index i) const { return begin + i * sizeof(T); }
  T load(Index i, Kind kind) const {
    T value;
    mark(i, kind);
    const Index at = begin + i * (Index)sizeof(T);
    for (Index b = at; b < at + (Index)sizeof(T); ++b)
      if (arena.set[b] != now.block + 1) fail("uninitialised shared memory", name, i);
    std::memcpy(&value, &arena.bytes[at], sizeof(T));
    return value;
  }
  void store(Index i, T value, Kind kind) const {
    mark(i, kind);
    const Index at = begin + i * (Index)sizeof(T);
    std::fill_n(&arena.set[at], sizeof(T), now.block + 1);
    std::memcpy(&arena.bytes[at], &value, sizeof(T));
  }
  void mark(Index i, Kind kind) const {
    const Index at = begin + i * (Index)sizeof(T);
    for (Index b = at; b < at + (Index)sizeof(T); ++b) touch(arena.cells[b], kind, true, name, i);
  }
  void check(Index i) const {
    const Index end = begin + (i + 1) * (Index)sizeof(T);
    if (i < 0 || i >= size || end > (Index)arena.bytes.size()) fail("out of bounds", name, i);
  }
  Ref<T, Shared> operator[](Index i) const {
    check(i);
    return {*this, i};
  }
  void add(Index i, T value) const {
    check(i);
    store(i, T(load(i, ATOMIC) + value), ATOMIC);
  }
};

struct Task {
  struct promise_type {
    int line = 0;
    std::exception_ptr error;
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int at) {
      line = at;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  std::coroutine_handle<promise_type> handle;
  explicit Task(std::coroutine_handle<promise_type> handle) : handle(handle) {}
  Task(Task&& other) noexcept : handle(other.handle) { other.handle = nullptr; }
  ~Task() {
    if (handle) handle.destroy();
  }
  // To the next barrier: its line, or 0 at the end.
  int advance() {
    handle.resume();
    if (handle.promise().error) std::rethrow_exception(handle.promise().error);
    return handle.done() ? 0 : handle.promise().line;
  }
};

template <class Make>
static void run_block(int threads, Make make) {
  std::vector<Task> tasks;
  tasks.reserve(threads);
  for (now.thread = 0; now.thread < threads; ++now.thread) tasks.push_back(make());
  for (int line = -1; line != 0;) {
    for (now.thread = 0; now.thread < threads; ++now.thread) {
      const int reached = tasks[now.thread].advance();
      if (now.thread > 0 && reached != line) fail("divergent barrier", "line", reached);
      line = reached;
#ifdef MP_COUNTED
      tally(now.thread, threads);
#endif
    }
    if (line >= 0) ++now.epoch;
  }
}

// One launch; the message of the check that failed, or an empty one.
template <class Make>
static const char* run(int blocks, int threads, Index shared, Make make) {
  message[0] = 0;
  now = Now{0, threads, 0, 0};
  arena.open(shared);
  try {
    for (now.block = 0; now.block < blocks; ++now.block) run_block(threads, make);
  } catch (const Fault&) {
  }
  return message;
}

}  // namespace mp
