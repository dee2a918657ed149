// Part of meshprep.hpp: ranges of elements for the threads of a processor, each with those that it
// waits for. The same arrays as runtime/meshprep_runtime/plan/ranges.py makes, whose text says
// more.
#ifndef MESHPREP_RANGES_HPP
#define MESHPREP_RANGES_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "meshprep_plan.h"

namespace meshprep {

// Range r holds places offset[r] to offset[r + 1] - 1; turn i runs range order[i] once the turns
// waits[wait_offset[i]] .. waits[wait_offset[i + 1] - 1], all lower than i, are done. One thread
// takes ranges first to second - 1 of each of `runs` as one.
struct Ranges {
  std::vector<std::int64_t> offset, wait_offset;
  std::vector<std::int32_t> order, waits;
  std::vector<std::pair<std::int32_t, std::int32_t>> runs;
};

// Columns of maps into one set of `points` elements that a loop writes through.
struct WrittenSet {
  struct Column {
    const std::int32_t* table;
    std::int64_t arity;
  };
  std::int64_t points;
  std::vector<Column> columns;
};

// Elements of a range, at least and at most; ranges of a small set; ranges that one may meet on
// average; and how many turns a range is begun after those that it waits for, where one can be.
constexpr std::int64_t least_range = 1024, most_range = 8192, several_ranges = 16;
constexpr std::int64_t most_neighbours = 32, ahead = 9;

template <class T>
void make_distinct(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Ends of ranges of about `size` places, at ends of blocks where there are blocks.
inline std::vector<std::int64_t> cut_ranges(std::int64_t n, std::int64_t size,
                                            const mp_loop* blocks) {
  std::vector<std::int64_t> ends{0, n};
  for (std::int64_t wanted = size; wanted < n; wanted += size) {
    ends.push_back(wanted);
    if (!blocks || blocks->n_blocks == 0) continue;
    const std::int64_t *begin = blocks->block_offset, *last = begin + blocks->n_blocks;
    ends.back() = *std::min(std::lower_bound(begin, last + 1, wanted), last);
  }
  make_distinct(ends);
  return ends;
}

// Pairs of ranges that write a common point, the lower first; false where they are too many.
inline bool find_meeting(const std::vector<WrittenSet>& written, const mp_loop* blocks,
                         const std::vector<std::int64_t>& offset,
                         std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) {
  const std::int32_t count = std::int32_t(offset.size()) - 1;
  std::size_t room = 1 << 20;
  for (const WrittenSet& set : written) {
    std::vector<std::int32_t> least(std::size_t(set.points), count), most(std::size_t(set.points));
    const auto visit = [&](const auto& each) {
      for (std::int32_t r = 0; r < count; ++r)
        for (std::int64_t p = offset[r]; p < offset[r + 1]; ++p) {
          const std::int64_t e = blocks ? mp_element(blocks, p) : p;
          for (const auto& c : set.columns) each(c.table[e * c.arity], r);
        }
    };
    visit([&](std::int32_t point, std::int32_t r) {
      least[point] = std::min(least[point], r);
      most[point] = r;
    });
    std::vector<std::pair<std::int32_t, std::int32_t>> met;  // point and range, of shared points
    visit([&](std::int32_t point, std::int32_t r) {
      if (least[point] < most[point]) met.emplace_back(point, r);
    });
    make_distinct(met);
    for (std::size_t i = 0, end = 0; i < met.size(); ++i) {
      while (end < met.size() && met[end].first == met[i].first) ++end;
      if (std::int64_t(end - i) > most_neighbours + 1) return false;
      for (std::size_t k = i + 1; k < end; ++k) pairs.emplace_back(met[i].second, met[k].second);
      if (pairs.size() < room) continue;
      make_distinct(pairs);
      room = std::max(room, 2 * pairs.size());
    }
  }
  make_distinct(pairs);
  return std::int64_t(pairs.size()) <= most_neighbours * count;
}

// The ranges in the order in which they begin, and what each waits for.
inline Ranges order_ranges(std::vector<std::int64_t> offset,
                           const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) {
  const std::size_t count = offset.size() - 1;
  std::vector<std::vector<std::int32_t>> met(count);
  for (const auto& [low, high] : pairs) {
    met[high].push_back(low);
    met[low].push_back(high);
  }
  Ranges found;
  // As many threads would take them, each in a stretch of the set of its own.
  std::vector<std::array<std::int64_t, 3>> wanted;
  for (std::int64_t r = 0, first = 0, n = std::int64_t(count); r < n; ++r) {
    const std::int64_t stretch = r * several_ranges / n;
    if (r > 0 && stretch != (r - 1) * several_ranges / n) first = r;
    wanted.push_back({r - first, stretch, r});
  }
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::int64_t> last(count, -ahead), place(count, -1);
  for (std::int64_t turn = 0; turn < std::int64_t(count); ++turn) {
    // the first whose neighbours were begun long ago
    std::int64_t best = -1, longest = 0;
    for (auto w = wanted.begin(); w != wanted.end() && longest < ahead; ++w) {
      const std::int64_t r = (*w)[2], since = std::min(turn - last[r], ahead);
      if (place[r] < 0 && since > longest) best = r, longest = since;
    }
    found.order.push_back(std::int32_t(best));
    place[best] = turn;
    for (const std::int32_t x : met[best]) last[x] = turn;
  }
  found.wait_offset.push_back(0);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::int32_t x : met[found.order[i]])
      if (place[x] < std::int64_t(i)) found.waits.push_back(std::int32_t(place[x]));
    std::sort(found.waits.begin() + found.wait_offset[i], found.waits.end());
    found.wait_offset.push_back(std::int64_t(found.waits.size()));
  }
  found.offset = std::move(offset);
  return found;
}

// Runs of ranges that lie one behind the other, as a jump costs what the cache holds: always the
// first that can be run, after those that it waits for, so that the bits are those of threads.
inline void find_runs(Ranges& of) {
  std::vector<std::vector<std::int32_t>> behind(of.order.size());  // what waits for each
  std::vector<std::int64_t> missing(of.order.size());
  std::set<std::int32_t> ready(of.order.begin(), of.order.end());
  for (std::size_t i = 0; i < of.order.size(); ++i)
    for (std::int64_t w = of.wait_offset[i]; w < of.wait_offset[i + 1]; ++w) {
      behind[of.order[of.waits[w]]].push_back(of.order[i]);
      if (missing[of.order[i]]++ == 0) ready.erase(of.order[i]);
    }
  while (!ready.empty()) {
    const std::int32_t r = *ready.begin();
    ready.erase(r);
    if (of.runs.empty() || of.runs.back().second != r) of.runs.emplace_back(r, r);
    of.runs.back().second = r + 1;
    for (const std::int32_t x : behind[r])
      if (--missing[x] == 0) ready.insert(x);
  }
}

// Ranges of `n` places, or of those of `blocks` if there are any. O(n log n).
inline Ranges make_ranges(std::int64_t n, const mp_loop* blocks,
                          const std::vector<WrittenSet>& written) {
  std::int64_t size =
      std::min(most_range, std::max(least_range, n / several_ranges / 256 * 256));
  for (;; size *= 2) {
    std::vector<std::int64_t> offset = cut_ranges(n, size, blocks);
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    if (offset.size() == 2 || find_meeting(written, blocks, offset, pairs))
      return order_ranges(std::move(offset), pairs);
  }
}

}  // namespace meshprep

#endif  // MESHPREP_RANGES_HPP
