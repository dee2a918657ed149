// Loops of a plan on a GPU, from the functions of meshprep.hpp, for nvcc or clang. Include it in
// place of meshprep.hpp, compile as CUDA, and mark the functions __host__ __device__; dats lie in
// memory that the GPU reaches, globals in that of the host.
//
//     par_loop(plan, ...)                 hierarchical: a thread block runs a block of the plan and
//                                         adds up in shared memory, by thread colours
//     par_loop<Run::atomics>(plan, ...)   a thread an element, sums by atomics
//
// A call with a reduction waits for its result; others return at once, in the usual stream.
#ifndef MESHPREP_CUDA_HPP
#define MESHPREP_CUDA_HPP

#include "meshprep.hpp"

// Threads of a thread block, at most; where a block of the plan has more elements than that, a
// thread runs several of them, one after the other.
#ifndef MESHPREP_THREADS
#define MESHPREP_THREADS 256
#endif

// What only a GPU has; meshprep's tests run the same text on a processor, under checks.
#ifndef MP_KERNEL
#include <cuda_runtime.h>
#define MP_KERNEL(threads) __global__ void __launch_bounds__(threads)
#define MP_RETURN return
#define MP_IN(T) const T* __restrict__
#define MP_OUT(T) T*
#define MP_HAND_IN(T, pointer, size, name) (pointer)
#define MP_HAND_OUT(T, pointer, size, name) (pointer)
#define MP_THREAD ((int)threadIdx.x)
#define MP_THREADS ((int)blockDim.x)
#define MP_BLOCK ((int)blockIdx.x)
#define MP_BARRIER() __syncthreads()
#define MP_SHARED(T, name, begin, size) T* const name = reinterpret_cast<T*>(mp_shared + (begin))
#define MP_ADD(array, index, value) meshprep::add_atomically(&(array)[index], value)
#define MP_LAUNCH(kernel, blocks, threads, shared, ...) \
  kernel<<<unsigned(blocks), unsigned(threads), std::size_t(shared)>>>(__VA_ARGS__)
extern __shared__ __align__(16) unsigned char mp_shared[];

namespace meshprep {

using Index = long long;

template <class T>
__device__ __forceinline__ void add_atomically(T* at, T value) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)value);
  else atomicAdd(at, value);
}

}  // namespace meshprep
#endif

namespace meshprep {

// Blocks of a loop, in the memory of the GPU.
struct DeviceBlocks {
  MP_IN(int) order;
  MP_IN(Index) offset;
  MP_IN(int) elements;
  MP_IN(unsigned short) colour;
  MP_IN(int) colours;
  bool listed;
};

template <class A>
constexpr bool takes_sums = A::conflicts && A::access == Access::inc;

// An argument of one thread: where its values lie, and those of its element in registers.
template <class A>
struct DeviceArg {
  using T = typename A::Value;
  static constexpr bool only_read = A::access == Access::read;
  using Values = std::conditional_t<only_read, MP_IN(T), MP_OUT(T)>;
  Values values;
  MP_IN(int) table;
  int arity, column;
  // Sums of a block, in shared memory from `begin` on; the first argument of a dat owns them.
  MP_IN(unsigned short) local;
  MP_IN(Index) point_offset;
  MP_IN(int) points;
  MP_IN(unsigned char) added;
  int begin;
  bool owner, full;
  // Of a global: what it holds, or what its reduction starts from.
  T held[A::Dim];

  __device__ __forceinline__ Index row(Index e) const {
    if constexpr (A::reach == Reach::mapped) return table[e * arity + column];
    return e;
  }

  __device__ __forceinline__ void load(Index e) {
    if constexpr (A::reach != Reach::global) {
      const Index at = row(e) * A::Dim;
      for (int k = 0; k < A::Dim; ++k)
        held[k] = A::access == Access::inc || full ? T(0) : values[at + k];
    }
  }

  __device__ __forceinline__ auto pointer() {
    if constexpr (only_read) return (const T*)held;
    else return (T*)held;
  }

  // Back to the dat; sums of mapped rows by atomics, or later.
  template <bool Atomics>
  __device__ __forceinline__ void store(Index e) {
    if constexpr (A::reach != Reach::global && !only_read) {
      const Index at = row(e) * A::Dim;
      for (int k = 0; k < A::Dim; ++k)
        if constexpr (!takes_sums<A>) {
          if constexpr (A::access == Access::inc) values[at + k] += held[k];
          else values[at + k] = held[k];
        } else if constexpr (Atomics) {
          MP_ADD(values, at + k, held[k]);
        }
    }
  }

  __device__ __forceinline__ void open(int block) const {
    if constexpr (takes_sums<A>) {
      const int many = (int)(point_offset[block + 1] - point_offset[block]);
      MP_SHARED(T, sums, begin, A::Dim * many);
      if (owner)
        for (int i = MP_THREAD; i < A::Dim * many; i += MP_THREADS) sums[i] = T(0);
    }
  }

  __device__ __forceinline__ void add(int block, Index place) const {
    if constexpr (takes_sums<A>) {
      const int many = (int)(point_offset[block + 1] - point_offset[block]);
      const int at = local[place];
      MP_SHARED(T, sums, begin, A::Dim * many);
      for (int k = 0; k < A::Dim; ++k) sums[k * many + at] += held[k];
    }
  }

  // Points that the block only reads may be another block's to write.
  __device__ __forceinline__ void close(int block) const {
    if constexpr (takes_sums<A>) {
      const Index from = point_offset[block];
      const int many = (int)(point_offset[block + 1] - from);
      MP_SHARED(T, sums, begin, A::Dim * many);
      if (owner)
        for (int i = MP_THREAD; i < many; i += MP_THREADS) {
          if (!added[from + i]) continue;
          const Index at = (Index)points[from + i] * A::Dim;
          for (int k = 0; k < A::Dim; ++k) values[at + k] += sums[k * many + i];
        }
    }
  }

  // A reduction, component by component: every thread's result, halved until one is left.
  __device__ __forceinline__ void share() const {
    if constexpr (A::reduces) {
      MP_SHARED(T, results, begin, A::Dim * MP_THREADS);
      for (int k = 0; k < A::Dim; ++k) results[k * MP_THREADS + MP_THREAD] = held[k];
    }
  }

  __device__ __forceinline__ void halve(int half) const {
    if constexpr (A::reduces) {
      MP_SHARED(T, results, begin, A::Dim * MP_THREADS);
      if (MP_THREAD >= half || MP_THREAD + half >= MP_THREADS) return;
      for (int k = 0; k < A::Dim; ++k) {
        const int at = k * MP_THREADS + MP_THREAD;
        const T mine = results[at], other = results[at + half];
        const bool stays = A::access == Access::min ? mine <= other : mine >= other;
        const bool goes = A::access == Access::min ? other < mine : other > mine;
        // the sum is NaN where one of two values is
        results[at] = A::access == Access::inc ? mine + other
                      : stays                  ? mine
                      : goes                   ? other
                                               : mine + other;
      }
    }
  }

  __device__ __forceinline__ void leave(Index block) const {
    if constexpr (A::reduces) {
      MP_SHARED(T, results, begin, A::Dim * MP_THREADS);
      if (MP_THREAD == 0)
        for (int k = 0; k < A::Dim; ++k) values[block * A::Dim + k] = results[k * MP_THREADS];
    }
  }
};

// A thread an element; rows that several elements write take sums only, by atomics.
template <class Kernel, class... D>
MP_KERNEL(MESHPREP_THREADS) run_elements(Kernel kernel, Index n, int half_first, D... args) {
  const Index e = (Index)MP_BLOCK * MP_THREADS + MP_THREAD;
  if (e < n) {
    (args.load(e), ...);
    kernel(args.pointer()...);
    (args.template store<true>(e), ...);
  }
  (args.share(), ...);
  for (int half = half_first; half > 0; half /= 2) {
    MP_BARRIER();
    (args.halve(half), ...);
  }
  (args.leave(MP_BLOCK), ...);
  MP_RETURN;
}

// A thread block a block of the plan, in rounds of an element a thread; `first` is where its colour
// begins. With `InTurn` elements see what those of earlier rounds and colours wrote.
template <bool InTurn, class Kernel, class... D>
MP_KERNEL(MESHPREP_THREADS)
run_blocks(Kernel kernel, DeviceBlocks blocks, Index first, int half_first, D... args) {
  const int block = blocks.order[first + MP_BLOCK];
  const Index end = blocks.offset[block + 1];
  const int colours = blocks.colours[block];
  (args.open(block), ...);
  for (Index done = blocks.offset[block]; done < end; done += MP_THREADS) {
    const Index place = done + MP_THREAD;
    const bool active = place < end;
    Index e = place;
    if (active && blocks.listed) e = blocks.elements[place];
    int colour = -1;
    if (active) {
      colour = blocks.colour[place];
      if (!InTurn) {
        (args.load(e), ...);
        kernel(args.pointer()...);
        (args.template store<false>(e), ...);
      }
    }
    MP_BARRIER();
    for (int c = 0; c < colours; ++c) {
      if (colour == c) {
        if (InTurn) {
          (args.load(e), ...);
          kernel(args.pointer()...);
          (args.template store<false>(e), ...);
        }
        (args.add(block, place), ...);
      }
      MP_BARRIER();
    }
  }
  (args.close(block), ...);
  (args.share(), ...);
  for (int half = half_first; half > 0; half /= 2) {
    MP_BARRIER();
    (args.halve(half), ...);
  }
  (args.leave(first + MP_BLOCK), ...);
  MP_RETURN;
}

}  // namespace meshprep

#include "meshprep_launch.hpp"

#endif  // MESHPREP_CUDA_HPP
