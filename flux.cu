// What the text of a loop is made of, for CUDA.
typedef long long Index;
#ifdef MP_ROOMY
#define MP_BOUNDS(threads) __launch_bounds__(threads, 1)
#else
#define MP_BOUNDS(threads) __launch_bounds__(threads)
#endif
#define MP_KERNEL(threads) extern "C" __global__ void MP_BOUNDS(threads)
#define MP_RETURN return
#define MP_EXTERN(name, ...) extern "C" __device__ void name(__VA_ARGS__)
#define MP_IN(T) const T* __restrict__
#define MP_OUT(T) T* __restrict__
#define MP_THREAD ((int)threadIdx.x)
#define MP_THREADS ((int)blockDim.x)
#define MP_BLOCK ((int)blockIdx.x)
#define MP_BARRIER() __syncthreads()
#define MP_SHARED(T, name, begin, size) T* const name = reinterpret_cast<T*>(mp_shared + (begin))
#define MP_ADD(array, index, value) mp_add(&(array)[index], value)
#define MP_LOAD(n, into, array, index) mp_load<n>(into, (array) + (index))
#define MP_STORE(n, array, index, from) mp_store<n>((array) + (index), from)
#define MP_EXPECT(condition)

extern __shared__ __align__(16) unsigned char mp_shared[];

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


__device__ void flux(const double* t1, const double* t2, double* r1, double* r2) {
  const double f = t2[0] - t1[0];
  r1[0] += f;
  r2[0] -= f;
}


// s0: t
// s1: r
// m0: edges->cells
// points0: cells
MP_KERNEL(256) meshprep_loop(
    MP_IN(int) m0,
    MP_IN(double) s0,
    MP_OUT(double) s1,
    MP_OUT(double) t1,
    const Index size,
    const Index first,
    const Index last) {
  const Index place = first + (Index)MP_BLOCK * MP_THREADS + MP_THREAD;
  double r0[1];
  double r1[1];
  double r2[1] = {};
  double r3[1] = {};
  if (place < last) {
    const Index e = place;
    const Index p0_0 = m0[0 * size + e];
    const Index p0_1 = m0[1 * size + e];
    r0[0] = s0[p0_0];
    r1[0] = s0[p0_1];
    ::flux(r0, r1, r2, r3);
    t1[(0 * size + e)] = r2[0];
    t1[(1 * size + e)] = r3[0];
  }
  MP_RETURN;
}
