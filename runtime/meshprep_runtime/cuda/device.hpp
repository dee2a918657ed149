// What the text of a loop is made of, for CUDA.
#ifdef MP_NARROW
typedef int Index;
#else
typedef long long Index;
#endif
#ifdef MP_RESIDENT
#define MP_BOUNDS(threads) __launch_bounds__(threads, MP_RESIDENT)
#else
#define MP_BOUNDS(threads) __launch_bounds__(threads)
#endif
#define MP_KERNEL(threads) extern "C" __global__ void MP_BOUNDS(threads)
#define MP_RETURN return
#define MP_EXTERN(name, ...) extern "C" __device__ void name(__VA_ARGS__)
#define MP_AT(row, width) mp_row<width>(row)
#define MP_IN(T) const T* __restrict__
#define MP_OUT(T) T* __restrict__
#define MP_THREAD ((int)threadIdx.x)
#define MP_THREADS ((int)blockDim.x)
#define MP_BLOCK ((int)blockIdx.x)
#define MP_BARRIER() __syncthreads()
// The value of the thread of the warp `offset` places further on; every thread takes part.
#define MP_SHUFFLE_DOWN(into, value, offset) into = __shfl_down_sync(0xffffffffu, value, offset)
#define MP_SHARED(T, name, begin, size) T* const name = reinterpret_cast<T*>(mp_shared + (begin))
#define MP_ADD(array, index, value) mp_add(mp_at(array, index), value)
#define MP_ADD_ALL(n, array, index, values) mp_add_all<n>(mp_at(array, index), values)
#define MP_LOAD(n, into, array, index) mp_load<n>(into, mp_at(array, index))
#define MP_STORE(n, array, index, from) mp_store<n>(mp_at(array, index), from)
#define MP_EXPECT(condition)
// Loops with few rounds: unrolled, they only take instructions and registers.
#define MP_LOOP _Pragma("unroll 1")

extern __shared__ __align__(16) unsigned char mp_shared[];

template <class T, int W>
struct mp_values {
  T at[W];
};

// A value of a row of so many: its address is one instruction, a product of 64 bits.
template <int W>
struct mp_place {
  Index row;
  int k;
  __device__ __forceinline__ operator long long() const { return (long long)row * W + k; }
};

template <int W>
__device__ __forceinline__ mp_place<W> mp_row(Index row) {
  return {row, 0};
}

template <int W>
__device__ __forceinline__ mp_place<W> operator+(mp_place<W> place, int k) {
  return {place.row, place.k + k};
}

template <class T>
__device__ __forceinline__ T* mp_at(T* array, long long index) {
  return array + index;
}

template <class T, int W>
__device__ __forceinline__ T* mp_at(T* array, mp_place<W> place) {
  return (T*)((mp_values<T, W>*)array + place.row) + place.k;
}

template <class T>
__device__ __forceinline__ void mp_add(T* at, T value) {
  atomicAdd(at, value);
}

__device__ __forceinline__ void mp_add(long long* at, long long value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)value);
}

// Values that lie together and are moved at once.
template <class T, int N>
struct alignas(N * sizeof(T)) mp_pack {
  T at[N];
};

template <int N, class T>
__device__ __forceinline__ void mp_load(T* into, const T* from) {
  const mp_pack<T, N> found = *reinterpret_cast<const mp_pack<T, N>*>(from);
#pragma unroll
  for (int k = 0; k < N; ++k) into[k] = found.at[k];
}

template <int N, class T>
__device__ __forceinline__ void mp_store(T* to, const T* from) {
  mp_pack<T, N> given;
#pragma unroll
  for (int k = 0; k < N; ++k) given.at[k] = from[k];
  *reinterpret_cast<mp_pack<T, N>*>(to) = given;
}

template <int N, class T>
__device__ __forceinline__ void mp_add_all(T* at, const T* values) {
#pragma unroll
  for (int k = 0; k < N; ++k) mp_add(at + k, values[k]);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <>
__device__ __forceinline__ void mp_add_all<2, float>(float* at, const float* values) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(at)),
               "f"(values[0]), "f"(values[1])
               : "memory");
}

template <>
__device__ __forceinline__ void mp_add_all<4, float>(float* at, const float* values) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(at)),
               "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}
#endif
