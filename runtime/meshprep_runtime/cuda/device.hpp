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
#define MP_EXPECT(condition)

extern __shared__ __align__(16) unsigned char mp_shared[];

template <class T>
__device__ __forceinline__ void mp_add(T* at, T value) {
  atomicAdd(at, value);
}

__device__ __forceinline__ void mp_add(long long* at, long long value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)value);
}
