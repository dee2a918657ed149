// Gives meshprep_cuda.hpp a GPU under checks: kernels run as coroutines of checked.hpp, each launch
// with fresh traces of who touched what, and "device" memory is that of the host.
#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include "checked.hpp"

namespace emulated {

inline std::map<const void*, std::vector<mp::Cell>>& traces() {
  static std::map<const void*, std::vector<mp::Cell>> kept;
  return kept;
}

inline mp::Cell* cells_of(const void* values, Index size) {
  std::vector<mp::Cell>& cells = traces()[values];
  if (cells.size() < std::size_t(size)) cells.resize(std::size_t(size));
  return cells.data();
}

template <class Make>
void launch(Index blocks, int threads, Index shared, Make make) {
  for (auto& kept : traces()) std::fill(kept.second.begin(), kept.second.end(), mp::Cell());
  const std::string found = mp::run(int(blocks), threads, shared, make);
  if (!found.empty()) throw std::runtime_error(found);
}

}  // namespace emulated

#define MP_HAND_IN(T, pointer, size, name) (mp::In<T>{pointer, Index(size), name})
#define MP_HAND_OUT(T, pointer, size, name) \
  (mp::Out<T>{pointer, Index(size), name, emulated::cells_of(pointer, Index(size))})
#define MP_LAUNCH(kernel, blocks, threads, shared, ...) \
  emulated::launch(blocks, threads, shared, [&] { return kernel(__VA_ARGS__); })

using cudaError_t = int;
constexpr int cudaSuccess = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2;
inline const char* cudaGetErrorString(cudaError_t) { return "failed"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return (*memory = std::malloc(bytes)) ? cudaSuccess : 2;
}
inline cudaError_t cudaFree(void* memory) {
  emulated::traces().erase(memory);
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMallocManaged(auto** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
// Events are when they were recorded: all that is launched has run by then.
using cudaEvent_t = std::chrono::steady_clock::time_point*;
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return *event = new std::chrono::steady_clock::time_point(), cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event) {
  return *event = std::chrono::steady_clock::now(), cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* found, cudaEvent_t start, cudaEvent_t end) {
  *found = std::chrono::duration<float, std::milli>(*end - *start).count();
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
